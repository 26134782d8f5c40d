/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles, address vectors to paths, and reply addresses from received datagrams. */
#include <string.h>

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(create_ah__holds_its_domain)
{
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	assert_non_null(ah);
	assert_ptr_equal(ah->context, *state);
	assert_ptr_equal(ah->pd, pd);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(create_ah__fails_where_there_is_no_path)
{
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	fake.resolve_result = -ENETUNREACH;
	errno = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, ENETUNREACH);
	attr.is_global = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* The network header as a datagram's buffer has it. */
union received {
	struct ibv_grh grh;
	uint8_t bytes[40];
};

static union received ipv6_header(void)
{
	union received header = {.bytes = {0x6a, 0xb1, 0x23, 0x45, 0, 100, 17, 63}};

	header.grh.sgid = (union ibv_gid){.raw = {0xfd, [15] = 9}};
	header.grh.dgid = fake.device->gids[FAKE_GID_V6].gid;
	return header;
}

/* 10.0.0.9 to 10.0.0.1, TOS 0x28, TTL 7, with a right checksum. */
static union received ipv4_header(void)
{
	return (union received){.bytes = {[20] = 0x45, 0x28, 0,	 100, 0, 0, 0x40, 0, 7, 17,
					  0x5f,	       0x58, 10, 0,   0, 9, 10,	  0, 0, 1}};
}

TEST(init__without_grh_copies_the_local_part)
{
	struct ibv_wc wc = {.slid = 5, .sl = 3, .dlid_path_bits = 2};
	struct ibv_ah_attr attr;

	assert_int_equal(ibv_init_ah_from_wc(*state, 1, &wc, NULL, &attr), 0);
	assert_int_equal(attr.is_global, 0);
	assert_int_equal(attr.dlid, 5);
	assert_int_equal(attr.sl, 3);
	assert_int_equal(attr.src_path_bits, 2);
	assert_int_equal(attr.port_num, 1);
}

TEST(init__the_packet_type_is_no_priority)
{
	struct ibv_wc wc = {.sl = 10};
	struct ibv_ah_attr attr;

	assert_int_equal(ibv_init_ah_from_wc(*state, 1, &wc, NULL, &attr), 0);
	assert_int_equal(attr.sl, 0);
}

TEST(init__from_ipv6)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	union received header = ipv6_header();
	struct ibv_ah_attr attr;

	assert_int_equal(ibv_init_ah_from_wc(*state, 1, &wc, &header.grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.grh.sgid_index, FAKE_GID_V6);
	assert_memory_equal(&attr.grh.dgid, &header.grh.sgid, 16);
	assert_int_equal(attr.grh.hop_limit, 63);
	assert_int_equal(attr.grh.traffic_class, 0xab);
	assert_int_equal(attr.grh.flow_label, 0x12345);
}

TEST(init__from_ipv4)
{
	static const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	union received header = ipv4_header();
	struct ibv_ah_attr attr;

	header.bytes[0] = 0x60; /* undefined bytes, which look like IPv6 */
	assert_int_equal(ibv_init_ah_from_wc(*state, 1, &wc, &header.grh, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, FAKE_GID_V4);
	assert_memory_equal(&attr.grh.dgid, peer, 16);
	assert_int_equal(attr.grh.hop_limit, 7);
	assert_int_equal(attr.grh.traffic_class, 0x28);
}

TEST(init__fails_for_an_address_that_is_not_ours)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	union received header = ipv6_header();
	struct ibv_ah_attr attr;

	header.grh.dgid.raw[15] = 77;
	errno = 0;
	assert_int_equal(ibv_init_ah_from_wc(*state, 1, &wc, &header.grh, &attr), -1);
	assert_int_equal(errno, ENOENT);
}

TEST(init__fails_for_other_protocols)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	union received header = ipv6_header();
	struct ibv_ah_attr attr;

	header.grh.next_hdr = 0x1b; /* RoCE v1 */
	assert_int_equal(ibv_init_ah_from_wc(*state, 1, &wc, &header.grh, &attr), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	memset(&header, 0, sizeof(header));
	assert_int_equal(ibv_init_ah_from_wc(*state, 1, &wc, &header.grh, &attr), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	header = ipv4_header();
	header.bytes[30] ^= 1; /* its checksum */
	assert_int_equal(ibv_init_ah_from_wc(*state, 1, &wc, &header.grh, &attr), -1);
	assert_int_equal(ibv_init_ah_from_wc(*state, 2, &wc, &header.grh, &attr), -1);
	assert_int_equal(errno, EINVAL);
}

TEST(create__makes_the_handle)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	union received header = ipv4_header();
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_ah *ah = ibv_create_ah_from_wc(pd, &wc, &header.grh, 1);

	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_null(ibv_create_ah_from_wc(pd, &wc, &header.grh, 2));
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

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
