/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/runtime.c. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>

#include "eal/runtime.h"
#include "test.h"

#define MEMORY (16 << 20)

static int start(void)
{
	const struct runtime_config config = {.memory_bytes = MEMORY};

	return -runtime_start(&config);
}

/* Without EAL the frequency is measured; EAL's own is rounded. */
static int measure(void)
{
	const uint64_t hz = runtime_tsc_hz();

	if (start() != 0)
		return EXIT_FAILURE;
	return hz > rte_get_tsc_hz() / 100 * 99 && hz < rte_get_tsc_hz() / 100 * 101 ? 0
										     : EXIT_FAILURE;
}

static int in_child(int (*function)(void))
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(function());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int start_and_fork(void)
{
	return start() == 0 ? in_child(start) : EXIT_FAILURE;
}

/* A program that runs DPDK itself. */
static int fork_of_dpdk(void)
{
	char *args[] = {"test", "--no-huge", "--no-pci",     "--no-shconf",
			"-m",	"64",	     "--log-level=1"};

	return rte_eal_init(RTE_DIM(args), args) < 0 ? EXIT_FAILURE : in_child(start);
}

static int fork_then_start(void)
{
	return in_child(start);
}

/* The child shares the heap and the pools with its parent, but not the locks' owners. */
TEST(runtime_start__refuses_the_eal_of_a_parent)
{
	assert_int_equal(in_child(start_and_fork), ECHILD);
	assert_int_equal(in_child(fork_of_dpdk), ECHILD);
}

TEST(runtime_tsc_hz__without_eal)
{
	assert_int_equal(in_child(measure), 0);
}

TEST(runtime_start__starts_in_a_child_of_a_program_without_eal)
{
	assert_int_equal(in_child(fork_then_start), 0);
}
