/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/neigh.c. */
#include <stdint.h>
#include <string.h>

#include "net/neigh.h"
#include "test.h"

static const uint8_t peer[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xb};

static struct neigh_table table;
static uint8_t mac[6];
static bool ask;

static int set_up(TEST_STATE)
{
	memset(&table, 0, sizeof(table));
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static void numbered(uint8_t gid[GID_LEN], int n)
{
	memset(gid, 0, GID_LEN);
	gid[0] = 0xfd;
	gid[14] = (uint8_t)(n >> 8);
	gid[15] = (uint8_t)n;
}

TEST(neigh_find__asks_at_once_and_then_at_intervals)
{
	assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 0, mac, &ask));
	assert_true(ask);
	assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, NEIGH_RETRANSMIT_NS - 1,
				mac, &ask));
	assert_false(ask);
	assert_false(
		neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, NEIGH_RETRANSMIT_NS, mac, &ask));
	assert_true(ask);
}

TEST(neigh_find__knows_what_was_answered_for_its_lifetime)
{
	neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 5, mac, &ask);
	neigh_answer(&table, VLAN_NONE, peer, mac_a, true, 10);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 10 + NEIGH_LIFETIME_NS - 1,
			       mac, &ask));
	assert_memory_equal(mac, mac_a, 6);
	assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 10 + NEIGH_LIFETIME_NS, mac,
				&ask));
	assert_true(ask);
}

TEST(neigh_answer__that_nobody_asked_for_is_ignored)
{
	neigh_answer(&table, VLAN_NONE, peer, mac_a, true, 1);
	assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 2, mac, &ask));
}

TEST(neigh_answer__replaces_an_older_one)
{
	neigh_learn(&table, VLAN_NONE, peer, mac_a, 1);
	neigh_answer(&table, VLAN_NONE, peer, mac_b, true, 2);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 3, mac, &ask));
	assert_memory_equal(mac, mac_b, 6);
}

/* RFC 4861, 7.2.5. */
TEST(neigh_answer__replaces_nothing_unless_it_may)
{
	neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 1, mac, &ask);
	neigh_answer(&table, VLAN_NONE, peer, mac_a, false, 1);
	neigh_answer(&table, VLAN_NONE, peer, mac_b, false, 2);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 3, mac, &ask));
	assert_memory_equal(mac, mac_a, 6);
	/* The same address again is a confirmation. */
	neigh_answer(&table, VLAN_NONE, peer, mac_a, false, 9);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 8 + NEIGH_LIFETIME_NS, mac,
			       &ask));
}

TEST(neigh_learn__displaces_known_ones_in_turn)
{
	uint8_t gid[GID_LEN];

	for (int i = 0; i < NEIGH_MAX + 1; i++) {
		numbered(gid, i);
		neigh_learn(&table, VLAN_NONE, gid, mac_a, 1);
	}
	numbered(gid, NEIGH_MAX);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, gid, 2, mac, &ask));
	numbered(gid, 1);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, gid, 2, mac, &ask));
	numbered(gid, 0);
	assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, gid, 2, mac, &ask));
}

TEST(neigh_learn__never_displaces_a_wanted_one)
{
	uint8_t gid[GID_LEN];

	neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 1, mac, &ask);
	for (int i = 0; i < 3 * NEIGH_MAX; i++) {
		numbered(gid, i);
		neigh_learn(&table, VLAN_NONE, gid, mac_b, 2);
	}
	neigh_answer(&table, VLAN_NONE, peer, mac_a, true, 3);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 4, mac, &ask));
	assert_memory_equal(mac, mac_a, 6);
}

TEST(neigh_find__does_without_when_all_are_wanted)
{
	uint8_t gid[GID_LEN];

	for (int i = 0; i < NEIGH_MAX; i++) {
		numbered(gid, i);
		assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, gid, 1, mac, &ask));
		assert_true(ask);
	}
	assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 1, mac, &ask));
	assert_false(ask);
}

TEST(neigh_find__takes_the_place_of_those_that_never_answered)
{
	uint8_t gid[GID_LEN];

	for (int i = 0; i < NEIGH_MAX; i++) {
		numbered(gid, i);
		neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, gid, 1, mac, &ask);
	}
	assert_false(
		neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, NEIGH_ABANDON_NS, mac, &ask));
	assert_false(ask);
	assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 1 + NEIGH_ABANDON_NS, mac,
				&ask));
	assert_true(ask);
	neigh_answer(&table, VLAN_NONE, peer, mac_a, true, 2 + NEIGH_ABANDON_NS);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 3 + NEIGH_ABANDON_NS, mac,
			       &ask));
	assert_memory_equal(mac, mac_a, 6);
}

/* An untrusted client asks for a great many addresses. Others keep their entries, and get new
 * ones. */
TEST(neigh_find__limits_an_untrusted_client)
{
	uint8_t gid[GID_LEN];
	int asked = 0;

	for (int i = 0; i < NEIGH_MAX - NEIGH_WANTED_MAX; i++) {
		numbered(gid, i);
		neigh_learn(&table, VLAN_NONE, gid, mac_a, 1);
	}
	for (int i = 0; i < 3 * NEIGH_MAX; i++) {
		numbered(gid, NEIGH_MAX + i);
		assert_false(neigh_find(&table, 3, VLAN_NONE, gid, 2, mac, &ask));
		asked += ask;
	}
	assert_int_equal(asked, NEIGH_WANTED_MAX);
	for (int i = 0; i < NEIGH_MAX - NEIGH_WANTED_MAX; i++) {
		numbered(gid, i);
		assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, gid, 2, mac, &ask));
	}
	neigh_find(&table, 4, VLAN_NONE, peer, 3, mac, &ask);
	assert_true(ask);
	neigh_answer(&table, VLAN_NONE, peer, mac_b, true, 4);
	assert_true(neigh_find(&table, 4, VLAN_NONE, peer, 5, mac, &ask));
}

/* The client may ask for another address when one is answered, or when one has had no answer for
 * long. */
TEST(neigh_find__lets_an_untrusted_client_ask_again)
{
	uint8_t gid[GID_LEN];

	for (int i = 0; i < NEIGH_WANTED_MAX; i++) {
		numbered(gid, i);
		neigh_find(&table, 3, VLAN_NONE, gid, 1, mac, &ask);
		assert_true(ask);
	}
	neigh_find(&table, 3, VLAN_NONE, peer, 1, mac, &ask);
	assert_false(ask);
	/* The table goes on asking for an address that a client waits for. */
	neigh_find(&table, 3, VLAN_NONE, gid, 1 + NEIGH_RETRANSMIT_NS, mac, &ask);
	assert_true(ask);
	neigh_answer(&table, VLAN_NONE, gid, mac_a, true, 2 + NEIGH_RETRANSMIT_NS);
	neigh_find(&table, 3, VLAN_NONE, peer, 2 + NEIGH_RETRANSMIT_NS, mac, &ask);
	assert_true(ask);
	for (int i = 0; i < NEIGH_WANTED_MAX - 1; i++) {
		numbered(gid, NEIGH_MAX + i);
		neigh_find(&table, 3, VLAN_NONE, gid, 1 + NEIGH_ABANDON_NS, mac, &ask);
		assert_true(ask);
	}
}

TEST(neigh_find__displaces_unanswered_ones_first)
{
	uint8_t gid[GID_LEN];

	for (int i = 0; i < NEIGH_MAX - 1; i++) {
		numbered(gid, i);
		neigh_learn(&table, VLAN_NONE, gid, mac_a, 1 + NEIGH_ABANDON_NS);
	}
	neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 1, mac, &ask);
	numbered(gid, NEIGH_MAX);
	neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, gid, 1 + NEIGH_ABANDON_NS, mac, &ask);
	assert_true(ask);
	for (int i = 0; i < NEIGH_MAX - 1; i++) {
		numbered(gid, i);
		assert_true(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, gid, 1 + NEIGH_ABANDON_NS,
				       mac, &ask));
	}
}

TEST(neigh_find__tells_vlans_apart)
{
	neigh_learn(&table, 5, peer, mac_a, 1);
	neigh_learn(&table, 6, peer, mac_b, 1);
	assert_false(neigh_find(&table, NEIGH_TRUSTED, VLAN_NONE, peer, 2, mac, &ask));
	assert_true(neigh_find(&table, NEIGH_TRUSTED, 5, peer, 2, mac, &ask));
	assert_memory_equal(mac, mac_a, 6);
	assert_true(neigh_find(&table, NEIGH_TRUSTED, 6, peer, 2, mac, &ask));
	assert_memory_equal(mac, mac_b, 6);
}
