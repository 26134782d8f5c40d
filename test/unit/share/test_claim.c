/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of share/claim.h: what an application keeps of its frames. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "net/arp.h"
#include "net/nd.h"
#include "net/tag.h"
#include "share/claim.h"
#include "test.h"
#include "wire/headers.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t ip[4] = {10, 0, 0, 1};
static const uint8_t other_ip[4] = {10, 0, 0, 2};
static const uint8_t ipv6[GID_LEN] = {0xfd, [15] = 1};
static const uint8_t other_ipv6[GID_LEN] = {0xfd, [15] = 2};

static struct addresses own;
static uint8_t frame[256];

static int setup(TEST_STATE)
{
	struct address address = {.prefix_len = 24, .vlan = VLAN_NONE};

	memset(&own, 0, sizeof(own));
	memset(frame, 0, sizeof(frame));
	gid_from_ipv4(ip, address.gid);
	addresses_add(&own, &address);
	memcpy(address.gid, ipv6, GID_LEN);
	addresses_add(&own, &address);
	gid_from_ipv4(ip, address.gid);
	address.vlan = 5;
	addresses_add(&own, &address);
	return 0;
}

TEST_FIXTURE(setup, NULL);

static enum claim claim(size_t len)
{
	return claim_frame(&own, mac, frame, len);
}

/* An IPv4 packet of UDP; returns its length. */
static size_t build_udp(const uint8_t *dst_mac, const uint8_t *dst_ip, uint16_t port, uint32_t qpn)
{
	struct rte_ether_hdr *ether = (void *)frame;
	struct rte_ipv4_hdr *header = (void *)(ether + 1);
	struct rte_udp_hdr *udp = (void *)(header + 1);
	struct bth *bth = (void *)(udp + 1);

	memcpy(&ether->dst_addr, dst_mac, 6);
	ether->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	header->version_ihl = 0x45;
	header->next_proto_id = IPPROTO_UDP;
	memcpy(&header->dst_addr, dst_ip, 4);
	udp->dst_port = rte_cpu_to_be_16(port);
	wire_put24(bth->dest_qpn, qpn);
	return (size_t)((uint8_t *)(bth + 1) - frame);
}

TEST(claim_frame__takes_roce_to_our_mac)
{
	static const uint8_t group[4] = {224, 0, 0, 9};
	static const uint8_t group_mac[6] = {1, 0, 0x5e, 0, 0, 9};

	assert_int_equal(claim(build_udp(mac, ip, WIRE_UDP_PORT, 7)), CLAIM_ALL);
	/* The receiver checks the destination address and counts mismatches. */
	assert_int_equal(claim(build_udp(mac, other_ip, WIRE_UDP_PORT, 7)), CLAIM_ALL);
	assert_int_equal(claim(build_udp(other_mac, ip, WIRE_UDP_PORT, 7)), CLAIM_NOTHING);
	assert_int_equal(claim(build_udp(group_mac, group, WIRE_UDP_PORT, WIRE_QPN_MULTICAST)),
			 CLAIM_COPY);
}

TEST(claim_frame__takes_what_is_to_our_addresses)
{
	assert_int_equal(claim(build_udp(mac, ip, 53, 0)), CLAIM_ALL);
	assert_int_equal(claim(build_udp(mac, other_ip, 53, 0)), CLAIM_NOTHING);
}

TEST(claim_frame__takes_questions_for_us_and_copies_answers)
{
	const struct arp answer = {.sender_ip = {10, 0, 0, 2}, .target_ip = {10, 0, 0, 1}};
	struct nd asked = {.solicitation = true, .src_ip = {0xfd, [15] = 1}};

	assert_int_equal(claim(arp_build_request(frame, other_mac, other_ip, ip)), CLAIM_ALL);
	assert_int_equal(claim(arp_build_request(frame, other_mac, ip, other_ip)), CLAIM_NOTHING);
	assert_int_equal(claim(arp_build_reply(frame, other_mac, &answer)), CLAIM_COPY);
	assert_int_equal(claim(nd_build_solicitation(frame, other_mac, other_ipv6, ipv6)),
			 CLAIM_ALL);
	assert_int_equal(claim(nd_build_solicitation(frame, other_mac, ipv6, other_ipv6)),
			 CLAIM_NOTHING);
	/* An advertisement to all nodes is copied; one to our own address is ours alone. */
	assert_int_equal(claim(nd_build_advertisement(frame, other_mac, &asked)), CLAIM_COPY);
	asked.has_mac = true;
	assert_int_equal(claim(nd_build_advertisement(frame, other_mac, &asked)), CLAIM_ALL);
}

TEST(claim_frame__tells_vlans_apart)
{
	size_t len;

	len = arp_build_request(frame, other_mac, other_ip, ip);
	assert_int_equal(claim(tag_insert(frame, len, 5)), CLAIM_ALL);
	setup(state);
	len = arp_build_request(frame, other_mac, other_ip, ip);
	assert_int_equal(claim(tag_insert(frame, len, 6)), CLAIM_NOTHING);
	setup(state);
	len = nd_build_solicitation(frame, other_mac, other_ipv6, ipv6);
	assert_int_equal(claim(tag_insert(frame, len, 5)), CLAIM_NOTHING);
}

/* Every frame that ends early is one that nobody reads behind. */
TEST(claim_frame__reads_no_further_than_the_frame, .bare = true)
{
	uint8_t *short_frame;
	size_t len;

	for (int kind = 0; kind < 3; kind++) {
		setup(state);
		len = kind == 0	  ? arp_build_request(frame, other_mac, other_ip, ip)
		      : kind == 1 ? nd_build_solicitation(frame, other_mac, other_ipv6, ipv6)
				  : tag_insert(frame, build_udp(mac, ip, WIRE_UDP_PORT, 7), 5);
		for (size_t end = 0; end < len && end < 34; end++) {
			/* The byte behind it is nobody's. */
			short_frame = test_malloc(end);
			memcpy(short_frame, frame, end);
			assert_int_equal(claim_frame(&own, mac, short_frame, end), CLAIM_NOTHING);
			test_free(short_frame);
		}
	}
}
