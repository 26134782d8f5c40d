/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/link.c without a port: what comes in, what is answered, where packets go. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>

#include "config/settings.h"
#include "net/arp.h"
#include "net/link.h"
#include "net/nd.h"
#include "net/tag.h"
#include "test.h"

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t own_ip[4] = {10, 0, 0, 1};
static const uint8_t peer_ip[4] = {10, 0, 0, 2};
static const uint8_t own4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t peer4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t far4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 1, 2};
static const uint8_t own6[GID_LEN] = {0xfd, [15] = 1};
static const uint8_t peer6[GID_LEN] = {0xfd, [15] = 2};

static const struct address from4 = {.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .vlan = VLAN_NONE};
static const struct address from6 = {.gid = {0xfd, [15] = 1}, .vlan = VLAN_NONE};

static struct link link;
static uint8_t in[LINK_REPLY_MAX], out[LINK_REPLY_MAX], mac[6];

static int add(struct addresses *addresses, const uint8_t gid[GID_LEN], uint8_t prefix_len)
{
	struct address address = {.prefix_len = prefix_len, .vlan = VLAN_NONE};

	memcpy(address.gid, gid, GID_LEN);
	return addresses_add(addresses, &address);
}

static int set_up(TEST_STATE)
{
	memset(&link, 0, sizeof(link));
	memcpy(link.port.mac, own_mac, sizeof(own_mac));
	add(&link.addresses, own4, 24);
	add(&link.addresses, own6, 64);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static bool knows(const uint8_t gid[GID_LEN])
{
	bool ask;

	return neigh_find(&link.neighbours, NEIGH_TRUSTED, VLAN_NONE, gid, 1, mac, &ask);
}

TEST(link_input__answers_arp_for_us_and_learns_who_asks)
{
	const size_t len = arp_build_request(in, peer_mac, peer_ip, own_ip);
	struct arp reply;

	assert_int_equal(link_input(&link, in, len, 1, out), ARP_FRAME_LEN);
	assert_true(arp_parse(out, ARP_FRAME_LEN, &reply));
	assert_false(reply.request);
	assert_memory_equal(reply.sender_mac, own_mac, 6);
	assert_true(knows(peer4));
	assert_memory_equal(mac, peer_mac, 6);
}

TEST(link_input__is_silent_about_others_addresses)
{
	const uint8_t other_ip[4] = {10, 0, 0, 3};
	const size_t len = arp_build_request(in, peer_mac, peer_ip, other_ip);

	assert_int_equal(link_input(&link, in, len, 1, out), 0);
	assert_false(knows(peer4));
}

TEST(link_input__answers_an_arp_probe_and_learns_nobody)
{
	const uint8_t none[4] = {0};
	const uint8_t none4[GID_LEN] = {[10] = 0xff, 0xff};
	const size_t len = arp_build_request(in, peer_mac, none, own_ip);

	assert_int_equal(link_input(&link, in, len, 1, out), ARP_FRAME_LEN);
	assert_false(knows(none4));
}

/* The table is for neighbours alone. */
TEST(link_input__learns_nobody_who_is_not_on_the_link)
{
	const uint8_t far_ip[4] = {10, 0, 1, 2};
	const uint8_t far6[GID_LEN] = {0xfc, [15] = 2};
	size_t len = arp_build_request(in, peer_mac, far_ip, own_ip);

	assert_int_equal(link_input(&link, in, len, 1, out), ARP_FRAME_LEN);
	assert_false(knows(far4));
	len = nd_build_solicitation(in, peer_mac, far6, own6);
	assert_int_equal(link_input(&link, in, len, 1, out), ND_FRAME_LEN);
	assert_false(knows(far6));
}

TEST(link_input__keeps_a_neighbour_that_is_not_overridden)
{
	const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 3};
	const struct nd asked = {.target = {0xfd, [15] = 2}, .src_ip = {0xfd, [15] = 1}};
	const size_t flags = 54 + 4; /* behind Ethernet, IPv6 and ICMPv6 */
	uint16_t checksum;
	size_t len;

	assert_false(knows(peer6)); /* is wanted from here on */
	len = nd_build_advertisement(in, peer_mac, &asked);
	link_input(&link, in, len, 1, out);
	assert_true(knows(peer6));
	len = nd_build_advertisement(in, other_mac, &asked);
	assert_int_equal(in[flags], 0x20);
	in[flags] = 0;
	memcpy(&checksum, in + 54 + 2, sizeof(checksum));
	/* RFC 1624: a word of the sum is less by 0x2000. */
	checksum = (uint16_t)~checksum;
	checksum = (uint16_t)(checksum - htons(0x2000) - (checksum < htons(0x2000)));
	checksum = (uint16_t)~checksum;
	memcpy(in + 54 + 2, &checksum, sizeof(checksum));
	assert_true(nd_parse(in, len, &(struct nd){0}));
	link_input(&link, in, len, 1, out);
	assert_true(knows(peer6));
	assert_memory_equal(mac, peer_mac, 6);
}

TEST(link_input__nobody_takes_our_address)
{
	const size_t len = arp_build_request(in, peer_mac, own_ip, own_ip);

	link_input(&link, in, len, 1, out);
	assert_false(knows(own4));
}

TEST(link_input__believes_only_answers_that_were_asked_for)
{
	const struct arp request = {.sender_ip = {10, 0, 0, 1}, .target_ip = {10, 0, 0, 2}};
	const size_t len = arp_build_reply(in, peer_mac, &request);

	assert_int_equal(link_input(&link, in, len, 1, out), 0);
	assert_false(knows(peer4)); /* is wanted from here on */
	link_input(&link, in, len, 1, out);
	assert_true(knows(peer4));
	assert_memory_equal(mac, peer_mac, 6);
}

TEST(link_input__answers_neighbour_discovery)
{
	const size_t len = nd_build_solicitation(in, peer_mac, peer6, own6);
	struct nd reply;

	assert_int_equal(link_input(&link, in, len, 1, out), ND_FRAME_LEN);
	assert_true(nd_parse(out, ND_FRAME_LEN, &reply));
	assert_false(reply.solicitation);
	assert_memory_equal(reply.mac, own_mac, 6);
	assert_true(knows(peer6));
}

/* An application's only thread cannot wait for an answer: it is the one that would receive it. */
TEST(link_hear__learns_who_asks_for_a_connection)
{
	const uint8_t other_mac[6] = {2, 9, 9, 9, 9, 9};

	link_hear(&link, VLAN_NONE, peer4, peer_mac, 1);
	assert_true(knows(peer4));
	assert_memory_equal(mac, peer_mac, 6);
	/* A connection message, which is not authenticated, does not replace a known neighbour. */
	link_hear(&link, VLAN_NONE, peer4, other_mac, 2);
	assert_true(knows(peer4));
	assert_memory_equal(mac, peer_mac, 6);
}

/* Anybody can send a connection message: it may take no entry for an address that is not on the
 * link, nor bring an address of no neighbour. */
TEST(link_hear__takes_no_entry_for_what_is_no_neighbour)
{
	const uint8_t routed[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1},
		      group[6] = {1, 0, 0x5e, 0, 0, 1};
	const struct neigh_table before = link.neighbours;

	link_hear(&link, VLAN_NONE, routed, peer_mac, 1);
	link_hear(&link, VLAN_NONE, own6, peer_mac, 1);
	link_hear(&link, VLAN_NONE, peer4, group, 1);
	assert_memory_equal(&before, &link.neighbours, sizeof(before));
}

/* A packet's MAC address may lie anywhere: the sanitized build of this test checks the access. */
TEST(link_hear__takes_a_mac_address_at_an_odd_place)
{
	_Alignas(2) uint8_t packet[8] = {0};

	memcpy(packet + 1, peer_mac, 6);
	link_hear(&link, VLAN_NONE, peer4, packet + 1, 1);
	assert_true(knows(peer4));
}

TEST(link_hear__leaves_a_shared_interface_to_the_kernel)
{
	link.ifindex = 7;
	link_hear(&link, VLAN_NONE, peer4, peer_mac, 1);
	assert_false(knows(peer4));
}

TEST(link_input__leaves_a_shared_interface_to_the_kernel)
{
	size_t len = arp_build_request(in, peer_mac, peer_ip, own_ip);

	link.ifindex = 7;
	assert_int_equal(link_input(&link, in, len, 1, out), 0);
	len = nd_build_solicitation(in, peer_mac, peer6, own6);
	assert_int_equal(link_input(&link, in, len, 1, out), 0);
	/* Answers to our own questions are read all the same. */
	assert_false(knows(peer6));
	nd_parse(in, len, &(struct nd){0});
	len = nd_build_advertisement(
		in, peer_mac, &(struct nd){.target = {0xfd, [15] = 2}, .src_ip = {0xfd, [15] = 1}});
	link_input(&link, in, len, 1, out);
	assert_true(knows(peer6));
}

TEST(link_route__knows_us_and_groups)
{
	const uint8_t group[GID_LEN] = {0xff, 2, [15] = 1};
	struct link_hop hop;

	assert_int_equal(link_route(&link, &from4, own4, &hop), 0);
	assert_true(hop.known);
	assert_memory_equal(hop.mac, own_mac, 6);
	assert_int_equal(link_route(&link, &from4, group, &hop), 0);
	assert_true(hop.known);
	assert_memory_equal(hop.mac, ((uint8_t[]){0x33, 0x33, 0, 0, 0, 1}), 6);
}

TEST(link_route__reaches_what_is_in_our_prefixes)
{
	struct link_hop hop;

	assert_int_equal(link_route(&link, &from4, peer4, &hop), 0);
	assert_false(hop.known);
	assert_memory_equal(hop.gid, peer4, GID_LEN);
	assert_int_equal(link_route(&link, &from4, far4, &hop), -ENETUNREACH);
}

TEST(link_resolve__asks_in_the_family_of_the_neighbour)
{
	struct arp arp;
	struct nd nd;
	size_t len;

	assert_false(link_resolve(&link, NEIGH_TRUSTED, &from4, peer4, 1, mac, out, &len));
	assert_true(arp_parse(out, len, &arp));
	assert_memory_equal(arp.target_ip, peer_ip, 4);
	assert_memory_equal(arp.sender_ip, own_ip, 4);
	assert_false(link_resolve(&link, NEIGH_TRUSTED, &from6, peer6, 1, mac, out, &len));
	assert_true(nd_parse(out, len, &nd));
	assert_memory_equal(nd.target, peer6, 16);
	assert_memory_equal(nd.src_ip, own6, 16);
	/* Asked, and not yet time to ask again. */
	assert_false(link_resolve(&link, NEIGH_TRUSTED, &from4, peer4, 2, mac, out, &len));
	assert_int_equal(len, 0);
}

static const struct address from5 = {
	.gid = {[10] = 0xff, 0xff, 10, 0, 5, 1}, .prefix_len = 24, .vlan = 5};
static const uint8_t peer5[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 5, 2};

TEST(link_input__answers_in_the_vlan_that_has_the_address)
{
	const uint8_t ip5[4] = {10, 0, 5, 1}, peer_ip5[4] = {10, 0, 5, 2};
	size_t len = arp_build_request(in, peer_mac, peer_ip5, ip5);
	struct arp reply;
	int32_t vlan;
	bool ask;

	addresses_add(&link.addresses, &from5);
	assert_int_equal(link_input(&link, in, len, 1, out), 0);
	len = tag_insert(in, arp_build_request(in, peer_mac, peer_ip5, ip5), 6);
	assert_int_equal(link_input(&link, in, len, 1, out), 0);
	len = tag_insert(in, arp_build_request(in, peer_mac, peer_ip5, ip5), 5);
	len = link_input(&link, in, len, 1, out);
	assert_int_equal(len, ARP_FRAME_LEN + TAG_LEN);
	assert_true(arp_parse(tag_remove(out, &len, &vlan), len, &reply));
	assert_int_equal(vlan, 5);
	assert_memory_equal(reply.sender_ip, ip5, 4);
	/* The host that asked is now a neighbour in that VLAN, and in no other. */
	assert_true(neigh_find(&link.neighbours, NEIGH_TRUSTED, 5, peer5, 1, mac, &ask));
	assert_false(knows(peer5));
}

TEST(link_resolve__asks_in_the_vlan)
{
	struct link_hop hop;
	struct arp arp;
	int32_t vlan;
	size_t len;

	addresses_add(&link.addresses, &from5);
	assert_int_equal(link_route(&link, &from5, peer5, &hop), 0);
	assert_false(hop.known);
	/* The prefixes of one network are not those of another, nor are its addresses. */
	assert_int_equal(link_route(&link, &from4, peer5, &hop), -ENETUNREACH);
	assert_int_equal(link_route(&link, &from5, own4, &hop), -ENETUNREACH);
	assert_int_equal(link_route(&link, &from5, from5.gid, &hop), 0);
	assert_true(hop.known);
	assert_false(link_resolve(&link, NEIGH_TRUSTED, &from5, peer5, 1, mac, out, &len));
	assert_true(arp_parse(tag_remove(out, &len, &vlan), len, &arp));
	assert_int_equal(vlan, 5);
	assert_memory_equal(arp.sender_ip, from5.gid + 12, 4);
}

TEST(link_join__in_every_network_of_ours)
{
	const uint8_t group[GID_LEN] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
	unsigned int tagged = 0, untagged = 0;
	int32_t vlan;
	size_t len;

	groups_init(&link.groups);
	addresses_add(&link.addresses, &from5);
	assert_int_equal(link_join(&link, group, 1), 0);
	while ((len = link_report(&link, 1, out)) > 0) {
		tag_remove(out, &len, &vlan);
		tagged += vlan == 5;
		untagged += vlan == VLAN_NONE;
	}
	assert_int_equal(tagged, 1);
	assert_int_equal(untagged, 1);
	assert_true(link_leave(&link, group, 2, out, &len));
	assert_true(len > 0);
	assert_true(link_leave(&link, group, 2, out, &len));
	assert_false(link_leave(&link, group, 2, out, &len));
}

TEST(link_prepare__refuses_interfaces_and_ports_that_are_not_there)
{
	struct settings settings;

	settings_init(&settings);
	strcpy(settings.netdev, "nosuchdev");
	assert_int_equal(link_prepare(&link, &settings), -ENODEV);
	settings.netdev[0] = '\0';
	strcpy(settings.port, "net_af_packet0");
	assert_int_equal(link_prepare(&link, &settings), -EINVAL);
}
