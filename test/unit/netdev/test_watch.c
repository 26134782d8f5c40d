/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the watch of pmd/netdev/rtnl.c, and of what a link does with it. */
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/link.h"
#include "netdev/rtnl.h"
#include "netns.h"
#include "test.h"

static bool have_network;

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	return 0;
}

TEST_GROUP(group_set_up, NULL);

TEST(watch_changed__tells_of_each_change_once)
{
	int fd;

	if (!have_network)
		skip();
	fd = watch_open();
	assert_true(fd >= 0);
	while (watch_changed(fd))
		;
	assert_true(netns_run("ip addr add 10.7.0.5/24 dev left"));
	assert_true(watch_changed(fd));
	assert_false(watch_changed(fd));
	assert_true(netns_run("ip addr del 10.7.0.5/24 dev left"));
	assert_true(netns_run("ip -6 addr add fd07::5/64 dev left nodad"));
	assert_true(watch_changed(fd));
	assert_false(watch_changed(fd));
	close(fd);
}

/* Send more messages than the socket holds. */
TEST(watch_changed__survives_a_flood)
{
	int fd;

	if (!have_network)
		skip();
	fd = watch_open();
	assert_true(netns_run("i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); "
			      "echo addr add 10.7.$((i / 250)).$((i % 250 + 3))/32 dev right; done "
			      "| ip -batch -"));
	assert_true(watch_changed(fd));
	assert_false(watch_changed(fd));
	assert_true(netns_run("ip addr flush dev right"));
	close(fd);
}

TEST(link_refresh__reads_the_addresses_anew)
{
	const uint8_t new[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 0, 6};
	struct link link = {.watch_fd = -1};

	if (!have_network)
		skip();
	assert_false(link_refresh(&link));
	pthread_mutex_init(&link.addresses_lock, NULL);
	link.watch_fd = watch_open();
	snprintf(link.ifname, sizeof(link.ifname), "left");
	link.ifindex = if_nametoindex("left");
	assert_true(netns_run("ip addr add 10.7.0.6/24 dev left"));
	assert_true(link_refresh(&link));
	assert_true(addresses_have(&link.addresses, VLAN_NONE, new));
	assert_false(link_refresh(&link));
	assert_true(netns_run("ip addr del 10.7.0.6/24 dev left"));
	assert_true(link_refresh(&link));
	assert_false(addresses_have(&link.addresses, VLAN_NONE, new));
	close(link.watch_fd);
}
