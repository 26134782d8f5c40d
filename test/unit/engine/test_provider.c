/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/provider.c: real devices from settings in the environment, each in a process
 * of its own. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>

#include "config/settings.h"
#include "device/device.h"
#include "device/registry.h"
#include "eal/footprint.h"
#include "test.h"

#define OUTPUT_MAX 4096

static char output[OUTPUT_MAX]; /* what the child wrote to stdout and stderr */

static pid_t test_pid; /* part of every socket's name: this test may run twice at a time */

static int note_pid(TEST_STATE)
{
	test_pid = getpid();
	return 0;
}

TEST_GROUP(note_pid, NULL);

static void give_settings(const char *name, const char *value)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	if (settings_set(&settings, name, value, error, sizeof(error)) != 0 ||
	    (strcmp(name, "port") == 0 &&
	     settings_set(&settings, "ip", "10.0.0.1/24", error, sizeof(error)) != 0) ||
	    settings_export(&settings) != 0) {
		printf("settings: %s\n", error);
		exit(99);
	}
}

static void give_memif(const char *role, const char *more)
{
	char port[256];

	snprintf(port, sizeof(port), "net_memif0,role=%s,socket=/tmp/uroce-test-%d%s", role,
		 (int)test_pid, more);
	give_settings("port", port);
}

/* Run in a new process, with its output caught. Returns its exit code, or 128 and its signal. */
static int in_child(void (*body)(void))
{
	int fds[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* cmocka catches these for its own tests. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		body();
		exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], output + len, sizeof(output) - 1 - len)) > 0)
		len += (size_t)n;
	output[len] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static unsigned int lines(void)
{
	unsigned int n = 0;

	for (const char *c = output; *c; c++)
		n += *c == '\n';
	return n;
}

/* End the child with a message unless the condition holds. */
#define REQUIRE(what)                                             \
	do {                                                      \
		if (!(what)) {                                    \
			printf("line %d: %s\n", __LINE__, #what); \
			exit(98);                                 \
		}                                                 \
	} while (0)

static struct device *the_device(void)
{
	struct device *const *devices;

	REQUIRE(registry_devices(&devices) == 1);
	return devices[0];
}

static void without_settings(void)
{
	struct device *const *devices;

	REQUIRE(registry_devices(&devices) == 0);
}

TEST(provider_start__no_settings_no_device)
{
	assert_int_equal(in_child(without_settings), 0);
	assert_string_equal(output, "");
}

static void with_null_port(void)
{
	struct device *device;
	struct ibv_port_attr port;

	give_settings("port", "net_null0");
	device = the_device();
	device_query_port(device, &port);
	REQUIRE(port.state == IBV_PORT_ACTIVE);
	REQUIRE(device->gids[0].gid.raw[0] == 0xfe && device->gids[0].gid.raw[1] == 0x80);
	REQUIRE(device->gids[1].gid.raw[12] == 10 && device->gids[1].gid.raw[15] == 1);
	REQUIRE(strcmp(device->config.name, "uroce0") == 0);
}

TEST(provider_start__port_with_addresses)
{
	assert_int_equal(in_child(with_null_port), 0);
	/* At most one line is logged: that there are no huge pages. */
	assert_true(lines() <= 1);
}

/* Print how many engines a device on this port has. */
static void print_engines(const char *port, const char *engines)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	REQUIRE(settings_set(&settings, "port", port, error, sizeof(error)) == 0);
	REQUIRE(settings_set(&settings, "ip", "10.0.0.1/24", error, sizeof(error)) == 0);
	REQUIRE(settings_set(&settings, "engines", engines, error, sizeof(error)) == 0);
	REQUIRE(settings_export(&settings) == 0);
	printf("engines %u\n", the_device()->engine_count);
}

static void null_with_three_engines(void)
{
	print_engines("net_null0", "3");
}

static void local_with_three_engines(void)
{
	print_engines("local0", "3");
}

static void local_with_auto_engines(void)
{
	print_engines("local0", "auto");
}

static void memif_with_many_engines(void)
{
	char port[128];

	snprintf(port, sizeof(port), "net_memif0,role=server,socket=/tmp/uroce-test-%d-many",
		 (int)test_pid);
	print_engines(port, "9");
}

/* A device has no more engines than its port has queues, and says so if the user has named a
 * number. */
TEST(provider_start__engines_that_have_queues)
{
	static const struct {
		void (*run)(void);
		const char *engines, *message;
	} cases[] = {
		{null_with_three_engines, "engines 3\n", NULL},
		{local_with_three_engines, "engines 1\n",
		 "'local0' has queues for 1 engine: the device has no more, not 3\n"},
		{local_with_auto_engines, "engines 1\n", NULL},
		{memif_with_many_engines, "engines 8\n",
		 "'net_memif0' has queues for 8 engines: the device has no more, not 9\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(in_child(cases[i].run), 0);
		assert_non_null(strstr(output, cases[i].engines));
		if (cases[i].message)
			assert_non_null(strstr(output, cases[i].message));
		else
			assert_null(strstr(output, "has queues for"));
	}
}

static void print_guid(void)
{
	give_settings("port", "net_null0");
	printf("guid %016llx\n", (unsigned long long)the_device()->node_guid_be);
}

/* The driver of the null port makes a new MAC address at each start. */
TEST(provider_start__a_null_port_keeps_its_guid)
{
	char first[OUTPUT_MAX];

	assert_int_equal(in_child(print_guid), 0);
	assert_non_null(strstr(output, "guid "));
	strcpy(first, strstr(output, "guid "));
	assert_int_equal(in_child(print_guid), 0);
	assert_string_equal(strstr(output, "guid "), first);
}

static void count_not_cloexec(int fd, void *arg)
{
	*(int *)arg += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void check_thread_affinity(const cpu_set_t *before)
{
	char path[64];
	cpu_set_t now;

	/* Threads of this process are few and their numbers near. */
	for (pid_t tid = getpid(); tid < getpid() + 1000; tid++) {
		snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
		if (access(path, F_OK) != 0)
			continue;
		REQUIRE(sched_getaffinity(tid, sizeof(now), &now) == 0);
		REQUIRE(CPU_EQUAL(before, &now));
	}
}

static void sleep_ms(long ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

struct client {
	pid_t pid;
	int start_fd; /* closed: start */
	int ready_fd; /* one byte when it has a peer */
};

/* A client, made before this process has a device, that waits for its turn. */
static void make_client(struct client *client)
{
	int start[2], ready[2];
	char none;

	REQUIRE(pipe(start) == 0 && pipe(ready) == 0);
	client->pid = fork();
	REQUIRE(client->pid >= 0);
	client->start_fd = start[1];
	client->ready_fd = ready[0];
	if (client->pid > 0) {
		close(start[0]);
		close(ready[1]);
		return;
	}
	/* The child has the write end of the pipe, which the test reads until its end. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(start[1]);
	REQUIRE(read(start[0], &none, 1) == 0);
	give_memif("client", "");
	the_device();
	REQUIRE(write(ready[1], "x", 1) == 1);
	for (;;)
		pause();
}

static int count_leaks(const struct fd_list *before)
{
	int leaks = 0;

	fd_list_new(before, count_not_cloexec, &leaks);
	return leaks;
}

static void leaves_no_trace(void)
{
	struct client client;
	struct sigaction actions[NSIG], action;
	struct fd_list fds;
	cpu_set_t before;
	sigset_t mask, mask_after;
	char ready;

	make_client(&client);
	give_memif("server", "");
	REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, NULL, &actions[sig]);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	REQUIRE(fd_list_read(&fds) == 0);
	the_device();
	check_thread_affinity(&before);
	for (int sig = 1; sig < NSIG; sig++) {
		/* libc keeps two for itself; the guard of copies stands in front of two
		 * (base/guard.h). */
		if (sig != SIGSEGV && sig != SIGBUS && sigaction(sig, NULL, &action) == 0)
			REQUIRE(action.sa_handler == actions[sig].sa_handler);
	}
	pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
	REQUIRE(sigismember(&mask_after, SIGUSR1) && !sigismember(&mask_after, SIGTERM));
	REQUIRE(count_leaks(&fds) == 0);
	/* The client knows that it is connected after the server does, which then has what it will
	 * ever open. */
	/* Keep the descriptor's number in use, so that a descriptor that is made again gets its old
	 * number. */
	REQUIRE(dup3(client.ready_fd, client.start_fd, O_CLOEXEC) == client.start_fd);
	REQUIRE(read(client.ready_fd, &ready, 1) == 1);
	for (int i = 0; i < 10000 && count_leaks(&fds) > 0; i++)
		sleep_ms(1);
	REQUIRE(count_leaks(&fds) == 0);
	fd_list_free(&fds);
	kill(client.pid, SIGKILL);
	REQUIRE(waitpid(client.pid, NULL, 0) == client.pid);
}

TEST(provider_start__leaves_no_trace_in_the_program)
{
	int rc;

	rc = in_child(leaves_no_trace);
	if (rc != 0)
		print_message("%s", output);
	assert_int_equal(rc, 0);
	/* The two processes may each say that no huge pages are free. */
	assert_true(lines() <= 2);
}

static void start_own_eal(void)
{
	char *argv[] = {"program", "--no-huge",	    "--no-shconf", "--no-pci", "--no-telemetry",
			"-m",	   "128",	    "--iova-mode", "va",       "--log-level",
			"error",   "--file-prefix", "uroce-unit"};

	REQUIRE(rte_eal_init((int)RTE_DIM(argv), argv) >= 0);
}

static void with_own_eal(void)
{
	struct ibv_port_attr port;
	unsigned int lcore;
	FILE *log;

	start_own_eal();
	lcore = rte_lcore_id();
	log = rte_log_get_stream();
	give_settings("port", "net_null0");
	device_query_port(the_device(), &port);
	REQUIRE(port.state == IBV_PORT_ACTIVE);
	REQUIRE(rte_lcore_id() == lcore && lcore != LCORE_ID_ANY);
	REQUIRE(rte_log_get_stream() == log);
	REQUIRE(rte_malloc(NULL, 4096, 0) != NULL);
}

/* SPDK starts EAL before it asks for devices. */
TEST(provider_start__a_program_that_runs_eal_itself)
{
	const int rc = in_child(with_own_eal);

	if (rc != 0)
		print_message("%s", output);
	assert_int_equal(rc, 0);
}

static void secondary_with_own_eal(void)
{
	struct device *const *devices;

	start_own_eal();
	give_settings("port", "net_memif0");
	setenv("UROCE_SECONDARY", "1", 1);
	registry_devices(&devices);
}

TEST(provider_start__no_secondary_beside_the_programs_eal)
{
	assert_int_equal(in_child(secondary_with_own_eal), 1);
	assert_non_null(strstr(output, "runs DPDK itself"));
}

static void with_missing_interface(void)
{
	struct device *const *devices;

	give_settings("netdev", "nosuchdev");
	registry_devices(&devices);
}

static void with_bad_argument(void)
{
	struct device *const *devices;

	give_settings("port", "net_memif0,role=nobody");
	registry_devices(&devices);
}

TEST(provider_start__a_wrong_port_is_one_line_and_exit_1)
{
	assert_int_equal(in_child(with_missing_interface), 1);
	assert_int_equal(lines(), 1);
	assert_non_null(strstr(output, "nosuchdev"));
	assert_int_equal(in_child(with_bad_argument), 1);
	assert_non_null(strstr(output, "nobody"));
	assert_true(lines() <= 2);
}

/* In a child with one thread, the leak sanitizer cannot see what the other threads' stacks refer
 * to. */
static bool in_fork;
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return in_fork;
}

static void fork_after_start(void)
{
	struct device *device;
	int status;
	pid_t pid;

	give_settings("port", "net_null0");
	device = the_device();
	pid = fork();
	if (pid == 0) {
		in_fork = true;
		device_lock(device);
		device_engine_poll(device_first(device));
		device_unlock(device);
		exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* The parent's goes on. */
	device_lock(device);
	device_unlock(device);
}

TEST(provider_start__a_forks_child_does_no_harm)
{
	const int rc = in_child(fork_after_start);

	if (rc != 0)
		print_message("%s", output);
	assert_int_equal(rc, 0);
}

static void exit_from_a_handler(int sig)
{
	(void)sig;
	exit(7);
}

/* Exit on SIGINT, as programs do, while the interrupted thread holds the engine. */
static void exit_inside_a_control_call(void)
{
	struct device *device;

	give_settings("port", "net_null0");
	device = the_device();
	signal(SIGALRM, exit_from_a_handler);
	device_lock(device);
	alarm(1);
	for (;;)
		pause();
}

TEST(provider_exit__works_while_the_engine_is_taken)
{
	assert_int_equal(in_child(exit_inside_a_control_call), 7);
}

static char memif_path[64];

static void memif_server(void)
{
	give_memif("server", ",socket-abstract=no");
	the_device();
	REQUIRE(access(memif_path, F_OK) == 0);
}

TEST(provider_exit__removes_the_memif_socket)
{
	snprintf(memif_path, sizeof(memif_path), "/tmp/uroce-test-%d", (int)test_pid);
	assert_int_equal(in_child(memif_server), 0);
	assert_int_equal(access(memif_path, F_OK), -1);
}

static bool active(const struct device *device)
{
	struct ibv_port_attr port;

	device_query_port(device, &port);
	return port.state == IBV_PORT_ACTIVE;
}

static volatile sig_atomic_t events;

static void on_event(void *user, enum ibv_event_type type)
{
	(void)user;
	if (type == IBV_EVENT_PORT_ERR)
		events |= 1;
	if (type == IBV_EVENT_PORT_ACTIVE)
		events |= 2;
}

/* A server whose clients come, are killed, and come again. */
static void memif_server_and_clients(void)
{
	struct client clients[2];
	struct device *device;
	char ready;

	/* The later born holds a copy of the pipe that starts the other, and dies before that
	 * starts. */
	make_client(&clients[1]);
	make_client(&clients[0]);
	give_memif("server", "");
	device = the_device();
	device->event = on_event;
	REQUIRE(active(device));
	for (int round = 0; round < 2; round++) {
		close(clients[round].start_fd);
		REQUIRE(read(clients[round].ready_fd, &ready, 1) == 1);
		for (int i = 0; i < 10000 && !active(device); i++)
			sleep_ms(1);
		REQUIRE(active(device));
		/* Time for the server to have seen it, if it was up before. */
		sleep_ms(300);
		kill(clients[round].pid, SIGKILL);
		REQUIRE(waitpid(clients[round].pid, NULL, 0) == clients[round].pid);
		for (int i = 0; i < 10000 && active(device); i++)
			sleep_ms(1);
		REQUIRE(!active(device));
		REQUIRE(events & 1);
		REQUIRE(round == 0 || (events & 2));
	}
}

TEST(provider__memif_peers_come_and_go)
{
	int rc;

	rc = in_child(memif_server_and_clients);
	if (rc != 0)
		print_message("%s", output);
	assert_int_equal(rc, 0);
}
