/* SPDX-License-Identifier: BSD-3-Clause */
/* testroce: measures RDMA on a network port, in the manner of DPDK's testpmd. */
#include "main.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "control_conn.h"
#include "nic.h"
#include "passive.h"
#include "testroce_options.h"

/* ---- both sides of a test by one command ---- */

struct pair {
	pid_t child; /* the passive process; 0 in that process itself */
	char folder[32];
	char where[32]; /* the passive side listens there */
};

/* Addresses for documentation (RFC 5737): no other host is on this link. */
#define ADDRESS "192.0.2.%d/24"

/* Find a free TCP port. The passive process listens on it immediately afterwards. */
static int free_port(char where[32])
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	snprintf(where, 32, "127.0.0.1:%u", ntohs(addr.sin_port));
	return rc;
}

/* Pin the passive side to the first allowed CPUs, the active side to the last ones. Each side gets
 * one for each thread, if half of the CPUs are so many. */
static void keep_to_cpus(bool first, uint64_t threads)
{
	cpu_set_t allowed, own;
	uint64_t left;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
		return;
	left = RTE_MIN(threads, (uint64_t)CPU_COUNT(&allowed) / 2);
	CPU_ZERO(&own);
	for (int cpu = first ? 0 : CPU_SETSIZE - 1; left > 0; cpu += first ? 1 : -1) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_SET(cpu, &own);
		left--;
	}
	sched_setaffinity(0, sizeof(own), &own);
}

static int set_port(const struct pair *pair, struct options *options, const char *role, int number,
		    char *error, size_t error_size)
{
	char port[128], address[32];
	int rc;

	snprintf(port, sizeof(port), "net_memif0,socket=%s/wire.sock,role=%s,id=0", pair->folder,
		 role);
	snprintf(address, sizeof(address), ADDRESS, number);
	rc = settings_set(&options->settings, "port", port, error, error_size);
	if (rc == 0)
		rc = settings_set(&options->settings, "ip", address, error, error_size);
	if (rc == 0)
		rc = settings_check(&options->settings, error, error_size);
	return rc;
}

/* Turn the child into the passive side. Its stdout goes to /dev/null: it would only print its
 * listening address. */
static int become_passive(const struct pair *pair, struct options *options, char *error,
			  size_t error_size)
{
	const int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null_fd < 0 || dup2(null_fd, STDOUT_FILENO) < 0) {
		snprintf(error, error_size, "/dev/null: %s", strerror(errno));
		return -errno;
	}
	close(null_fd);
	options->listen = pair->where;
	options->once = true;
	options->interactive = false;
	return set_port(pair, options, "server", 1, error, error_size);
}

/*
 * Fork; call it before DPDK starts. The child gets the options of the passive side, the parent
 * those of the active side. Each process is pinned to CPUs of its own if at least two are allowed:
 * one for each thread of the test, but at most half of those allowed. 0 in both processes, or
 * -errno.
 */
static int pair_fork(struct pair *pair, struct options *options, char *error, size_t error_size)
{
	int rc;

	snprintf(pair->folder, sizeof(pair->folder), "/tmp/testroce-XXXXXX");
	rc = free_port(pair->where);
	if (rc == 0 && !mkdtemp(pair->folder))
		rc = -errno;
	if (rc != 0) {
		snprintf(error, error_size, "the memif port: %s", strerror(-rc));
		return rc;
	}
	pair->child = fork();
	if (pair->child < 0) {
		rc = -errno;
		snprintf(error, error_size, "the other side: %s", strerror(errno));
		rmdir(pair->folder);
		return rc;
	}
	keep_to_cpus(pair->child == 0, options->plan.threads);
	if (pair->child == 0)
		return become_passive(pair, options, error, error_size);
	options->connect = pair->where;
	return set_port(pair, options, "client", 2, error, error_size);
}

/* Wait for the passive process and remove the memif socket. The passive process ends after the
 * active side disconnects. If the active side has failed, perhaps before it connected, kill it. */
static void pair_join(struct pair *pair, bool was_served)
{
	char path[sizeof(pair->folder) + 16];

	/* A child that nobody connects to would wait forever. SIGTERM has no effect while DPDK
	 * starts, so send SIGKILL. */
	if (!was_served)
		kill(pair->child, SIGKILL);
	waitpid(pair->child, NULL, 0);
	snprintf(path, sizeof(path), "%s/wire.sock", pair->folder);
	unlink(path);
	rmdir(pair->folder);
}

#define LONG_TEST_NS UINT64_C(10000000000)

/* ---- one side ---- */

static volatile sig_atomic_t stop; /* atomic */

static void on_signal(int number)
{
	(void)number;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static int fail(const char *error)
{
	fprintf(stderr, "testroce: %s\n", error);
	return EXIT_FAILURE;
}

/* Start EAL here if the command line has EAL options; the library then uses the running EAL. */
static bool start_eal(int argc, char **argv)
{
	if (argc <= 1)
		return true;
	if (rte_eal_init(argc, argv) < 0) {
		fprintf(stderr, "testroce: DPDK does not start: %s\n", rte_strerror(rte_errno));
		return false;
	}
	nic_thread_use_lcores();
	return true;
}

static bool write_json(const char *path, const struct result *result, char *error,
		       size_t error_size)
{
	FILE *file = fopen(path, "w");
	bool written;

	if (!file) {
		snprintf(error, error_size, "%s: %s", path, strerror(errno));
		return false;
	}
	written = result_json(file, result);
	fclose(file);
	if (!written)
		snprintf(error, error_size, "no memory for the result as JSON");
	return written;
}

static int measure_all(struct nic *nic, struct control *control, const struct options *options)
{
	const struct run_options how = {.lines = stdout, .stop = &stop};
	char error[256] = "";
	int rc;

	if (options->ablation)
		rc = ablation_run(nic, control, &options->plan, &how, options->repeat, stdout,
				  error, sizeof(error));
	else
		rc = sweep_run(nic, control, &options->plan, &how, options->repeat, options->sweep,
			       error, sizeof(error));
	return rc == 0 ? EXIT_SUCCESS : fail(error);
}

static int measure(struct nic *nic, struct control *control, const struct options *options)
{
	const struct run_options how = {
		.period_ns = options->period_ns > 0			? options->period_ns
			     : options->plan.duration_ns > LONG_TEST_NS ? LONG_TEST_NS
									: 0,
		.lines = stdout,
		.stop = &stop,
		.stages = options->stages,
	};
	struct result result;
	char error[256] = "";

	if (measure_test(nic, control, &options->plan, &how, &result, error, sizeof(error)) != 0)
		return fail(error);
	result_text(stdout, &result);
	if (options->json && !write_json(options->json, &result, error, sizeof(error)))
		return fail(error);
	return result.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_client(struct nic *nic, const struct options *options)
{
	struct control control = {.nic = nic, .fd = -1};
	static struct passive passive;
	char error[256];
	int code;

	passive_init(&passive, nic);
	control.local = &passive;
	if (options->connect &&
	    control_connect(&control, nic, options->connect, error, sizeof(error)) != 0)
		return fail(error);
	if (options->interactive)
		code = prompt_run(nic, &control, options);
	else if (options->ablation || options->sweep)
		code = measure_all(nic, &control, options);
	else
		code = measure(nic, &control, options);
	measure_end();
	passive_close(&passive);
	control_close(&control);
	return code;
}

static int run_device(const struct options *options)
{
	char error[256] = "";
	struct nic nic;
	int code;

	/* The library takes its settings from where uroce-run puts them. */
	if (settings_export(&options->settings) != 0)
		return fail("no memory");
	if (nic_open(&nic) != 0)
		return EXIT_FAILURE;
	if (options->listen)
		code = server_run(&nic, options->listen, (uint32_t)options->plan.threads,
				  options->once, &stop, error, sizeof(error)) == 0
			       ? EXIT_SUCCESS
			       : fail(error);
	else
		code = run_client(&nic, options);
	nic_close(&nic);
	return code;
}

static int run_pair(struct options *options)
{
	struct pair pair = {0};
	char error[256] = "";
	int code;

	if (pair_fork(&pair, options, error, sizeof(error)) != 0)
		code = fail(error);
	else
		code = run_device(options);
	if (pair.child > 0)
		pair_join(&pair, code == EXIT_SUCCESS);
	return code;
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	const int eal_end = options_eal_end(argc, argv);
	struct options options;
	char error[1024];

	argv[eal_end] = argv[0];
	switch (options_parse(argc - eal_end, argv + eal_end, SETTINGS_DEFAULT_SOCKET, &options,
			      error, sizeof(error))) {
	case OPTIONS_HELP:
		return fputs(options_help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_VERSION:
		return puts("testroce " UROCE_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_BAD:
		return fail(error);
	case OPTIONS_RUN:
		break;
	}
	if (options.pair && eal_end > 0)
		return fail(
			"--pair starts DPDK in two processes by itself, and takes no EAL options");
	if (!start_eal(eal_end, argv))
		return EXIT_FAILURE;
	/* SA_RESETHAND: a second signal ends the program immediately. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return options.pair ? run_pair(&options) : run_device(&options);
}
