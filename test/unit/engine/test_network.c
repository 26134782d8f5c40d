/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/network.c: link addresses of peers. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "engine_rig.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);

TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(network_resolve__finds_ourselves_and_nobody_far)
{
	const uint8_t own_ip[4] = {10, 0, 0, 1}, far_ip[4] = {192, 0, 2, 1};
	union ibv_gid gid;
	uint8_t mac[6];

	gid_from_ipv4(own_ip, gid.raw);
	rig_add_address(gid.raw);
	assert_int_equal(engine_net_ops.resolve(engine, 0, &gid, mac), 0);
	assert_memory_equal(mac, engine->link->port.mac, 6);
	gid_from_ipv4(far_ip, gid.raw);
	assert_int_equal(engine_net_ops.resolve(engine, 0, &gid, mac), -ENETUNREACH);
}
