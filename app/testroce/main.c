/* SPDX-License-Identifier: BSD-3-Clause */
/* testroce: measures RDMA on a network port, in the manner of DPDK's testpmd. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "control_conn.h"
#include "main.h"
#include "nic.h"
#include "nic_thread.h"
#include "passive.h"
#include "testroce_options.h"

#define LONG_TEST_NS UINT64_C(10000000000)

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
