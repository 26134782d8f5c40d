/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/netdev/manager.c: one process of an interface. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netdev/manager.h"
#include "netns.h"
#include "test.h"

static bool have_network;

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	return 0;
}

TEST_GROUP(group_set_up, NULL);

TEST(manager_take__gives_each_interface_to_one)
{
	int left, right;

	if (!have_network)
		skip();
	left = manager_take("left");
	right = manager_take("right");
	assert_true(left >= 0 && right >= 0);
	assert_int_equal(manager_take("left"), -EADDRINUSE);
	close(left);
	assert_int_equal(manager_take("right"), -EADDRINUSE);
	left = manager_take("left");
	assert_true(left >= 0);
	close(left);
	close(right);
}

TEST(manager_take__needs_an_interface)
{
	assert_int_equal(manager_take("nothing"), -ENODEV);
}

/* A child takes it, and is killed. */
TEST(manager_take__ends_with_the_process)
{
	int ready[2], status, fd;
	pid_t child;
	char took;

	if (!have_network)
		skip();
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		took = manager_take("left") >= 0;
		if (write(ready[1], &took, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &took, 1), 1);
	assert_true(took);
	assert_int_equal(manager_take("left"), -EADDRINUSE);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	fd = manager_take("left");
	assert_true(fd >= 0);
	close(fd);
	close(ready[0]);
	close(ready[1]);
}

/* Interfaces of another network namespace are others, whatever their numbers. */
TEST(manager_take__is_of_a_namespace)
{
	int status;
	pid_t child;
	int fd;

	if (!have_network)
		skip();
	fd = manager_take("lo");
	assert_true(fd >= 0);
	child = fork();
	if (child == 0)
		_exit(unshare(CLONE_NEWNET) != 0 || manager_take("lo") < 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);
}
