/* SPDX-License-Identifier: BSD-3-Clause */
/* Address vectors to paths. */
#include <string.h>

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

/* The source port stands first in the UDP header. */
static uint16_t sport(const struct path *path)
{
	return (uint16_t)(path->hdr[path->l4_off] << 8 | path->hdr[path->l4_off + 1]);
}

static uint16_t sport_of(const struct ibv_ah_attr *attr, uint32_t qpn, uint32_t dest_qpn)
{
	struct path path;

	assert_int_equal(path_resolve(fake.device, attr, qpn, dest_qpn, &path), 0);
	return sport(&path);
}

TEST(resolve__writes_the_peers_link_address)
{
	const struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V6);
	const uint8_t mac[6] = {2, 3, 4, 5, 6, 7};
	struct path path;

	memcpy(fake.mac, mac, sizeof(mac));
	assert_int_equal(path_resolve(fake.device, &attr, 2, 3, &path), 0);
	assert_memory_equal(path.hdr, mac, sizeof(mac));
	assert_memory_equal(path.hdr + 6, fake.device->config.mac, 6);
	assert_true(path.ipv6);
}

/* A connection has that of the route, an address handle what the program says. */
TEST(resolve__hop_limit)
{
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct path path;

	attr.grh.hop_limit = 1;
	assert_int_equal(path_resolve(fake.device, &attr, 2, 3, &path), 0);
	assert_int_equal(path.hdr[path.l3_off + 8], 64);
	assert_int_equal(path_resolve(fake.device, &attr, 0, 0, &path), 0);
	assert_int_equal(path.hdr[path.l3_off + 8], 1);
}

TEST(resolve__takes_the_port_of_the_flow_label)
{
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);

	attr.grh.flow_label = 0x12345;
	assert_int_equal(sport_of(&attr, 2, 3), ibv_flow_label_to_udp_sport(0x12345));
}

TEST(resolve__spreads_connections_over_ports)
{
	const struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	unsigned int different = 0;
	uint16_t last = 0;

	for (uint32_t qpn = 0x100; qpn < 0x200; qpn++) {
		const uint16_t port = sport_of(&attr, qpn, 0xabcdef);

		assert_true(port >= 0xc000);
		assert_int_equal(port, sport_of(&attr, qpn, 0xabcdef));
		different += port != last;
		last = port;
	}
	assert_true(different > 200);
}

TEST(resolve__refuses_a_wrong_address_without_asking_for_it)
{
	const struct ibv_ah_attr good = fake_ah_attr(FAKE_GID_V4);
	struct ibv_ah_attr attr = good;
	struct path path;

	attr.is_global = 0;
	assert_int_equal(path_resolve(fake.device, &attr, 2, 3, &path), -EINVAL);
	attr = good;
	attr.port_num = 2;
	assert_int_equal(path_resolve(fake.device, &attr, 2, 3, &path), -EINVAL);
	attr = good;
	attr.grh.sgid_index = 2; /* free */
	assert_int_equal(path_resolve(fake.device, &attr, 2, 3, &path), -EINVAL);
	attr = good;
	attr.grh.sgid_index = FAKE_GID_V6; /* of the other family */
	assert_int_equal(path_resolve(fake.device, &attr, 2, 3, &path), -EINVAL);
	assert_int_equal(fake.resolves, 0);
}

TEST(resolve_eth_l2_from_gid__gives_address_and_vlan)
{
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	uint8_t mac[6] = {0};
	uint16_t vid = 1;

	assert_int_equal(ibv_resolve_eth_l2_from_gid(*state, &attr, mac, &vid), 0);
	assert_memory_equal(mac, fake.mac, 6);
	assert_int_equal(vid, 0xffff);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(*state, &attr, mac, NULL), 0);
	fake.resolve_result = -ETIMEDOUT;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(*state, &attr, mac, NULL), -ETIMEDOUT);
	attr.grh.sgid_index = 255;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(*state, &attr, mac, NULL), -EINVAL);
}
