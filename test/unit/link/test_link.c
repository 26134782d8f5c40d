/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/link/link.c without a port: what comes in, what is answered, where packets go. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/settings.h"
#include "link/arp.h"
#include "link/link.h"
#include "link/nd.h"

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t own_ip[4] = {10, 0, 0, 1};
static const uint8_t peer_ip[4] = {10, 0, 0, 2};
static const uint8_t own4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t peer4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t far4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 1, 2};
static const uint8_t own6[GID_LEN] = {0xfd, [15] = 1};
static const uint8_t peer6[GID_LEN] = {0xfd, [15] = 2};

static struct link link;
static uint8_t in[LINK_REPLY_MAX], out[LINK_REPLY_MAX], mac[6];

static int set_up(void **state)
{
	(void)state;
	memset(&link, 0, sizeof(link));
	memcpy(link.port.mac, own_mac, sizeof(own_mac));
	addresses_add(&link.addresses, own4, 24);
	addresses_add(&link.addresses, own6, 64);
	return 0;
}

static bool knows(const uint8_t gid[GID_LEN])
{
	bool ask;

	return neigh_find(&link.neighbours, gid, 1, mac, &ask);
}

static void link_input__answers_arp_for_us_and_learns_who_asks(void **state)
{
	const size_t len = arp_build_request(in, peer_mac, peer_ip, own_ip);
	struct arp reply;

	(void)state;
	assert_int_equal(link_input(&link, in, len, 1, out), ARP_FRAME_LEN);
	assert_true(arp_parse(out, ARP_FRAME_LEN, &reply));
	assert_false(reply.request);
	assert_memory_equal(reply.sender_mac, own_mac, 6);
	assert_true(knows(peer4));
	assert_memory_equal(mac, peer_mac, 6);
}

static void link_input__is_silent_about_others_addresses(void **state)
{
	const uint8_t other_ip[4] = {10, 0, 0, 3};
	const size_t len = arp_build_request(in, peer_mac, peer_ip, other_ip);

	(void)state;
	assert_int_equal(link_input(&link, in, len, 1, out), 0);
	assert_false(knows(peer4));
}

static void link_input__answers_an_arp_probe_and_learns_nobody(void **state)
{
	const uint8_t none[4] = {0};
	const uint8_t none4[GID_LEN] = {[10] = 0xff, 0xff};
	const size_t len = arp_build_request(in, peer_mac, none, own_ip);

	(void)state;
	assert_int_equal(link_input(&link, in, len, 1, out), ARP_FRAME_LEN);
	assert_false(knows(none4));
}

static void link_input__nobody_takes_our_address(void **state)
{
	const size_t len = arp_build_request(in, peer_mac, own_ip, own_ip);

	(void)state;
	link_input(&link, in, len, 1, out);
	assert_false(knows(own4));
}

static void link_input__believes_only_answers_that_were_asked_for(void **state)
{
	const struct arp request = {.sender_ip = {10, 0, 0, 1}, .target_ip = {10, 0, 0, 2}};
	const size_t len = arp_build_reply(in, peer_mac, &request);

	(void)state;
	assert_int_equal(link_input(&link, in, len, 1, out), 0);
	assert_false(knows(peer4)); /* is wanted from here on */
	link_input(&link, in, len, 1, out);
	assert_true(knows(peer4));
	assert_memory_equal(mac, peer_mac, 6);
}

static void link_input__answers_neighbour_discovery(void **state)
{
	const size_t len = nd_build_solicitation(in, peer_mac, peer6, own6);
	struct nd reply;

	(void)state;
	assert_int_equal(link_input(&link, in, len, 1, out), ND_FRAME_LEN);
	assert_true(nd_parse(out, ND_FRAME_LEN, &reply));
	assert_false(reply.solicitation);
	assert_memory_equal(reply.mac, own_mac, 6);
	assert_true(knows(peer6));
}

static void link_input__leaves_a_shared_interface_to_the_kernel(void **state)
{
	size_t len = arp_build_request(in, peer_mac, peer_ip, own_ip);

	(void)state;
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

static void link_route__knows_us_and_groups(void **state)
{
	const uint8_t group[GID_LEN] = {0xff, 2, [15] = 1};
	struct link_hop hop;

	(void)state;
	assert_int_equal(link_route(&link, own4, &hop), 0);
	assert_true(hop.known);
	assert_memory_equal(hop.mac, own_mac, 6);
	assert_int_equal(link_route(&link, group, &hop), 0);
	assert_true(hop.known);
	assert_memory_equal(hop.mac, ((uint8_t[]){0x33, 0x33, 0, 0, 0, 1}), 6);
}

static void link_route__reaches_what_is_in_our_prefixes(void **state)
{
	struct link_hop hop;

	(void)state;
	assert_int_equal(link_route(&link, peer4, &hop), 0);
	assert_false(hop.known);
	assert_memory_equal(hop.gid, peer4, GID_LEN);
	assert_int_equal(link_route(&link, far4, &hop), -ENETUNREACH);
}

static void link_resolve__asks_in_the_family_of_the_neighbour(void **state)
{
	struct arp arp;
	struct nd nd;
	size_t len;

	(void)state;
	assert_false(link_resolve(&link, own4, peer4, 1, mac, out, &len));
	assert_true(arp_parse(out, len, &arp));
	assert_memory_equal(arp.target_ip, peer_ip, 4);
	assert_memory_equal(arp.sender_ip, own_ip, 4);
	assert_false(link_resolve(&link, own6, peer6, 1, mac, out, &len));
	assert_true(nd_parse(out, len, &nd));
	assert_memory_equal(nd.target, peer6, 16);
	assert_memory_equal(nd.src_ip, own6, 16);
	/* Asked, and not yet time to ask again. */
	assert_false(link_resolve(&link, own4, peer4, 2, mac, out, &len));
	assert_int_equal(len, 0);
}

static void link_prepare__refuses_interfaces_and_ports_that_are_not_there(void **state)
{
	struct settings settings;

	(void)state;
	settings_init(&settings);
	strcpy(settings.netdev, "nosuchdev");
	assert_int_equal(link_prepare(&link, &settings), -ENODEV);
	settings.netdev[0] = '\0';
	strcpy(settings.port, "net_af_packet0");
	assert_int_equal(link_prepare(&link, &settings), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(link_input__answers_arp_for_us_and_learns_who_asks, set_up),
		cmocka_unit_test_setup(link_input__is_silent_about_others_addresses, set_up),
		cmocka_unit_test_setup(link_input__answers_an_arp_probe_and_learns_nobody, set_up),
		cmocka_unit_test_setup(link_input__nobody_takes_our_address, set_up),
		cmocka_unit_test_setup(link_input__believes_only_answers_that_were_asked_for,
				       set_up),
		cmocka_unit_test_setup(link_input__answers_neighbour_discovery, set_up),
		cmocka_unit_test_setup(link_input__leaves_a_shared_interface_to_the_kernel, set_up),
		cmocka_unit_test_setup(link_route__knows_us_and_groups, set_up),
		cmocka_unit_test_setup(link_route__reaches_what_is_in_our_prefixes, set_up),
		cmocka_unit_test_setup(link_resolve__asks_in_the_family_of_the_neighbour, set_up),
		cmocka_unit_test_setup(
			link_prepare__refuses_interfaces_and_ports_that_are_not_there, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
