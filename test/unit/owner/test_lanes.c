/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the owner's part in lanes: who is offered one, and what comes back when, whatever stands
 * in its memory. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lanes.h"
#include "server.h"
#include "share/lane.h"
#include "share/message.h"
#include "test.h"

#define PROCESSES 3
#define BUFFERS	  64
#define PACKETS	  64 /* after as many there surely is a lane */

/* An owner without a port, and what its processes have of lanes. */
struct rig {
	struct server server;
	struct share_page pages[PROCESSES];
	struct rte_mbuf mbufs[BUFFERS];
	int sockets[PROCESSES];
};

static int setup(void **state)
{
	struct rig *rig = aligned_alloc(_Alignof(struct rig), sizeof(*rig));
	struct server *server = &rig->server;
	int pair[2];

	assert_non_null(rig);
	memset(rig, 0, sizeof(*rig));
	LIST_INIT(&server->lanes.list);
	assert_int_equal(ownership_init(&server->arena.ownership, BUFFERS, 256, SERVE_SLOTS_MAX,
					SHARE_HELD_MAX),
			 0);
	server->arena.mbufs = test_calloc(BUFFERS, sizeof(server->arena.mbufs[0]));
	for (int i = 0; i < BUFFERS; i++) {
		/* Hold one more reference, so that a returned buffer stays visible here. */
		server->arena.mbufs[i] = &rig->mbufs[i];
		rte_mbuf_refcnt_set(server->arena.mbufs[i], 2);
	}
	for (int i = 0; i < PROCESSES; i++) {
		struct slot *slot = &server->slots.all[i];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		slot->state = SLOT_LIVE;
		slot->has_full_share = true;
		slot->socket = pair[0];
		rig->sockets[i] = pair[1];
		slot->lanes_fd = pair[0];
		slot->page = &rig->pages[i];
		slot->qpn_first = (uint32_t)(i + 1) << BLOCK_SHIFT;
	}
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	lanes_destroy(&rig->server);
	for (int i = 0; i < PROCESSES; i++) {
		close(rig->sockets[i]);
		close(rig->server.slots.all[i].socket);
	}
	ownership_fini(&rig->server.arena.ownership);
	test_free(rig->server.arena.mbufs);
	free(rig);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static bool take_offer(struct rig *rig, int process, struct share_message *message,
		       struct lane_memory **memory)
{
	int fds[SHARE_FDS];

	if (message_receive(rig->sockets[process], message, fds) != 0)
		return false;
	assert_int_equal(message->type, SHARE_LANE);
	*memory = mmap(NULL, sizeof(**memory), PROT_READ | PROT_WRITE, MAP_SHARED,
		       fds[SHARE_LANE_FD_MEMORY], 0);
	assert_ptr_not_equal(*memory, MAP_FAILED);
	close(fds[SHARE_LANE_FD_MEMORY]);
	close(fds[SHARE_LANE_FD_PEER]);
	return true;
}

/* Let two processes talk; what both have of the lane then. */
static void talk(struct rig *rig, uint16_t a, uint16_t b, struct lane_tx *tx, struct lane_rx *rx)
{
	struct share_message message;
	struct lane_tx other_tx;
	struct lane_rx other_rx;
	struct lane_memory *memory = NULL;

	for (int i = 0; i < PACKETS; i++)
		lanes_note(&rig->server, a, b);
	assert_true(take_offer(rig, a, &message, &memory));
	assert_int_equal(message.offer.peer, b);
	assert_int_equal(message.offer.qpn_first, (uint32_t)(b + 1) << BLOCK_SHIFT);
	assert_int_equal(rig->pages[a].lanes[b], message.offer.number);
	lane_init(tx, &other_rx, memory, message.offer.side);
	assert_true(take_offer(rig, b, &message, &memory));
	assert_int_equal(rig->pages[b].lanes[a], message.offer.number);
	lane_init(&other_tx, rx, memory, message.offer.side);
}

static void put(struct rig *rig, struct lane_tx *tx, uint16_t holder, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++) {
		const struct share_packet packet = {.buffer = i, .len = LANE_SHORT_BYTES + 1};
		const uint8_t *frame = NULL;

		if (i < BUFFERS)
			ownership_give(&rig->server.arena.ownership, i, holder);
		assert_int_equal(lane_put(tx, &packet, &frame, 1), 1);
	}
}

static void count_buffer(uint32_t buffer, void *arg)
{
	(void)buffer;
	++*(uint32_t *)arg;
}

/* The process ends; returns how many buffers come back at once. */
static uint32_t end(struct rig *rig, uint16_t number)
{
	uint32_t count = 0;

	lanes_close(&rig->server, number);
	lanes_end(&rig->server, number);
	ownership_reclaim(&rig->server.arena.ownership, number, count_buffer, &count);
	rig->server.slots.all[number].state = SLOT_FREE;
	return count;
}

static uint32_t come_back(const struct rig *rig)
{
	uint32_t count = 0;

	for (int i = 0; i < BUFFERS; i++)
		count += rte_mbuf_refcnt_read(&rig->mbufs[i]) == 1;
	return count;
}

TEST(lanes_note__offers_one_to_both)
{
	struct rig *rig = *state;
	struct share_message message;
	struct lane_tx tx;
	struct lane_rx rx;
	struct lane_memory *memory;

	talk(rig, 0, 1, &tx, &rx);
	for (int i = 0; i < 10 * PACKETS; i++) {
		lanes_note(&rig->server, 0, 1);
		lanes_note(&rig->server, 1, 0);
	}
	assert_false(take_offer(rig, 0, &message, &memory));
	assert_false(take_offer(rig, 1, &message, &memory));
	assert_int_equal(rig->server.totals.lanes, 1);
	put(rig, &tx, 0, 0, 3);
	assert_true(lane_waits(&rx));
}

TEST(lanes_note__none_where_all_passes_the_owner)
{
	struct rig *rig = *state;
	struct share_message message;
	struct lane_memory *memory;

	rig->server.lanes.passes_all = true;
	for (int i = 0; i < 10 * PACKETS; i++)
		lanes_note(&rig->server, 0, 1);
	assert_false(take_offer(rig, 0, &message, &memory));
}

/* The device of process 0 has two engines, and the slot of the second one is 2. */
static void add_engine(struct rig *rig)
{
	struct slot *slots = rig->server.slots.all;

	slots[0].engine_count = 2;
	slots[0].engine_slots[0] = BLOCK_NONE;
	slots[0].engine_slots[1] = 2;
	slots[2].is_further = true;
	slots[2].first = 0;
	slots[2].engine = 1;
	slots[2].qpn_first = slots[0].qpn_first;
}

TEST(lanes_note__offers_one_to_each_engine)
{
	struct rig *rig = *state;
	struct share_message message;
	struct lane_memory *memory;

	add_engine(rig);
	for (int i = 0; i < PACKETS; i++) {
		lanes_note(&rig->server, 1, 0);
		lanes_note(&rig->server, 1, 2);
	}
	assert_int_equal(rig->server.totals.lanes, 2);
	assert_true(take_offer(rig, 1, &message, &memory));
	assert_int_equal(message.offer.peer, 0);
	assert_int_equal(message.offer.engines, 2);
	assert_int_equal(message.offer.served, 0x1);
	assert_true(take_offer(rig, 1, &message, &memory));
	assert_int_equal(message.offer.peer, 2);
	assert_int_equal(message.offer.qpn_first, 1u << BLOCK_SHIFT);
	assert_int_equal(message.offer.engines, 2);
	assert_int_equal(message.offer.served, 0x2);
	/* The other process's device has one engine. */
	assert_true(take_offer(rig, 2, &message, &memory));
	assert_int_equal(message.offer.peer, 1);
	assert_int_equal(message.offer.engines, 1);
	assert_int_equal(message.offer.served, 0x1);
}

/* They pass packets to each other inside their process. */
TEST(lanes_note__none_between_engines_of_a_process)
{
	struct rig *rig = *state;
	struct share_message message;
	struct lane_memory *memory;

	add_engine(rig);
	for (int i = 0; i < 10 * PACKETS; i++) {
		lanes_note(&rig->server, 0, 2);
		lanes_note(&rig->server, 2, 0);
	}
	assert_false(take_offer(rig, 0, &message, &memory));
	assert_false(take_offer(rig, 2, &message, &memory));
}

TEST(lanes_note__withdraws_what_one_cannot_be_told)
{
	struct rig *rig = *state;
	struct share_message message;
	struct lane_memory *memory;

	close(rig->sockets[1]);
	for (int i = 0; i < PACKETS; i++)
		lanes_note(&rig->server, 0, 1);
	take_offer(rig, 0, &message, &memory);
	assert_int_equal(rig->pages[0].lanes[1], 0);
	assert_int_equal(rig->server.totals.lanes, 0);
}

TEST(lanes_end__sets_aside_what_is_lent_until_it_is_given_back)
{
	struct rig *rig = *state;
	struct share_packet packets[4];
	struct lane_tx tx;
	struct lane_rx rx;
	uint32_t first;

	talk(rig, 0, 1, &tx, &rx);
	put(rig, &tx, 0, 0, 4);
	assert_int_equal(lane_take(&rx, packets, 2, &first), 2);
	lane_done(&rx, first);
	lane_give_back(&rx);
	/* There are four buffers: the receiver has returned one and reads another one, and two
	 * wait. */
	assert_int_equal(end(rig, 0), 1);
	assert_int_equal(rig->pages[1].lanes[0], 0);
	assert_int_equal(rig->server.arena.ownership.aside, 3);
	lanes_look(&rig->server);
	assert_int_equal(come_back(rig), 0);
	assert_int_equal(lane_take(&rx, packets, 2, &first), 2);
	for (uint32_t i = 1; i < 4; i++)
		lane_done(&rx, i);
	lane_give_back(&rx);
	lanes_look(&rig->server);
	assert_int_equal(come_back(rig), 3);
	assert_int_equal(rig->server.arena.ownership.aside, 0);
}

/* A packet beside its ring word uses no buffer; one that was announced and not put is not there. */
TEST(lanes_end__leaves_out_what_is_in_no_buffer)
{
	const struct share_packet packet = {.buffer = 1, .len = 1};
	const uint8_t *frame = &(const uint8_t){5};
	struct rig *rig = *state;
	struct share_packet packets[4];
	struct lane_tx tx;
	struct lane_rx rx;
	uint32_t first;

	talk(rig, 0, 1, &tx, &rx);
	put(rig, &tx, 0, 0, 1);
	ownership_give(&rig->server.arena.ownership, 1, 0);
	assert_int_equal(lane_put(&tx, &packet, &frame, 1), 1);
	tx.ring->prod = 4;
	assert_int_equal(end(rig, 0), 1);
	assert_int_equal(rig->server.arena.ownership.aside, 1);
	lane_end(&rx);
	assert_int_equal(lane_take(&rx, packets, 4, &first), 2);
	for (uint32_t i = 0; i < 2; i++)
		lane_done(&rx, i);
	lane_give_back(&rx);
	lanes_look(&rig->server);
	assert_int_equal(come_back(rig), 1);
}

TEST(lanes_end__of_the_other_takes_back_all)
{
	struct rig *rig = *state;
	struct lane_tx tx;
	struct lane_rx rx;

	talk(rig, 0, 1, &tx, &rx);
	put(rig, &tx, 0, 0, 4);
	assert_int_equal(end(rig, 0), 0);
	assert_int_equal(end(rig, 1), 0);
	assert_int_equal(come_back(rig), 4);
	assert_int_equal(rig->server.arena.ownership.aside, 0);
	/* Buffers lent to a reader belong to their sender until they are returned. */
	assert_true(LIST_EMPTY(&rig->server.lanes.list));
}

TEST(lanes_end__of_the_receiver_leaves_all_to_the_sender)
{
	struct rig *rig = *state;
	struct lane_tx tx;
	struct lane_rx rx;

	talk(rig, 0, 1, &tx, &rx);
	put(rig, &tx, 0, 0, 4);
	assert_int_equal(end(rig, 1), 0);
	assert_int_equal(rig->pages[0].lanes[1], 0);
	assert_int_equal(rig->server.arena.ownership.held[0], 4);
	assert_int_equal(rig->server.arena.ownership.aside, 0);
	assert_int_equal(end(rig, 0), 4);
}

/* Words and indices are what a hostile process wants them to be. */
TEST(lanes_end__does_not_believe_the_ring)
{
	struct rig *rig = *state;
	struct lane_tx tx;
	struct lane_rx rx;

	talk(rig, 0, 1, &tx, &rx);
	put(rig, &tx, 0, 0, 2);
	put(rig, &tx, 1, 2, 1);
	put(rig, &tx, 0, 0xfffff0, 2);
	put(rig, &tx, 0, 1, 1);
	for (int i = 0; i < BUFFERS; i++)
		rig->server.arena.ownership.holders[i] = i < 2 ? 0 : i == 2 ? 1 : OWNERSHIP_OWNER;
	memset(rig->server.arena.ownership.held, 0,
	       SERVE_SLOTS_MAX * sizeof(rig->server.arena.ownership.held[0]));
	rig->server.arena.ownership.held[0] = 2;
	rig->server.arena.ownership.held[1] = 1;
	tx.ring->prod = 0x80000006;
	assert_int_equal(end(rig, 0), 0);
	assert_int_equal(rig->server.arena.ownership.aside, 2);
	assert_int_equal(rig->server.arena.ownership.held[1], 1);
	assert_int_equal(end(rig, 1), 1);
	assert_int_equal(come_back(rig), 2);
}

/* The slot is another process's before what its last one lent is given back. */
TEST(lanes_note__offers_anew_in_a_slot_that_is_given_again)
{
	struct rig *rig = *state;
	struct lane_tx old_tx, tx;
	struct lane_rx old_rx, rx;

	talk(rig, 0, 1, &old_tx, &old_rx);
	put(rig, &old_tx, 0, 0, 4);
	end(rig, 0);
	rig->server.slots.all[0].state = SLOT_LIVE;
	talk(rig, 0, 1, &tx, &rx);
	put(rig, &tx, 0, 10, 2);
	assert_int_equal(rig->server.arena.ownership.aside, 4);
	assert_int_equal(end(rig, 0), 0);
	assert_int_equal(rig->server.arena.ownership.aside, 6);
	assert_int_equal(end(rig, 1), 0);
	assert_int_equal(come_back(rig), 6);
	assert_int_equal(rig->server.arena.ownership.aside, 0);
}
