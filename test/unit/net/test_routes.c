/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the routes of pmd/net/neigh.c, and of what link.c believes of routers (icmp.c). */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "net/icmp.h"
#include "net/link.h"
#include "net/neigh.h"
#include "test.h"
#include "wire/headers.h"

#define GID4(a, b, c, d)                                             \
	{                                                            \
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d \
	}
#define GID6(net, last)                \
	{                              \
		0xfd, net, [15] = last \
	}
#define LOCAL(last)                     \
	{                               \
		0xfe, 0x80, [15] = last \
	}

static const uint8_t own4[] = GID4(10, 0, 0, 1), router4[] = GID4(10, 0, 0, 254),
		     other4[] = GID4(10, 0, 0, 253), far4[] = GID4(10, 2, 0, 9),
		     elsewhere4[] = GID4(10, 9, 0, 254), any4[] = GID4(0, 0, 0, 0),
		     near4[] = GID4(10, 0, 0, 7), net4[] = GID4(10, 2, 0, 0);
static const uint8_t own6[GID_LEN] = GID6(0, 1), router6[GID_LEN] = LOCAL(0xfe),
		     other6[GID_LEN] = LOCAL(0xfd), far6[GID_LEN] = GID6(2, 9), any6[GID_LEN];
static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1}, router_mac[6] = {2, 0, 0, 0, 0, 0xfe},
		     stranger_mac[6] = {2, 0, 0, 0, 0, 9};

static struct link link;
static uint8_t frame[256], reply[LINK_REPLY_MAX], hop[GID_LEN];

static void add(const uint8_t gid[GID_LEN], uint8_t prefix_len, int32_t vlan)
{
	struct address address = {.prefix_len = prefix_len, .vlan = vlan};

	memcpy(address.gid, gid, GID_LEN);
	assert_int_equal(addresses_add(&link.addresses, &address), 0);
}

/* The router has answered an address request. */
static void meet(const uint8_t gid[GID_LEN])
{
	uint8_t mac[6];
	bool ask;

	(void)neigh_find(&link.neighbours, NEIGH_TRUSTED, VLAN_NONE, gid, 1, mac, &ask);
	neigh_answer(&link.neighbours, VLAN_NONE, gid, router_mac, true, 1);
}

static int set_up(TEST_STATE)
{
	memset(&link, 0, sizeof(link));
	pthread_mutex_init(&link.addresses_lock, NULL);
	memcpy(link.port.mac, own_mac, sizeof(own_mac));
	add(own4, 24, VLAN_NONE);
	add(own6, 64, VLAN_NONE);
	assert_true(routes_add(&link.routes, any4, 96, router4));
	assert_true(routes_add(&link.routes, any6, 0, router6));
	meet(router4);
	meet(router6);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static const uint8_t *hop_to(const uint8_t to[GID_LEN])
{
	const struct address from = {.vlan = VLAN_NONE};
	struct link_hop found;

	assert_int_equal(link_route(&link, &from, to, &found), 0);
	memcpy(hop, found.gid, sizeof(hop));
	return hop;
}

TEST(link_route__takes_the_gateway_of_the_longest_prefix)
{
	assert_memory_equal(hop_to(near4), near4, GID_LEN);
	assert_memory_equal(hop_to(far4), router4, GID_LEN);
	assert_memory_equal(hop_to(far6), router6, GID_LEN);
	assert_true(routes_add(&link.routes, net4, 96 + 16, other4));
	assert_memory_equal(hop_to(far4), other4, GID_LEN);
	assert_memory_equal(hop_to(elsewhere4), router4, GID_LEN);
}

TEST(link_route__needs_a_gateway_on_the_link)
{
	const struct address from = {.vlan = 5};
	struct link_hop found;

	assert_int_equal(link_route(&link, &from, far4, &found), -ENETUNREACH);
	add((const uint8_t[])GID4(10, 5, 0, 1), 24, 5);
	assert_int_equal(link_route(&link, &from, far4, &found), -ENETUNREACH);
	assert_true(routes_add(&link.routes, net4, 96 + 16, (const uint8_t[])GID4(10, 5, 0, 254)));
	assert_int_equal(link_route(&link, &from, far4, &found), 0);
	assert_int_equal(found.gid[15], 254);
	/* A route through another network is no route here. */
	assert_memory_equal(hop_to(far4), router4, GID_LEN);
}

TEST(routes_add__has_a_limit)
{
	struct routes routes = {.count = 0};

	for (int i = 0; i < ROUTES_MAX; i++)
		assert_true(routes_add(&routes, net4, 112, router4));
	assert_false(routes_add(&routes, net4, 112, router4));
}

TEST(routes_redirect__forgets_the_oldest)
{
	uint8_t to[GID_LEN] = GID4(10, 2, 0, 0);

	for (unsigned int i = 0; i <= ROUTES_REDIRECTS_MAX; i++) {
		to[15] = (uint8_t)i;
		routes_redirect(&link.routes, VLAN_NONE, to, other4, 1);
		routes_redirect(&link.routes, VLAN_NONE, to, other4, 1);
	}
	assert_memory_equal(hop_to(to), other4, GID_LEN);
	to[15] = 1;
	assert_memory_equal(hop_to(to), other4, GID_LEN);
	to[15] = 0;
	assert_memory_equal(hop_to(to), router4, GID_LEN);
}

TEST(link_report__forgets_old_redirects)
{
	routes_redirect(&link.routes, VLAN_NONE, far4, other4, 1);
	assert_int_equal(link_report(&link, 1 + ROUTES_REDIRECT_NS, reply), 0);
	assert_memory_equal(hop_to(far4), other4, GID_LEN);
	assert_int_equal(link_report(&link, 2 + ROUTES_REDIRECT_NS, reply), 0);
	assert_memory_equal(hop_to(far4), router4, GID_LEN);
}

/* What a message of a router has. */
struct told {
	const uint8_t *mac, *from, *to, *about_from, *gateway;
	uint8_t type, code, hop_limit;
	uint16_t port;
	uint32_t mtu;
	size_t cut; /* bytes that are missing at the end */
	bool spoilt;
};

static size_t build4(const struct told *told)
{
	struct rte_ether_hdr eth = {.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)};
	struct rte_udp_hdr udp = {.dst_port = rte_cpu_to_be_16(told->port)};
	struct rte_ipv4_hdr ip = {.version_ihl = RTE_IPV4_VHL_DEF, .next_proto_id = IPPROTO_ICMP};
	struct rte_ipv4_hdr about = {.version_ihl = RTE_IPV4_VHL_DEF, .next_proto_id = IPPROTO_UDP};
	uint8_t *l3 = frame + sizeof(eth), *l4 = l3 + sizeof(ip);
	const size_t l4_len = 8 + sizeof(about) + sizeof(udp) - told->cut;
	uint16_t sum;

	memset(frame, 0, sizeof(frame));
	memcpy(&eth.src_addr, told->mac, 6);
	memcpy(frame, &eth, sizeof(eth));
	memcpy(&ip.src_addr, told->from + GID_IPV4_OFFSET, 4);
	memcpy(&ip.dst_addr, told->to + GID_IPV4_OFFSET, 4);
	ip.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(ip) + l4_len));
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(l3, &ip, sizeof(ip));
	l4[0] = told->type;
	l4[1] = told->code;
	if (told->gateway)
		memcpy(l4 + 4, told->gateway + GID_IPV4_OFFSET, 4);
	else
		memcpy(l4 + 6, &(rte_be16_t){rte_cpu_to_be_16((uint16_t)told->mtu)}, 2);
	memcpy(&about.src_addr, told->about_from + GID_IPV4_OFFSET, 4);
	memcpy(&about.dst_addr, far4 + GID_IPV4_OFFSET, 4);
	memcpy(l4 + 8, &about, sizeof(about));
	memcpy(l4 + 8 + sizeof(about), &udp, sizeof(udp));
	sum = (uint16_t)~rte_raw_cksum(l4, l4_len);
	sum = (uint16_t)(sum + told->spoilt);
	memcpy(l4 + 2, &sum, sizeof(sum));
	return sizeof(eth) + sizeof(ip) + l4_len;
}

static size_t build6(const struct told *told)
{
	struct rte_ether_hdr eth = {.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)};
	struct rte_ipv6_hdr ip = {.vtc_flow = rte_cpu_to_be_32(6u << 28),
				  .proto = IPPROTO_ICMPV6,
				  .hop_limits = told->hop_limit};
	struct rte_ipv6_hdr about = {.vtc_flow = rte_cpu_to_be_32(6u << 28), .proto = IPPROTO_UDP};
	struct rte_udp_hdr udp = {.dst_port = rte_cpu_to_be_16(told->port)};
	uint8_t *l3 = frame + sizeof(eth), *l4 = l3 + sizeof(ip);
	size_t l4_len = 8;
	uint16_t sum;

	memset(frame, 0, sizeof(frame));
	memcpy(&eth.src_addr, told->mac, 6);
	memcpy(frame, &eth, sizeof(eth));
	memcpy(&ip.src_addr, told->from, GID_LEN);
	memcpy(&ip.dst_addr, told->to, GID_LEN);
	l4[0] = told->type;
	l4[1] = told->code;
	if (told->gateway) {
		memcpy(l4 + 8, told->gateway, GID_LEN);
		memcpy(l4 + 8 + GID_LEN, far6, GID_LEN);
		l4_len += 2 * (size_t)GID_LEN;
	} else {
		memcpy(l4 + 4, &(rte_be32_t){rte_cpu_to_be_32(told->mtu)}, 4);
		memcpy(&about.src_addr, told->about_from, GID_LEN);
		memcpy(&about.dst_addr, far6, GID_LEN);
		memcpy(l4 + 8, &about, sizeof(about));
		memcpy(l4 + 8 + sizeof(about), &udp, sizeof(udp));
		l4_len += sizeof(about) + sizeof(udp);
	}
	l4_len -= told->cut;
	ip.payload_len = rte_cpu_to_be_16((uint16_t)l4_len);
	memcpy(l3, &ip, sizeof(ip));
	sum = rte_ipv6_udptcp_cksum(&ip, l4);
	sum = (uint16_t)(sum + told->spoilt);
	memcpy(l4 + 2, &sum, sizeof(sum));
	return sizeof(eth) + sizeof(ip) + l4_len;
}

/* Return true if packets to the far host take another gateway after a redirect. */
static bool believes(const struct told *told, bool is_ipv4)
{
	const uint8_t *to = is_ipv4 ? far4 : far6;
	const size_t len = is_ipv4 ? build4(told) : build6(told);

	memset(link.routes.redirects, 0, sizeof(link.routes.redirects));
	link.routes.redirect_count = 0;
	assert_int_equal(link_input(&link, frame, len, 2, reply), 0);
	return memcmp(hop_to(to), is_ipv4 ? router4 : router6, GID_LEN) != 0;
}

TEST(link_input__believes_redirects_of_the_gateway_alone)
{
	const struct told good = {.mac = router_mac,
				  .from = router4,
				  .to = own4,
				  .about_from = own4,
				  .gateway = other4,
				  .type = 5,
				  .code = 1,
				  .port = WIRE_UDP_PORT};
	struct told told;

	assert_true(believes(&good, true));
	assert_memory_equal(hop_to(far4), other4, GID_LEN);
#define REFUSES(member, value)                          \
	do {                                            \
		told = good;                            \
		told.member = value;                    \
		assert_false(believes(&told, is_ipv4)); \
	} while (0)
	{
		const bool is_ipv4 = true;

		REFUSES(mac, stranger_mac);
		REFUSES(from, other4);
		REFUSES(to, near4);
		REFUSES(about_from, near4);
		REFUSES(gateway, elsewhere4);
		REFUSES(gateway, own4);
		REFUSES(type, 4);
		REFUSES(port, 4792);
		REFUSES(cut, 1);
		REFUSES(spoilt, true);
	}
	told = good;
	told.gateway = far4; /* only IPv6 lets a router say that a host is a neighbour */
	assert_false(believes(&told, true));
}

TEST(link_input__believes_ipv6_redirects_of_the_gateway_alone)
{
	const struct told good = {.mac = router_mac,
				  .from = router6,
				  .to = own6,
				  .gateway = other6,
				  .type = 137,
				  .hop_limit = 255};
	const bool is_ipv4 = false;
	struct told told;

	assert_true(believes(&good, false));
	assert_memory_equal(hop_to(far6), other6, GID_LEN);
	REFUSES(mac, stranger_mac);
	REFUSES(from, own6);
	REFUSES(to, far6);
	REFUSES(gateway, own6);
	REFUSES(type, 136);
	REFUSES(code, 1);
	REFUSES(hop_limit, 254);
	REFUSES(cut, 1);
	REFUSES(spoilt, true);
	told = good;
	told.gateway = far6;
	assert_true(believes(&told, false));
	assert_memory_equal(hop_to(far6), far6, GID_LEN);
}

/* What uses no gateway cannot be redirected. */
TEST(link_input__no_redirect_of_a_neighbour)
{
	const uint8_t to[GID_LEN] = GID4(10, 0, 0, 9);

	assert_memory_equal(hop_to(to), to, GID_LEN);
	routes_redirect(&link.routes, VLAN_NONE, to, other4, 1);
	assert_memory_equal(hop_to(to), to, GID_LEN);
}

TEST(icmp_parse__says_what_is_too_long)
{
	const struct told told4 = {.mac = stranger_mac,
				   .from = elsewhere4,
				   .to = own4,
				   .about_from = own4,
				   .type = 3,
				   .code = 4,
				   .port = WIRE_UDP_PORT,
				   .mtu = 1400};
	const struct told told6 = {.mac = stranger_mac,
				   .from = far6,
				   .to = own6,
				   .about_from = own6,
				   .type = 2,
				   .port = WIRE_UDP_PORT,
				   .mtu = 1280};
	struct icmp_notice notice;
	struct told other = told4;
	size_t len = build4(&told4);

	assert_true(icmp_parse(&link.addresses, VLAN_NONE, frame, len, &notice));
	assert_int_equal(notice.kind, ICMP_TOO_LONG);
	assert_int_equal(notice.mtu_bytes, 1400);
	assert_memory_equal(notice.to, far4, GID_LEN);
	assert_memory_equal(notice.from, elsewhere4, GID_LEN);
	other.code = 1;
	len = build4(&other);
	assert_false(icmp_parse(&link.addresses, VLAN_NONE, frame, len, &notice));
	len = build6(&told6);
	assert_true(icmp_parse(&link.addresses, VLAN_NONE, frame, len, &notice));
	assert_int_equal(notice.kind, ICMP_TOO_LONG);
	assert_int_equal(notice.mtu_bytes, 1280);
	assert_memory_equal(notice.to, far6, GID_LEN);
	/* No part of a message is read beyond its end. */
	for (size_t cut = 1; cut < len; cut++)
		assert_false(icmp_parse(&link.addresses, VLAN_NONE, frame, len - cut, &notice));
}
