/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/netdev/manager.c: one process of an interface. */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/own.h"
#include "netdev/manager.h"
#include "netns.h"
#include "test.h"

#define NOBODY 65534

static bool have_network;

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	return 0;
}

TEST_GROUP(group_set_up, NULL);

/* Return the descriptor that has the right to an interface, or -errno. */
static int take(const char *ifname)
{
	int fd = manager_open(), rc;

	if (fd < 0)
		return fd;
	rc = manager_take(&fd, ifname);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

TEST(manager_take__gives_each_interface_to_one)
{
	int left, right;

	if (!have_network)
		skip();
	left = take("left");
	right = take("right");
	assert_true(left >= 0 && right >= 0);
	assert_int_equal(take("left"), -EADDRINUSE);
	/* Who has it may ask again. */
	assert_int_equal(manager_take(&left, "left"), 0);
	close(left);
	assert_int_equal(take("right"), -EADDRINUSE);
	left = take("left");
	assert_true(left >= 0);
	close(left);
	close(right);
}

TEST(manager_take__needs_an_interface)
{
	if (!have_network)
		skip();
	assert_int_equal(take("nothing"), -ENODEV);
}

TEST(manager_take__works_on_an_interface_that_is_down)
{
	int fd;

	if (!have_network)
		skip();
	assert_true(netns_run("ip link set left down"));
	fd = take("left");
	assert_true(fd >= 0);
	assert_true(netns_run("ip link set left up"));
	assert_int_equal(take("left"), -EADDRINUSE);
	close(fd);
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
		took = take("left") >= 0;
		if (write(ready[1], &took, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &took, 1), 1);
	assert_true(took);
	assert_int_equal(take("left"), -EADDRINUSE);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	fd = take("left");
	assert_true(fd >= 0);
	close(fd);
	close(ready[0]);
	close(ready[1]);
}

/* Return a socket that a process without privilege may get. */
static int lent(const char *ifname)
{
	const struct sockaddr_ll address = {.sll_family = AF_PACKET,
					    .sll_protocol = htons(ETH_P_ALL),
					    .sll_ifindex = (int)if_nametoindex(ifname)};
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* The process that gets it can neither take a right, nor receive on another interface. */
TEST(manager_exclude__keeps_a_socket_from_every_interface)
{
	const struct sockaddr_ll right = {.sll_family = AF_PACKET,
					  .sll_protocol = htons(ETH_P_ALL),
					  .sll_ifindex = (int)if_nametoindex("right")};
	int fds[3], fd;

	if (!have_network)
		skip();
	for (size_t i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = lent("left");
		assert_int_equal(manager_exclude(fds[i]), 0);
		/* The kernel says that the socket has a group, and does not change it. */
		own_mark(fds[i]);
		fd = fds[i];
		assert_int_equal(manager_take(&fd, "right"), 0);
		assert_int_equal(fd, fds[i]);
		assert_int_equal(bind(fds[i], (const struct sockaddr *)&right, sizeof(right)), -1);
		assert_int_equal(errno, EINVAL);
	}
	fd = take("right");
	assert_true(fd >= 0);
	close(fd);
	fd = take("left");
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < RTE_DIM(fds); i++)
		close(fds[i]);
}

/* A user without privileges cannot take the right, nor keep others from it by any name. */
TEST(manager_take__needs_a_privilege)
{
	int ready[2], done[2], status, fd;
	char name[64], took;
	pid_t child;

	if (!have_network || geteuid() != 0)
		skip();
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(done), 0);
	child = fork();
	if (child == 0) {
		struct sockaddr_un abstract = {.sun_family = AF_UNIX};
		const int len =
			snprintf(name, sizeof(name), "uroce-rdma_cm-%u", if_nametoindex("left"));

		memcpy(abstract.sun_path + 1, name, (size_t)len);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		took = setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0 ||
		       bind(fd, (const struct sockaddr *)&abstract,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					(size_t)len)) != 0 ||
		       manager_open() != -EPERM;
		if (write(ready[1], &took, 1) != 1)
			_exit(1);
		_exit(read(done[0], &took, 1) != 1);
	}
	assert_int_equal(read(ready[0], &took, 1), 1);
	assert_false(took);
	fd = take("left");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(write(done[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ready[0]);
	close(ready[1]);
	close(done[0]);
	close(done[1]);
}

/* The right may be taken when the privilege is gone. */
TEST(manager_take__needs_no_privilege_later)
{
	int status, fd;
	pid_t child;

	if (!have_network || geteuid() != 0)
		skip();
	child = fork();
	if (child == 0) {
		fd = manager_open();
		_exit(fd < 0 || setuid(NOBODY) != 0 || manager_take(&fd, "left") != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A program closes all descriptors, to become a daemon. */
TEST(manager_take__survives_the_end_of_its_descriptor)
{
	int fd, other = -1;

	if (!have_network)
		skip();
	fd = manager_open();
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(manager_take(&fd, "left"), 0);
	assert_int_equal(manager_take(&other, "left"), -EADDRINUSE);
	close(fd);
	close(other);
}

/* Interfaces of another network namespace are others, whatever their numbers. */
TEST(manager_take__is_of_a_namespace)
{
	int status;
	pid_t child;
	int fd;

	if (!have_network)
		skip();
	fd = take("lo");
	assert_true(fd >= 0);
	child = fork();
	if (child == 0)
		_exit(unshare(CLONE_NEWNET) != 0 || take("lo") < 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);
}
