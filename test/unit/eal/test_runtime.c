/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/runtime.c. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>
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

static int start_plain(void)
{
	const struct runtime_config config = {.memory_bytes = MEMORY, .plain = true};

	return runtime_start(&config) == 0 && !runtime_has_huge_pages() ? 0 : EXIT_FAILURE;
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

TEST(runtime_start__uses_ordinary_pages_if_told)
{
	assert_int_equal(in_child(start_plain), 0);
}

TEST(runtime_start__starts_in_a_child_of_a_program_without_eal)
{
	assert_int_equal(in_child(fork_then_start), 0);
}
