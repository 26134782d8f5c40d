/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/relay_port.c: frames that engines give each other. */
#include <string.h>

#include "open_fds.h"
#include "relay_rig.h"
#include "test.h"

TEST_FIXTURE(relay_set_up, relay_tear_down);

TEST(relay_open__the_port_is_as_the_carriers)
{
	assert_int_equal(env.port.mtu_bytes, 1500);
	assert_memory_equal(env.port.mac, env.main.mac, sizeof(env.port.mac));
	assert_int_equal(env.port.own_qpn_first, 0x4000);
	assert_int_equal(env.port.own_qpn_count, 64);
	assert_true(env.port.started);
	assert_true(port_connected(&env.port));
	assert_false(port_lost(&env.port));
	env.lost = true;
	assert_true(port_lost(&env.port));
}

TEST(relay_open__leaves_no_descriptor, .bare = true)
{
	const unsigned int before = fds_count();

	assert_int_equal(relay_set_up(NULL), 0);
	assert_int_equal(relay_tear_down(NULL), 0);
	assert_int_equal(fds_count(), before);
}

TEST(relay_give__frames_are_received_in_their_order)
{
	struct rte_mbuf *taken[8];

	assert_int_equal(port_rx_burst(&env.port, taken, 8), 0);
	assert_false(env.port.rx_cut);
	for (int i = 0; i < 5; i++)
		assert_true(relay_give(env.relay, &env.frames[0][i], true));
	assert_int_equal(port_rx_burst(&env.port, taken, 3), 3);
	assert_true(env.port.rx_cut);
	assert_int_equal(port_rx_burst(&env.port, taken + 3, 5), 2);
	assert_false(env.port.rx_cut);
	for (int i = 0; i < 5; i++)
		assert_ptr_equal(taken[i], &env.frames[0][i]);
}

TEST(relay_give__wakes_an_armed_port_once)
{
	struct rte_mbuf *taken[8];

	assert_true(relay_give(env.relay, &env.frames[0][0], true));
	assert_false(is_awake());
	/* A frame waits already, so the helper does not sleep. */
	assert_true(port_arm(&env.port));
	assert_int_equal(port_rx_burst(&env.port, taken, 8), 1);
	assert_false(port_arm(&env.port));
	assert_false(is_awake());
	assert_true(relay_give(env.relay, &env.frames[0][1], true));
	assert_true(is_awake());
	assert_int_equal(port_rx_burst(&env.port, taken, 8), 1);
	/* Arming forgets what the last frame rang for. */
	assert_false(port_arm(&env.port));
	assert_false(is_awake());
	assert_true(relay_give(env.relay, &env.frames[0][2], true));
	assert_true(is_awake());
}

TEST(relay_fetch__what_the_engine_sends)
{
	struct rte_mbuf *sent[FRAMES], *taken[FRAMES];
	uint16_t room;

	for (uint32_t i = 0; i < FRAMES; i++)
		sent[i] = &env.frames[0][i];
	assert_false(relay_sends(env.relay));
	assert_int_equal(relay_fetch(env.relay, taken, 8), 0);
	assert_int_equal(port_tx_burst(&env.port, sent, 3), 3);
	assert_int_equal(env.sent, 1);
	assert_true(relay_sends(env.relay));
	assert_int_equal(relay_fetch(env.relay, taken, 2), 2);
	assert_int_equal(relay_fetch(env.relay, taken + 2, 8), 1);
	assert_memory_equal(taken, sent, 3 * sizeof(taken[0]));
	/* More than there is room for: the rest stays the engine's, and the carrier is told. */
	room = port_tx_burst(&env.port, sent, FRAMES);
	assert_in_range(room, 256, FRAMES - 1);
	assert_int_equal(env.sent, 2);
	assert_int_equal(port_tx_burst(&env.port, sent + room, 1), 0);
	assert_int_equal(env.sent, 3);
	assert_int_equal(relay_fetch(env.relay, taken, 1), 1);
	assert_int_equal(port_tx_burst(&env.port, sent + room, 2), 1);
	assert_int_equal(relay_fetch(env.relay, taken + 1, FRAMES), room);
	assert_memory_equal(taken, sent, (room + 1u) * sizeof(taken[0]));
	assert_false(relay_sends(env.relay));
}

TEST(relay_taken__what_the_carrier_has_taken)
{
	struct rte_mbuf *sent[] = {&env.frames[0][0], &env.frames[0][1], &env.frames[0][2]};
	struct port_taken counts = {0};
	struct rte_mbuf *taken[3];

	assert_true(env.port.ops->taken(env.port.ops_arg, 9, false, &counts));
	assert_int_equal(counts.given, counts.taken);
	assert_int_equal(port_tx_burst(&env.port, sent, 3), 3);
	assert_true(env.port.ops->taken(env.port.ops_arg, 9, false, &counts));
	assert_int_equal(counts.given - counts.taken, 3);
	assert_int_equal(relay_fetch(env.relay, taken, 2), 2);
	assert_true(env.port.ops->taken(env.port.ops_arg, 9, false, &counts));
	assert_int_equal(counts.given - counts.taken, 1);
	assert_int_equal(relay_fetch(env.relay, taken, 2), 1);
}

TEST(relay_give__a_sleeper_never_misses_a_frame)
{
	expect_all_to_come();
}
