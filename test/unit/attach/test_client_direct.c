/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of isolated processes in a direct channel. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "direct_pair.h"
#include "wire/build.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/qpn_block.h"

static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 2};

TEST_FIXTURE(pair_set_up, pair_tear_down);

static bool is_marked(const struct rte_mbuf *mbuf, const struct pair_side *by)
{
	uint8_t marked[6];

	wire_mark_sender(marked, by->qpn_first);
	return memcmp(rte_pktmbuf_mtod(mbuf, const uint8_t *) + sizeof(marked), marked,
		      sizeof(marked)) == 0;
}

/* A packet of a connection does not contain its sender's number, so the receiver marks it. */
TEST(client_direct__tells_the_sender_of_a_packet)
{
	const int kept = pair_offer();
	struct rte_mbuf *mbuf;

	assert_true(pair_try_send(&pair_sides[0], 1));
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 0);
	assert_int_equal(port_rx_burst(&pair_sides[1].link.port, &mbuf, 1), 1);
	assert_true(is_marked(mbuf, &pair_sides[0]));
	rte_pktmbuf_free(mbuf);
	close(kept);
}

TEST(client_direct__carries_packets_past_the_owner)
{
	const int kept = pair_offer();

	for (uint8_t i = 0; i < SIDES; i++) {
		assert_int_equal(pair_count_channels(&pair_sides[i]), 1);
		assert_true(pair_try_send(&pair_sides[i], i));
		assert_int_equal(pair_owner_pass(&pair_sides[i]), 0);
		pair_expect_one(&pair_sides[!i], i);
	}
	close(kept);
}

TEST(client_direct__leaves_the_rest_to_the_owner)
{
	const int kept = pair_offer();
	struct pair_wish wish = pair_wish_from(&pair_sides[0]);

	/* Nobody's number, in another block; one beyond the peer's numbers; a MAD. */
	for (int i = 0; i < 3; i++) {
		const uint32_t qpns[] = {9 << BLOCK_SHIFT, pair_sides[1].qpn_first + BLOCK_QPNS,
					 GSI_QPN};

		wish.dest_qpn = qpns[i];
		assert_true(pair_try_wish(&pair_sides[0], &wish, 1));
		assert_int_equal(pair_owner_pass(&pair_sides[0]), 1);
		assert_false(
			pair_sides[0].link.port.ops->aim(pair_sides[0].link.port.ops_arg, qpns[i]));
	}
	close(kept);
}

/* Long packets are built where the other process reads them. */
TEST(client_direct__offers_its_buffers)
{
	const struct port *port = &pair_sides[0].link.port;
	struct pair_wish wish = pair_wish_from(&pair_sides[0]);
	const int kept = pair_offer();
	uint8_t *place;
	size_t len;

	for (int i = 0; i < 2; i++) {
		const uint32_t qpn = i == 0 ? wish.dest_qpn : 0;

		assert_true(port->ops->aim(port->ops_arg, qpn));
		assert_true(port->ops->has_room(port->ops_arg));
		port->ops->expect(port->ops_arg, 1, PACKET_HDR_MAX);
		place = port->ops->place(port->ops_arg, PACKET_FRAME_MAX);
		assert_non_null(place);
		len = pair_build(place, &wish, (uint8_t)i);
		port->ops->placed(port->ops_arg, (uint32_t)len);
	}
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 0);
	port->ops->push(port->ops_arg);
	pair_expect_one(&pair_sides[1], 0);
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 1);
	pair_expect_one(&pair_sides[1], 1);
	close(kept);
}

/* A packet that was placed in a channel cannot be sealed. The next one goes to the owner. */
TEST(client_direct__forgets_what_was_not_sealed)
{
	const struct port *port = &pair_sides[0].link.port;
	struct pair_wish wish = pair_wish_from(&pair_sides[0]);
	uint8_t numbers[BURST], *place;
	const int kept = pair_offer();

	assert_true(port->ops->aim(port->ops_arg, wish.dest_qpn));
	assert_non_null(port->ops->place(port->ops_arg, PACKET_FRAME_MAX));
	wish.dest_qpn = 0;
	assert_true(port->ops->aim(port->ops_arg, 0));
	place = port->ops->place(port->ops_arg, PACKET_FRAME_MAX);
	assert_non_null(place);
	port->ops->placed(port->ops_arg, (uint32_t)pair_build(place, &wish, 1));
	port->ops->push(port->ops_arg);
	assert_int_equal(pair_receive(&pair_sides[1], numbers), 0);
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 1);
	pair_expect_one(&pair_sides[1], 1);
	close(kept);
}

TEST(client_direct__waits_until_the_owner_has_taken_earlier_packets)
{
	struct port *port = &pair_sides[0].link.port;
	uint8_t numbers[BURST];
	int kept;

	assert_true(pair_try_send(&pair_sides[0], 1));
	kept = pair_offer();
	assert_true(pair_try_send(&pair_sides[0], 2));
	for (int i = 0; i < ROUNDS; i++) {
		port->ops->send_held(port->ops_arg);
		assert_int_equal(port->tx_held, 1);
		assert_true(port->ops->aim(port->ops_arg, pair_sides[1].qpn_first));
		assert_null(port->ops->place(port->ops_arg, 1));
	}
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 1);
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, 0);
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 0);
	for (uint8_t n = 0; n < 2;) {
		const uint16_t more = pair_receive(&pair_sides[1], numbers);

		for (uint16_t i = 0; i < more; i++)
			assert_int_equal(numbers[i], ++n);
	}
	close(kept);
}

TEST(client_direct__receives_earlier_packets_of_the_owner_first)
{
	uint8_t numbers[2 * BURST];
	uint16_t n = 0;
	int kept;

	for (uint8_t i = 0; i < BURST + 4; i++)
		assert_true(pair_try_send(&pair_sides[0], i));
	pair_owner_pass(&pair_sides[0]);
	kept = pair_offer();
	for (uint8_t i = BURST + 4; i < BURST + 8; i++)
		assert_true(pair_try_send(&pair_sides[0], i));
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 0);
	for (int i = 0; i < ROUNDS && n < BURST + 8; i++)
		n = (uint16_t)(n + pair_receive(&pair_sides[1], numbers + n));
	assert_int_equal(n, BURST + 8);
	for (uint8_t i = 0; i < n; i++)
		assert_int_equal(numbers[i], i);
	close(kept);
}

TEST(client_direct__drops_and_counts_what_the_other_may_not_send)
{
	const struct pair_wish right = pair_wish_from(&pair_sides[0]);
	const int kept = pair_offer();
	struct pair_wish wrong[5];
	uint8_t numbers[BURST];

	for (int i = 0; i < 5; i++)
		wrong[i] = right;
	wrong[0].src_qpn = pair_sides[1].qpn_first;
	wrong[1].src_mac = other_mac;
	wrong[2].from = "\x0a\x00\x00\x02";
	wrong[3].dest_qpn = wrong[3].src_qpn = GSI_QPN;
	wrong[4].dest_qpn = 0;
	for (int i = 0; i < 5; i++) {
		/* As if it had not chosen its way by the number in the packet. */
		const struct port *port = &pair_sides[0].link.port;
		uint8_t *place;

		assert_true(port->ops->aim(port->ops_arg, right.dest_qpn));
		place = port->ops->place(port->ops_arg, PACKET_FRAME_MAX);
		port->ops->placed(port->ops_arg, (uint32_t)pair_build(place, &wrong[i], 0));
		port->ops->push(port->ops_arg);
		assert_int_equal(pair_receive(&pair_sides[1], numbers), 0);
		assert_int_equal(pair_sides[1].link.port.rx_refused, i + 1);
	}
	assert_true(pair_try_send(&pair_sides[0], 3));
	pair_expect_one(&pair_sides[1], 3);
	close(kept);
}

/* Fill the direct channel, and then what the port holds. */
static void fill(struct pair_side *side)
{
	struct port *port = &side->link.port;
	uint32_t sent = 0;

	while (port->tx_held == 0) {
		assert_true(pair_try_send(side, (uint8_t)sent));
		sent++;
	}
	assert_int_equal(sent, RING + 1);
	for (uint32_t i = 1; i < HELD_MAX; i++)
		assert_true(pair_try_send(side, (uint8_t)(RING + i)));
	assert_int_equal(port->tx_held, HELD_MAX);
}

/* The other process has no CPU: nothing is lost, and packets to others need not wait. */
TEST(client_direct__holds_what_the_other_has_no_room_for)
{
	struct port *port = &pair_sides[0].link.port;
	const uint32_t qpn = pair_wish_from(&pair_sides[0]).dest_qpn;
	const int kept = pair_offer();
	struct pair_wish wish = pair_wish_from(&pair_sides[0]);
	uint8_t numbers[BURST], frame[PACKET_FRAME_MAX];
	uint32_t received = 0;
	uint16_t n;

	assert_true(port->ops->aim(port->ops_arg, qpn));
	fill(&pair_sides[0]);
	assert_true(port->ops->waits(port->ops_arg, qpn));
	assert_false(port->ops->waits(port->ops_arg, 1));
	/* Nothing may overtake what is held, not even where it was aimed at before. */
	assert_null(port->ops->place(port->ops_arg, 1));
	wish.dest_qpn = 0;
	assert_true(pair_try_wish(&pair_sides[0], &wish, 1));
	assert_true(memif_server_receive(&pair_sides[0].owner, frame, sizeof(frame)) > 0);
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, HELD_MAX);
	while (received < RING + HELD_MAX) {
		n = pair_receive(&pair_sides[1], numbers);
		for (uint16_t i = 0; i < n; i++)
			assert_int_equal(numbers[i], (uint8_t)received++);
		port->ops->send_held(port->ops_arg);
	}
	assert_int_equal(port->tx_held, 0);
	assert_false(port->ops->waits(port->ops_arg, qpn));
	assert_true(port->ops->aim(port->ops_arg, qpn));
	close(kept);
}

/* What is held when the other process ends is dropped. */
TEST(client_direct__drops_what_it_holds_at_the_end)
{
	struct port *port = &pair_sides[0].link.port;
	const int kept = pair_offer();

	fill(&pair_sides[0]);
	shutdown(kept, SHUT_RDWR);
	pair_run();
	assert_int_equal(pair_count_channels(&pair_sides[0]), 0);
	assert_int_equal(port->tx_held, 0);
	assert_int_equal(port->tx_refused.packets, HELD_MAX);
	close(kept);
}

/* Datagrams may be sent while many are held. */
TEST(client_direct__drops_what_the_other_does_not_take)
{
	struct port *port = &pair_sides[0].link.port;
	const uint32_t qpn = pair_wish_from(&pair_sides[0]).dest_qpn;
	struct port_taken counts = {0};
	const int kept = pair_offer();

	fill(&pair_sides[0]);
	/* It has not taken them, and the port knows that. */
	assert_true(port->ops->taken(port->ops_arg, qpn, true, &counts));
	assert_int_equal(counts.given - counts.taken, RING);
	assert_int_equal(counts.dropped, 0);
	for (int i = 0; i < BURST; i++)
		assert_true(pair_try_send(&pair_sides[0], 3));
	assert_int_equal(port->tx_refused.packets, BURST);
	assert_true(port->ops->taken(port->ops_arg, qpn, true, &counts));
	assert_int_equal(counts.dropped, BURST);
	/* The owner's ring is another way. */
	counts.dropped = 0;
	assert_true(port->ops->taken(port->ops_arg, qpn, false, &counts));
	assert_int_equal(counts.given, counts.taken);
	assert_int_equal(counts.dropped, 0);
	assert_true(port->tx_refused.bytes > BURST);
	close(kept);
}

/* The other process has stopped: the timers of queue pairs must run, and nobody waits for it. */
TEST(client_direct__gives_up_who_takes_nothing_for_long)
{
	struct port *port = &pair_sides[0].link.port;
	const uint32_t qpn = pair_wish_from(&pair_sides[0]).dest_qpn;
	const int kept = pair_offer();
	struct client_direct *peer = pair_channel(&pair_sides[0]);
	uint8_t numbers[BURST];

	fill(&pair_sides[0]);
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, HELD_MAX);
	/* It was not tried meanwhile: this process was stopped, too. */
	peer->held.since_ns -= HELD_NS;
	peer->held.tried_ns -= HELD_NS;
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, HELD_MAX);
	peer->held.since_ns -= HELD_NS;
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, 0);
	assert_int_equal(port->tx_refused.packets, HELD_MAX);
	assert_int_equal(peer->dropped, HELD_MAX);
	assert_false(port->ops->waits(port->ops_arg, qpn));
	/* Nothing is held again before it has room. */
	assert_true(pair_try_send(&pair_sides[0], 1));
	assert_int_equal(port->tx_held, 0);
	assert_int_equal(port->tx_refused.packets, HELD_MAX + 1);
	while (pair_receive(&pair_sides[1], numbers) > 0)
		;
	fill(&pair_sides[0]);
	assert_int_equal(port->tx_held, HELD_MAX);
	close(kept);
}

/* The other process may change a packet, its length and its word at any time: each is read once. A
 * word that describes no packet is dropped, and counted. */
TEST(client_direct__drops_what_is_outside_of_its_place)
{
	const int kept = pair_offer();
	struct client_direct *direct = pair_channel(&pair_sides[0]);
	uint8_t numbers[BURST];

	assert_true(pair_try_send(&pair_sides[0], 1));
	pair_expect_one(&pair_sides[1], 1);
	direct_placed(&direct->tx, DIRECT_BUFFER_BYTES + 1, 0);
	direct_placed(&direct->tx, DIRECT_SHORT_BYTES + 1, SHARE_FLAG_SHORT);
	direct_placed(&direct->tx, 0, 0);
	direct_show(&direct->tx);
	assert_int_equal(pair_receive(&pair_sides[1], numbers), 0);
	assert_int_equal(pair_sides[1].link.port.rx_too_long, 2);
	assert_int_equal(pair_sides[1].link.port.rx_refused, 1);
	assert_true(pair_try_send(&pair_sides[0], 2));
	pair_expect_one(&pair_sides[1], 2);
	close(kept);
}

/* A burst of long packets ends where they would not fit into the nearest cache. */
TEST(client_direct__cuts_a_burst_of_long_packets)
{
	const int kept = pair_offer();
	struct client_direct *direct = pair_channel(&pair_sides[0]);
	const struct pair_wish wish = pair_wish_from(&pair_sides[0]);
	uint8_t frame[PACKET_FRAME_MAX], numbers[BURST];
	const size_t len = pair_build(frame, &wish, 1);

	assert_true(pair_try_send(&pair_sides[0], 1));
	pair_expect_one(&pair_sides[1], 1);
	assert_false(pair_sides[1].link.port.rx_cut);
	for (int i = 0; i < 6; i++) {
		memcpy(direct_buffer(&direct->tx, 0), frame, len);
		direct_placed(&direct->tx, 4096, 0);
	}
	direct_show(&direct->tx);
	assert_int_equal(pair_receive(&pair_sides[1], numbers), 4);
	assert_true(pair_sides[1].link.port.rx_cut);
	assert_int_equal(pair_receive(&pair_sides[1], numbers), 2);
	assert_false(pair_sides[1].link.port.rx_cut);
	close(kept);
}
