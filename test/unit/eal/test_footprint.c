/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/footprint.c. */
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_lcore.h>

#include "eal/footprint.h"
#include "test.h"

static struct footprint footprint;

static void collect(int fd, void *arg)
{
	struct fd_list *found = arg;

	found->fds[found->count++] = fd;
}

TEST(fd_list_new__names_what_was_opened)
{
	int fds[16];
	struct fd_list before, found = {.fds = fds};
	int pipe_fds[2];

	assert_int_equal(fd_list_read(&before), 0);
	assert_int_equal(pipe(pipe_fds), 0);
	fd_list_new(&before, collect, &found);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.fds[0], pipe_fds[0]);
	assert_int_equal(found.fds[1], pipe_fds[1]);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	fd_list_free(&before);
}

static bool closes_on_exec(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

/* Open descriptors like those of EAL's interrupt thread: an epoll set, and a pipe that it watches.
 */
static void open_as_eal(int fds[3])
{
	struct epoll_event event = {.events = EPOLLIN};

	fds[0] = epoll_create(1);
	assert_int_equal(pipe(fds + 1), 0);
	assert_int_equal(epoll_ctl(fds[0], EPOLL_CTL_ADD, fds[1], &event), 0);
}

static void close_all(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		close(fds[i]);
}

TEST(footprint_restore__closes_dpdks_descriptors_on_exec)
{
	int before[3], fds[8];

	open_as_eal(before);
	assert_int_equal(footprint_save(&footprint), 0);
	open_as_eal(fds);
	fds[3] = timerfd_create(CLOCK_MONOTONIC, 0);
	fds[4] = memfd_create("seg_0", 0);
	fds[5] = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	fds[6] = eventfd(0, 0);
	fds[7] = memfd_create("nohuge", 0);
	footprint_restore(&footprint);
	for (int i = 0; i < 8; i++)
		assert_true(closes_on_exec(fds[i]));
	for (int i = 0; i < 3; i++)
		assert_false(closes_on_exec(before[i]));
	close_all(before, 3);
	close_all(fds, 8);
}

/* The program's other threads open files while devices start, and mean to leave them to those that
 * they execute. */
TEST(footprint_restore__leaves_the_programs_descriptors)
{
	int fds[7];

	assert_int_equal(footprint_save(&footprint), 0);
	fds[0] = open("/dev/null", O_RDONLY);
	fds[1] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(pipe(fds + 2), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds + 4), 0);
	fds[6] = memfd_create("bitmap_of_pages", 0);
	footprint_restore(&footprint);
	for (int i = 0; i < 7; i++)
		assert_false(closes_on_exec(fds[i]));
	close_all(fds, 7);
}

static bool is_this(const void *arg, int fd)
{
	return *(const int *)arg == fd;
}

TEST(footprint_seal__closes_on_exec_what_it_is_told)
{
	int fds[2], ours;

	assert_int_equal(footprint_save(&footprint), 0);
	assert_int_equal(pipe(fds), 0);
	ours = fds[1];
	footprint_seal(&footprint, is_this, &ours);
	footprint_restore(&footprint);
	assert_false(closes_on_exec(fds[0]));
	assert_true(closes_on_exec(fds[1]));
	close_all(fds, 2);
}

TEST(footprint_save__blocks_signals_and_restore_gives_them_back)
{
	sigset_t before, during, after;

	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(footprint_save(&footprint), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &during);
	footprint_restore(&footprint);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_true(sigismember(&during, SIGINT));
	assert_true(sigismember(&after, SIGUSR1));
	assert_false(sigismember(&after, SIGINT));
	sigemptyset(&before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void handler(int sig)
{
	(void)sig;
}

/* A function of DPDK's, which is never called. */
static void set_dpdks(int sig)
{
	struct sigaction action = {.sa_flags = 0};

	action.sa_handler = (void (*)(int))(uintptr_t)rte_lcore_count;
	sigaction(sig, &action, NULL);
}

static void *handler_of(int sig)
{
	struct sigaction now;

	sigaction(sig, NULL, &now);
	return (void *)(uintptr_t)now.sa_handler;
}

TEST(footprint_restore__puts_handlers_back)
{
	signal(SIGBUS, handler);
	signal(SIGURG, SIG_DFL);
	assert_int_equal(footprint_save(&footprint), 0);
	set_dpdks(SIGBUS);
	set_dpdks(SIGURG);
	footprint_restore(&footprint);
	assert_ptr_equal(handler_of(SIGBUS), handler);
	assert_ptr_equal(handler_of(SIGURG), SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

TEST(footprint_restore__leaves_handlers_that_the_program_sets_meanwhile)
{
	signal(SIGUSR2, handler);
	assert_int_equal(footprint_save(&footprint), 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, handler);
	signal(SIGUSR2, SIG_DFL);
	footprint_restore(&footprint);
	assert_ptr_equal(handler_of(SIGPIPE), SIG_IGN);
	assert_ptr_equal(handler_of(SIGCHLD), handler);
	assert_ptr_equal(handler_of(SIGUSR2), SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
}

TEST(footprint_restore__keeps_a_drivers_real_time_handler)
{
	const int free_sig = SIGRTMIN + 1, used_sig = SIGRTMIN + 2;
	struct sigaction now;

	signal(free_sig, SIG_DFL);
	signal(used_sig, SIG_IGN);
	assert_int_equal(footprint_save(&footprint), 0);
	set_dpdks(free_sig);
	set_dpdks(used_sig);
	footprint_restore(&footprint);
	sigaction(free_sig, NULL, &now);
	assert_ptr_equal((void *)(uintptr_t)now.sa_handler, (void *)(uintptr_t)rte_lcore_count);
	assert_true(now.sa_flags & SA_RESTART);
	assert_ptr_equal(handler_of(used_sig), SIG_IGN);
	signal(free_sig, SIG_DFL);
	signal(used_sig, SIG_DFL);
}

TEST(footprint_restore__puts_affinity_back)
{
	cpu_set_t before, one, after;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(footprint_save(&footprint), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	footprint_restore(&footprint);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}
