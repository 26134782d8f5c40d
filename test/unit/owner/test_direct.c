/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the owner's part in direct channels: who is offered one, and when it ends. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "isolated.h"
#include "direct.h"
#include "server.h"
#include "share/direct.h"
#include "share/message.h"
#include "test.h"

#define PROCESSES 3
#define PACKETS	  64 /* after as many there surely is a direct channel */

/* An owner without a port, and what its processes have of directs. */
struct rig {
	struct server server;
	struct share_page pages[PROCESSES];
	int sockets[PROCESSES];
};

static int setup(void **state)
{
	struct rig *rig = aligned_alloc(_Alignof(struct rig), sizeof(*rig));
	struct server *server = &rig->server;
	int pair[2];

	assert_non_null(rig);
	memset(rig, 0, sizeof(*rig));
	LIST_INIT(&server->directs.list);
	for (int i = 0; i < PROCESSES; i++) {
		struct slot *slot = &server->slots.all[i];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		slot->state = SLOT_LIVE;
		slot->socket = pair[0];
		rig->sockets[i] = pair[1];
		slot->direct_fd = pair[0];
		slot->page = &rig->pages[i];
		slot->qpn_first = (uint32_t)(i + 1) << BLOCK_SHIFT;
	}
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	directs_destroy(&rig->server);
	for (int i = 0; i < PROCESSES; i++) {
		close(rig->sockets[i]);
		close(rig->server.slots.all[i].socket);
	}
	free(rig);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static bool take_offer(struct rig *rig, int process, struct share_message *message,
		       struct direct_memory **memory)
{
	int fds[SHARE_FDS];

	if (message_receive(rig->sockets[process], message, fds) != 0)
		return false;
	assert_int_equal(message->type, SHARE_DIRECT);
	*memory = mmap(NULL, sizeof(**memory), PROT_READ | PROT_WRITE, MAP_SHARED,
		       fds[SHARE_DIRECT_FD_MEMORY], 0);
	assert_ptr_not_equal(*memory, MAP_FAILED);
	close(fds[SHARE_DIRECT_FD_MEMORY]);
	close(fds[SHARE_DIRECT_FD_DOORBELL]);
	return true;
}

/* Let two processes talk; what both have of the channel then. */
static void talk(struct rig *rig, uint16_t a, uint16_t b, struct direct_tx *tx,
		 struct direct_rx *rx)
{
	struct share_message message;
	struct direct_tx other_tx;
	struct direct_rx other_rx;
	struct direct_memory *memory = NULL;

	for (int i = 0; i < PACKETS; i++)
		directs_note(&rig->server, a, b);
	assert_true(take_offer(rig, a, &message, &memory));
	assert_int_equal(message.offer.peer, b);
	assert_int_equal(message.offer.qpn_first, (uint32_t)(b + 1) << BLOCK_SHIFT);
	assert_int_equal(rig->pages[a].directs[b], message.offer.number);
	direct_init(tx, &other_rx, memory, message.offer.side);
	assert_true(take_offer(rig, b, &message, &memory));
	assert_int_equal(rig->pages[b].directs[a], message.offer.number);
	direct_init(&other_tx, rx, memory, message.offer.side);
}

static bool passes(struct direct_tx *tx, struct direct_rx *rx)
{
	const uint8_t frame[60] = {7};
	struct share_packet packet;
	uint32_t index;

	assert_true(direct_copy(tx, frame, sizeof(frame)));
	direct_show(tx);
	if (direct_take(rx, &packet, 1, &index) != 1)
		return false;
	direct_done(rx, index);
	direct_give_back(rx);
	return true;
}

TEST(directs_note__offers_one_to_both)
{
	struct rig *rig = *state;
	struct share_message message;
	struct direct_tx tx;
	struct direct_rx rx;
	struct direct_memory *memory;

	talk(rig, 0, 1, &tx, &rx);
	for (int i = 0; i < 10 * PACKETS; i++) {
		directs_note(&rig->server, 0, 1);
		directs_note(&rig->server, 1, 0);
	}
	assert_false(take_offer(rig, 0, &message, &memory));
	assert_false(take_offer(rig, 1, &message, &memory));
	assert_int_equal(rig->server.totals.direct_channels, 1);
	assert_int_equal(directs_packets(&rig->server), 0);
	for (int i = 0; i < 3; i++)
		assert_true(passes(&tx, &rx));
	assert_int_equal(directs_packets(&rig->server), 3);
}

TEST(directs_note__none_where_all_passes_the_owner)
{
	struct rig *rig = *state;
	struct share_message message;
	struct direct_memory *memory;

	rig->server.directs.passes_all = true;
	for (int i = 0; i < 10 * PACKETS; i++)
		directs_note(&rig->server, 0, 1);
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

TEST(directs_note__offers_one_to_each_engine)
{
	struct rig *rig = *state;
	struct share_message message;
	struct direct_memory *memory;

	add_engine(rig);
	for (int i = 0; i < PACKETS; i++) {
		directs_note(&rig->server, 1, 0);
		directs_note(&rig->server, 1, 2);
	}
	assert_int_equal(rig->server.totals.direct_channels, 2);
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
TEST(directs_note__none_between_engines_of_a_process)
{
	struct rig *rig = *state;
	struct share_message message;
	struct direct_memory *memory;

	add_engine(rig);
	for (int i = 0; i < 10 * PACKETS; i++) {
		directs_note(&rig->server, 0, 2);
		directs_note(&rig->server, 2, 0);
	}
	assert_false(take_offer(rig, 0, &message, &memory));
	assert_false(take_offer(rig, 2, &message, &memory));
}

TEST(directs_note__withdraws_what_one_cannot_be_told)
{
	struct rig *rig = *state;
	struct share_message message;
	struct direct_memory *memory;

	close(rig->sockets[1]);
	for (int i = 0; i < PACKETS; i++)
		directs_note(&rig->server, 0, 1);
	take_offer(rig, 0, &message, &memory);
	assert_int_equal(rig->pages[0].directs[1], 0);
	assert_int_equal(rig->server.totals.direct_channels, 0);
}

TEST(directs_note__none_with_an_isolated_process)
{
	struct rig *rig = *state;
	struct slot *slot = &rig->server.slots.all[1];

	assert_int_equal(isolated_create(slot), 0);
	for (int i = 0; i < PACKETS; i++) {
		directs_note(&rig->server, 0, 1);
		directs_note(&rig->server, 1, 0);
	}
	assert_int_equal(rig->server.totals.direct_channels, 0);
	isolated_destroy(&rig->server, slot);
}

/* A process has few direct channels, and another one when one of them has ended. */
TEST(directs_note__has_a_limit)
{
	struct rig *rig = *state;
	struct server *server = &rig->server;
	struct share_message message;
	struct direct_memory *memory;

	for (int i = 0; i < PACKETS * SHARE_DIRECTS_MAX; i++)
		directs_note(server, 0, (uint16_t)(PROCESSES + i % SHARE_DIRECTS_MAX));
	assert_int_equal(server->totals.direct_channels, 0);
	for (uint16_t i = 0; i < SHARE_DIRECTS_MAX; i++) {
		server->slots.all[PROCESSES + i] = server->slots.all[2];
		for (int k = 0; k < PACKETS; k++)
			directs_note(server, 0, (uint16_t)(PROCESSES + i));
	}
	assert_int_equal(server->totals.direct_channels, SHARE_DIRECTS_MAX);
	for (int i = 0; i < PACKETS; i++)
		directs_note(server, 0, 1);
	assert_int_equal(server->totals.direct_channels, SHARE_DIRECTS_MAX);
	assert_false(take_offer(rig, 1, &message, &memory));
	directs_close(server, PROCESSES);
	/* An owner has a limit, too. */
	server->directs.count += DIRECTS_MAX;
	for (int i = 0; i < PACKETS; i++)
		directs_note(server, 0, 1);
	assert_int_equal(server->totals.direct_channels, SHARE_DIRECTS_MAX);
	server->directs.count -= DIRECTS_MAX;
	/* Isolated processes use nothing of it. */
	server->directs.isolated_count = DIRECTS_ISOLATED_MAX;
	for (int i = 0; i < PACKETS; i++)
		directs_note(server, 0, 1);
	assert_int_equal(server->totals.direct_channels, SHARE_DIRECTS_MAX + 1);
	assert_true(take_offer(rig, 1, &message, &memory));
}

/* Each of the two sees in its page that the channel has ended, and then a new one. */
TEST(directs_close__ends_the_channels_of_a_process)
{
	struct rig *rig = *state;
	struct direct_tx tx;
	struct direct_rx rx;

	for (uint16_t leaver = 0; leaver < 2; leaver++) {
		uint32_t before;

		talk(rig, 0, 1, &tx, &rx);
		before = rig->pages[0].directs[1];
		directs_close(&rig->server, 2);
		assert_int_equal(rig->pages[0].directs[1], before);
		directs_close(&rig->server, leaver);
		assert_int_equal(rig->pages[0].directs[1], 0);
		assert_int_equal(rig->pages[1].directs[0], 0);
		assert_true(LIST_EMPTY(&rig->server.directs.list));
		/* What was put is still there for the other one. */
		assert_true(passes(&tx, &rx));
		talk(rig, 0, 1, &tx, &rx);
		assert_int_not_equal(rig->pages[0].directs[1], before);
		directs_close(&rig->server, leaver);
	}
}

/* The next owner takes over: the two go on until they attach to it. */
TEST(directs_close__leaves_channels_to_processes_that_go_on)
{
	struct rig *rig = *state;
	struct direct_tx tx;
	struct direct_rx rx;

	talk(rig, 0, 1, &tx, &rx);
	rig->server.resume.hands_over = true;
	directs_close(&rig->server, 0);
	assert_int_not_equal(rig->pages[0].directs[1], 0);
	assert_int_not_equal(rig->pages[1].directs[0], 0);
}
