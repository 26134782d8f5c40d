/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/slot_engine.c: the slots of a process's further engines, and how all its slots
 * end together. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "event.h"
#include "owner/arbiter.h"
#include "report/set.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"
#include "test.h"

#define ENGINES 3
#define MAX_QP	4

static struct server server; /* without a port, and so without buffers to give */
static struct report_set reports;
static int ends[32]; /* the process's ends of its sockets */
static unsigned int end_count;
static uint16_t first; /* the slot of this process's first engine */

/* Ask for a slot; `engine` NULL: for the first engine. Returns what is answered. */
static int ask(const struct share_engine *engine, struct share_message *message)
{
	struct share_message hello = {.engine.count = ENGINES};
	int fds[SHARE_FDS];
	int pair[2], rc;

	if (engine)
		hello.engine = *engine;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
	rc = engine ? slot_begin_further(&server, pair[0], &hello)
		    : slot_begin(&server, pair[0], -1, 0, &hello);
	assert_int_equal(message_receive(pair[1], message, fds), 0);
	assert_int_equal(message->type, SHARE_WELCOME);
	assert_int_equal(message->result, rc);
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	if (rc == 0) {
		ends[end_count++] = pair[1];
		return 0;
	}
	close(pair[0]);
	close(pair[1]);
	return rc;
}

static int set_up_owner(uint32_t max_qp)
{
	struct share_message message;

	memset(&server, 0, sizeof(server));
	LIST_INIT(&server.groups);
	LIST_INIT(&server.directs.list);
	report_set_init(&reports);
	server.status.reports = &reports;
	server.arena.fd = server.wake_fd = server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(server.epoll_fd >= 0);
	blocks_init(&server.slots.blocks);
	assert_int_equal(arbiter_create(&server.gsi.arbiter), 0);
	assert_int_equal(ownership_init(&server.arena.ownership, 1, 256, SERVE_SLOTS_MAX, 0), 0);
	server.slots.max = SERVE_SLOTS_MAX;
	server.slots.max_qp = max_qp;
	end_count = 0;
	assert_int_equal(ask(NULL, &message), 0);
	first = message.welcome.slot;
	return 0;
}

static int set_up(TEST_STATE)
{
	return set_up_owner(0);
}

static int set_up_limited(TEST_STATE)
{
	return set_up_owner(MAX_QP);
}

static int tear_down(TEST_STATE)
{
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_end(&server, i);
	assert_int_equal(server.slots.live_count, 0);
	assert_int_equal(server.slots.full_shares, 0);
	assert_int_equal(server.slots.blocks.used, 0);
	assert_int_equal(server.totals.ended, server.totals.attached);
	for (unsigned int i = 0; i < end_count; i++)
		close(ends[i]);
	ownership_fini(&server.arena.ownership);
	arbiter_destroy(server.gsi.arbiter);
	close(server.epoll_fd);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct share_engine engine_of(uint32_t number)
{
	return (struct share_engine){.number = number,
				     .count = ENGINES,
				     .slot = first,
				     .generation = server.slots.all[first].generation};
}

/* Returns the slot. */
static uint16_t begin(uint32_t number)
{
	const struct share_engine engine = engine_of(number);
	struct share_message message;

	assert_int_equal(ask(&engine, &message), 0);
	assert_int_equal(message.welcome.qpn_first, server.slots.all[first].qpn_first);
	assert_int_equal(message.welcome.qpn_count, server.slots.all[first].qpn_count);
	return message.welcome.slot;
}

static int refused(const struct share_engine *engine)
{
	struct share_message message;

	return ask(engine, &message);
}

/* The owner's limit does not depend on what a process says about itself. */
TEST(slot_begin__engines_add_no_numbers, .setup = set_up_limited)
{
	assert_int_equal(server.slots.all[first].engine_count, ENGINES);
	assert_int_equal(server.slots.all[first].qpn_count, 2 * MAX_QP);
	begin(1);
}

TEST(slot_of__packets_go_to_the_engine_of_their_queue_pair)
{
	const uint32_t qpn = server.slots.all[first].qpn_first / ENGINES * ENGINES + ENGINES;
	uint16_t second;

	for (uint32_t i = 0; i < ENGINES; i++)
		assert_int_equal(slot_of(&server, qpn + i), first);
	second = begin(1);
	assert_int_not_equal(second, first);
	assert_int_equal(slot_of(&server, qpn), first);
	assert_int_equal(slot_of(&server, qpn + 1), second);
	/* The third engine has no slot yet. */
	assert_int_equal(slot_of(&server, qpn + 2), first);
	assert_int_equal(slot_engine_served(&server, first), 0x5);
	assert_int_equal(slot_engine_served(&server, second), 0x2);
	assert_int_equal(slot_of(&server, qpn + ENGINES * 7 + 2), first);
	assert_int_equal(slot_of(&server, qpn + ENGINES * 7 + 1), second);
	begin(2);
	assert_int_equal(slot_engine_served(&server, first), 0x1);
	assert_int_equal(slot_engine_first(&server, second), first);
	assert_int_equal(slot_engine_first(&server, first), first);
}

TEST(slot_begin_further__is_no_further_process)
{
	begin(1);
	assert_int_equal(server.totals.attached, 1);
	assert_int_equal(server.slots.blocks.used, 1);
	assert_int_equal(server.slots.live_count, 2);
	assert_int_equal(server.slots.full_shares, ENGINES);
}

TEST(slot_begin_further__only_to_the_process_of_the_first)
{
	struct share_engine engine = engine_of(1);

	engine.slot = SERVE_SLOTS_MAX;
	assert_int_equal(refused(&engine), -EINVAL);
	engine.slot = (uint16_t)(first + 1);
	assert_int_equal(refused(&engine), -EINVAL);
	engine = engine_of(1);
	engine.generation++;
	assert_int_equal(refused(&engine), -EINVAL);
	server.slots.all[first].pid++;
	engine = engine_of(1);
	assert_int_equal(refused(&engine), -EINVAL);
	server.slots.all[first].pid--;
	/* A further engine has none itself. */
	engine.slot = begin(1);
	engine.number = 2;
	engine.generation = server.slots.all[engine.slot].generation;
	assert_int_equal(refused(&engine), -EINVAL);
	slot_close(&server, first);
	engine = engine_of(2);
	assert_int_equal(refused(&engine), -EINVAL);
}

TEST(slot_begin_further__only_engines_that_the_device_has)
{
	struct share_engine engine = engine_of(ENGINES);

	assert_int_equal(refused(&engine), -EINVAL);
	engine.count = SHARE_ENGINES_MAX + 1;
	assert_int_equal(refused(&engine), -EINVAL);
	engine = engine_of(0);
	assert_int_equal(refused(&engine), -EINVAL);
	begin(1);
	engine = engine_of(1);
	assert_int_equal(refused(&engine), -EINVAL);
	engine = engine_of(2);
	engine.count++;
	assert_int_equal(refused(&engine), -EINVAL);
	assert_int_equal(server.slots.live_count, 2);
}

/* Another process attaches, with so many engines. Returns how many of them may have slots. */
static uint32_t granted(uint32_t engines)
{
	const struct share_message hello = {.engine.count = engines};
	struct share_message message;
	int fds[SHARE_FDS];
	int pair[2];

	server.slots.all[first].pid = -1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
	assert_int_equal(slot_begin(&server, pair[0], -1, 0, &hello), 0);
	assert_int_equal(message_receive(pair[1], &message, fds), 0);
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	ends[end_count++] = pair[1];
	slot_end(&server, message.welcome.slot);
	return message.welcome.engines;
}

/* The slots of its further engines are reserved for a process from its welcome on. */
TEST(slot_begin__takes_no_slot_that_another_process_needs)
{
	server.slots.max = ENGINES + 2;
	server.slots.full_shares = ENGINES;
	assert_int_equal(granted(3), 1);
	server.slots.all[first].pid = getpid();
	for (uint32_t i = 1; i < ENGINES; i++)
		begin(i);
	server.slots.max = SERVE_SLOTS_MAX;
}

TEST(slot_engine_reserve__leaves_full_shares_to_other_processes)
{
	assert_int_equal(server.slots.full_shares, ENGINES);
	assert_int_equal(granted(0), 1);
	assert_int_equal(granted(1), 1);
	assert_int_equal(granted(2), 2);
	assert_int_equal(granted(SERVER_FURTHER_MAX + 1 - (ENGINES - 1)), SERVER_FURTHER_MAX - 1);
	assert_int_equal(granted(SERVER_FURTHER_MAX + 2 - (ENGINES - 1)), 1);
	assert_int_equal(granted(SHARE_ENGINES_MAX + 1), 1);
	assert_int_equal(granted(UINT32_MAX), 1);
	/* All of them have come back. */
	assert_int_equal(server.slots.full_shares, ENGINES);
	server.slots.full_shares += SERVER_FULL_SHARES - ENGINES - 2;
	assert_int_equal(granted(3), 1);
	assert_int_equal(granted(2), 2);
	server.slots.full_shares -= SERVER_FULL_SHARES - ENGINES - 2;
}

TEST(slot_engine_reserve__a_small_port_has_few)
{
	server.slots.max = 16;
	assert_int_equal(granted(3), 3);
	assert_int_equal(granted(4), 1);
}

/* What was reserved and not used comes back with the process. */
TEST(slot_end__gives_back_what_was_reserved)
{
	assert_int_equal(server.slots.full_shares, ENGINES);
	begin(1);
	assert_int_equal(server.slots.full_shares, ENGINES);
	slot_end(&server, first);
	assert_int_equal(server.slots.full_shares, 1);
}

/* Nothing of a further engine's slot remains if its process cannot be told. */
TEST(slot_begin_further__to_a_process_that_hears_nothing)
{
	const struct share_message hello = {.engine = engine_of(1)};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
	close(pair[1]);
	assert_int_equal(slot_begin_further(&server, pair[0], &hello), -EPIPE);
	close(pair[0]);
	assert_int_equal(slot_engine_served(&server, first), 0x7);
	assert_int_equal(server.slots.full_shares, ENGINES - 1);
	begin(1);
}

TEST(slot_close__ends_all_slots_of_the_process)
{
	const uint16_t second = begin(1), third = begin(2);

	/* It broke a rule in one of them. */
	slot_close(&server, third);
	assert_int_equal(server.slots.live_count, 0);
	assert_int_equal(server.slots.all[first].state, SLOT_CLOSING);
	assert_int_equal(server.slots.all[second].state, SLOT_CLOSING);
	assert_int_equal(server.slots.all[third].state, SLOT_CLOSING);
	/* Their buffers come back when the process has ended. */
	assert_int_equal(server.slots.full_shares, 3);
}

TEST(slot_hang_up__ends_all_slots_of_the_process)
{
	const uint16_t second = begin(1);

	/* A packet that the further engine has sent is still to be taken. */
	server.slots.all[second].rings[SHARE_RING_TX].memory->prod = 1;
	slot_hang_up(&server, first);
	assert_int_equal(server.slots.all[first].state, SLOT_CLOSING);
	assert_int_equal(server.slots.all[second].state, SLOT_DRAINING);
	slot_dismiss(&server, second);
	assert_int_equal(server.slots.live_count, 0);
}

/* The first slot is drained when another one breaks a rule: nothing is taken from either any more,
 * nor from those that end with the first. */
TEST(slot_close__ends_a_first_slot_that_is_drained)
{
	const uint16_t second = begin(1), third = begin(2);

	server.slots.all[first].rings[SHARE_RING_TX].memory->prod = 1;
	server.slots.all[third].rings[SHARE_RING_TX].memory->prod = 1;
	slot_hang_up(&server, first);
	assert_int_equal(server.slots.all[first].state, SLOT_DRAINING);
	slot_close(&server, second);
	assert_int_equal(server.slots.all[first].state, SLOT_CLOSING);
	assert_int_equal(server.slots.all[third].state, SLOT_CLOSING);
	assert_int_equal(server.slots.live_count, 0);
}

/* The process is killed while its first slot is drained: what it sent before still leaves. */
TEST(slot_end__of_a_further_engine_while_the_first_is_drained)
{
	const uint16_t second = begin(1);

	server.slots.all[first].rings[SHARE_RING_TX].memory->prod = 1;
	slot_hang_up(&server, first);
	slot_end(&server, second);
	assert_int_equal(server.slots.all[second].state, SLOT_FREE);
	slot_end(&server, first);
	assert_int_equal(server.slots.all[first].state, SLOT_DRAINING);
	server.slots.all[first].drain_left = 0;
	slot_advance(&server, first);
	assert_int_equal(server.slots.all[first].state, SLOT_FREE);
	assert_int_equal(server.slots.full_shares, 0);
}

TEST(slot_end__in_any_order)
{
	const uint16_t second = begin(1), third = begin(2);
	const uint32_t qpn = server.slots.all[first].qpn_first;

	slot_end(&server, second);
	assert_int_equal(server.slots.all[second].state, SLOT_FREE);
	slot_end(&server, first);
	assert_int_equal(server.slots.all[first].state, SLOT_FREE);
	assert_int_equal(slot_of(&server, qpn), BLOCK_NONE);
	assert_int_not_equal(server.slots.all[third].state, SLOT_LIVE);
	slot_end(&server, third);
	assert_int_equal(server.slots.full_shares, 0);
	assert_int_equal(server.totals.ended, 1);
}

/* The first engine's slot is another process's before the further one's is free. */
TEST(slot_end__of_a_late_one_leaves_the_next_process_alone)
{
	struct share_message message;
	const uint16_t second = begin(1);

	slot_end(&server, first);
	server.slots.all[second].pid++;
	assert_int_equal(ask(NULL, &message), 0);
	assert_int_equal(message.welcome.slot, first);
	slot_end(&server, second);
	assert_int_equal(server.slots.all[second].state, SLOT_FREE);
	assert_int_equal(server.slots.all[first].state, SLOT_LIVE);
}

/* Close this process's ends of its sockets. */
static void close_ends(void)
{
	while (end_count > 0)
		close(ends[--end_count]);
}

/* It closed all its descriptors, and attaches again. */
TEST(slot_begin__to_a_process_that_hung_up_with_all_its_engines)
{
	struct share_message message;

	for (int i = 0; i < 4; i++) {
		begin(1);
		begin(2);
		close_ends();
		/* The slots of a process that hung up count, but not those of its engines. */
		assert_int_equal(ask(NULL, &message), i < 3 ? 0 : -EUSERS);
		first = message.welcome.slot;
	}
}

/* It executed another program, which attaches. */
TEST(slot_begin__to_a_process_that_holds_nothing_of_its_engines)
{
	struct share_message message;
	const struct share_message hello = {.engine.count = ENGINES};
	int pair[2];

	for (int i = 0; i < 12; i++) {
		begin(1);
		begin(2);
		close_ends();
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
		assert_int_equal(slot_begin(&server, pair[0], -1, SLOT_HOLDS_NOTHING, &hello), 0);
		assert_int_equal(message_receive(pair[1], &message, NULL), 0);
		ends[end_count++] = pair[1];
		first = message.welcome.slot;
		assert_int_equal(server.slots.live_count, 1);
		assert_int_equal(server.slots.full_shares, ENGINES);
		assert_int_equal(server.slots.blocks.used, 1);
	}
}

/* What a process has once belongs to its first engine. */
TEST(control_event__a_further_engine_joins_no_group)
{
	struct share_message message = {
		.type = SHARE_JOIN, .version = SHARE_VERSION, .gid = {0xff, 0x0e}};
	const uint16_t second = begin(1);

	assert_int_equal(message_send(ends[1], &message, NULL, 0), 0);
	control_event(&server, EVENT_SOCKET, second);
	assert_int_equal(message_receive(ends[1], &message, NULL), 0);
	assert_int_equal(message.type, SHARE_REPLY);
	assert_int_equal(message.result, -EOPNOTSUPP);
}
