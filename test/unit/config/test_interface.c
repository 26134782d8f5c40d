/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/settings.c: the interface that is meant. */
#include "value.h"
#include "netns.h"
#include "test.h"

static bool have_network;

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	return 0;
}

TEST_GROUP(group_set_up, NULL);

TEST(interface_to_others__follows_the_routes)
{
	char name[IF_NAMESIZE];

	if (!have_network)
		skip();
	assert_false(interface_to_others(name));
	assert_true(netns_run("ip -6 addr add fd08::1/64 dev right nodad && "
			      "ip -6 route add default via fd08::9 dev right"));
	assert_true(interface_to_others(name));
	assert_string_equal(name, "right");
	/* IPv4 comes first. */
	assert_true(netns_run("ip route add default via 10.7.0.9 dev left"));
	assert_true(interface_to_others(name));
	assert_string_equal(name, "left");
}
