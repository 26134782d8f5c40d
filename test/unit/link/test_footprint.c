/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/link/footprint.c. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "link/footprint.h"

static struct footprint footprint;

static void collect(int fd, void *arg)
{
	struct fd_list *found = arg;

	found->fds[found->count++] = fd;
}

static void fd_list_new__names_what_was_opened(void **state)
{
	int fds[16];
	struct fd_list before, found = {.fds = fds};
	int pipe_fds[2];

	(void)state;
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

static void footprint_restore__closes_new_descriptors_on_exec_and_no_others(void **state)
{
	const int old = open("/dev/null", O_RDONLY);
	int fresh;

	(void)state;
	assert_int_equal(footprint_save(&footprint), 0);
	fresh = open("/dev/null", O_RDONLY);
	footprint_restore(&footprint);
	assert_int_equal(fcntl(old, F_GETFD) & FD_CLOEXEC, 0);
	assert_int_equal(fcntl(fresh, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(old);
	close(fresh);
}

static void footprint_save__blocks_signals_and_restore_gives_them_back(void **state)
{
	sigset_t before, during, after;

	(void)state;
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

static void footprint_restore__puts_handlers_back(void **state)
{
	struct sigaction other = {.sa_handler = SIG_IGN}, now;

	(void)state;
	signal(SIGUSR2, handler);
	assert_int_equal(footprint_save(&footprint), 0);
	sigaction(SIGUSR2, &other, NULL);
	sigaction(SIGURG, &other, NULL);
	footprint_restore(&footprint);
	sigaction(SIGUSR2, NULL, &now);
	assert_ptr_equal(now.sa_handler, handler);
	sigaction(SIGURG, NULL, &now);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
}

static void footprint_restore__keeps_a_drivers_real_time_handler(void **state)
{
	const int free_sig = SIGRTMIN + 1, used_sig = SIGRTMIN + 2;
	struct sigaction driver = {.sa_handler = handler}, now;

	(void)state;
	signal(free_sig, SIG_DFL);
	signal(used_sig, SIG_IGN);
	assert_int_equal(footprint_save(&footprint), 0);
	sigaction(free_sig, &driver, NULL);
	sigaction(used_sig, &driver, NULL);
	footprint_restore(&footprint);
	sigaction(free_sig, NULL, &now);
	assert_ptr_equal(now.sa_handler, handler);
	assert_true(now.sa_flags & SA_RESTART);
	sigaction(used_sig, NULL, &now);
	assert_ptr_equal(now.sa_handler, SIG_IGN);
	signal(free_sig, SIG_DFL);
	signal(used_sig, SIG_DFL);
}

static void footprint_restore__puts_affinity_back(void **state)
{
	cpu_set_t before, one, after;
	int cpu = 0;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fd_list_new__names_what_was_opened),
		cmocka_unit_test(footprint_restore__closes_new_descriptors_on_exec_and_no_others),
		cmocka_unit_test(footprint_save__blocks_signals_and_restore_gives_them_back),
		cmocka_unit_test(footprint_restore__puts_handlers_back),
		cmocka_unit_test(footprint_restore__keeps_a_drivers_real_time_handler),
		cmocka_unit_test(footprint_restore__puts_affinity_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
