/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/psocks.c: what an owner lends, and which packets it leaves to others. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/settings.h"
#include "event.h"
#include "open_fds.h"
#include "owner/arbiter.h"
#include "port/port.h"
#include "psocks.h"
#include "report/set.h"
#include "server.h"
#include "share/blocks.h"
#include "share/message.h"
#include "slot.h"
#include "test.h"

#define TIMEOUT_MS 20000

/* A port that lends packet sockets. */
static struct fake {
	int lend_rc, leave_out_rc;
	uint32_t lent;		     /* the number for which it lent last */
	uint32_t share, shares;	     /* the same */
	struct divide_blocks blocks; /* that it leaves out */
} fake;

static int fake_lend(void *arg, const struct divide_part *part)
{
	struct fake *port = arg;

	if (port->lend_rc != 0)
		return port->lend_rc;
	assert_int_equal(part->shift, BLOCK_SHIFT);
	port->lent = part->first;
	port->share = part->share;
	port->shares = part->count;
	return eventfd(0, EFD_CLOEXEC);
}

static int fake_leave_out(void *arg, const struct divide_blocks *blocks)
{
	struct fake *port = arg;

	assert_int_equal(blocks->shift, BLOCK_SHIFT);
	if (port->leave_out_rc == 0)
		port->blocks = *blocks;
	return port->leave_out_rc;
}

static const struct port_ops fake_ops = {.lend = fake_lend, .leave_out = fake_leave_out};

static struct server server;
static struct report_set reports;
static unsigned int fds_before; /* each test */

static int setup(TEST_STATE)
{
	fds_before = fds_count();
	memset(&server, 0, sizeof(server));
	memset(&fake, 0, sizeof(fake));
	LIST_INIT(&server.groups);
	LIST_INIT(&server.directs.list);
	report_set_init(&reports);
	server.status.reports = &reports;
	server.arena.fd = server.wake_fd = server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	blocks_init(&server.slots.blocks);
	assert_int_equal(arbiter_create(&server.gsi.arbiter), 0);
	assert_int_equal(ownership_init(&server.arena.ownership, 1, 256, SERVE_SLOTS_MAX, 0), 0);
	server.slots.max = SERVE_SLOTS_MAX;
	server.uplink.link.port.ops = &fake_ops;
	server.uplink.link.port.ops_arg = &fake;
	return 0;
}

static int teardown(TEST_STATE)
{
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_end(&server, i);
	ownership_fini(&server.arena.ownership);
	arbiter_destroy(server.gsi.arbiter);
	close(server.epoll_fd);
	/* A thread closes the sockets of isolated processes, perhaps only now. */
	for (int ms = 0; ms < TIMEOUT_MS && fds_count() != fds_before; ms++)
		usleep(1000);
	assert_int_equal(fds_count(), fds_before);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Attach a process. Return true if a socket was lent to it, and close all other descriptors. */
static bool attach(struct share_message *message, unsigned int flags)
{
	int fds[SHARE_FDS], pair[2];
	bool lent;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
	if (slot_begin(&server, pair[0], -1, flags, &(struct share_message){.engine.count = 1}) !=
	    0)
		close(pair[0]);
	assert_int_equal(message_receive(pair[1], message, fds), 0);
	lent = fds[SHARE_FD_PSOCK] >= 0;
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	close(pair[1]);
	/* This process already has a slot. With its real pid, the owner would find that. */
	if (message->result == 0)
		server.slots.all[message->welcome.slot].pid = 1 + message->welcome.slot;
	return lent;
}

/* Ask for the slots of two engines. Returns how many have a socket. The sockets of the process stay
 * open. */
static int attach_engines(struct share_message messages[2], int ends[2])
{
	int fds[SHARE_FDS], pair[2], lent = 0;

	for (uint32_t i = 0; i < 2; i++) {
		const struct share_message further = {
			.engine = {.number = 1,
				   .count = 2,
				   .slot = messages[0].welcome.slot,
				   .generation = messages[0].welcome.generation}};

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
		assert_int_equal(i == 0 ? slot_begin(&server, pair[0], -1, 0,
						     &(struct share_message){.engine.count = 2})
					: slot_begin_further(&server, pair[0], &further),
				 0);
		assert_int_equal(message_receive(pair[1], &messages[i], fds), 0);
		assert_int_equal(messages[i].welcome.engines, i == 0 ? 2 : 1);
		assert_int_equal(fake.share, i);
		assert_int_equal(fake.shares, 2);
		assert_int_equal(fake.lent, messages[0].welcome.qpn_first);
		lent += fds[SHARE_FD_PSOCK] >= 0;
		for (int k = 0; k < SHARE_FDS; k++) {
			if (fds[k] >= 0)
				close(fds[k]);
		}
		ends[i] = pair[1];
	}
	return lent;
}

TEST(psocks_lend__gives_each_engine_a_socket)
{
	struct share_message messages[2] = {0};
	int ends[2];

	assert_int_equal(attach_engines(messages, ends), 2);
	assert_int_equal(server.psocks.count, 2);
	/* The port leaves out the block once. */
	assert_int_equal(fake.blocks.count, 1);
	assert_int_equal(fake.blocks.first[0], messages[0].welcome.qpn_first);
	/* It takes the block back when the process uses neither. */
	assert_int_equal(psocks_end(&server, messages[1].welcome.slot), 0);
	assert_int_equal(fake.blocks.count, 1);
	assert_int_equal(server.psocks.count, 1);
	assert_int_equal(psocks_end(&server, messages[0].welcome.slot), 0);
	assert_int_equal(fake.blocks.count, 0);
	assert_int_equal(server.psocks.count, 0);
	close(ends[0]);
	close(ends[1]);
}

TEST(psocks_end__of_the_first_engine_is_the_end_of_all)
{
	struct share_message messages[2] = {0};
	int ends[2];

	assert_int_equal(attach_engines(messages, ends), 2);
	assert_int_equal(psocks_end(&server, messages[0].welcome.slot), 0);
	assert_int_equal(fake.blocks.count, 0);
	assert_int_equal(server.psocks.count, 0);
	assert_false(server.slots.all[messages[1].welcome.slot].has_psock);
	close(ends[0]);
	close(ends[1]);
}

TEST(psocks_lend__gives_a_socket_and_leaves_its_packets_to_it)
{
	struct share_message messages[2];

	assert_true(attach(&messages[0], 0));
	assert_int_equal(fake.lent, messages[0].welcome.qpn_first);
	assert_int_equal(fake.blocks.count, 1);
	assert_int_equal(fake.blocks.first[0], messages[0].welcome.qpn_first);
	assert_true(attach(&messages[1], 0));
	assert_int_equal(fake.blocks.count, 2);
	assert_int_equal(server.psocks.count, 2);
	slot_end(&server, 0);
	slot_end(&server, 0);
	slot_close(&server, 0);
	assert_int_equal(server.slots.all[0].state, SLOT_FREE);
	assert_int_equal(fake.blocks.count, 1);
	assert_int_equal(fake.blocks.first[0], messages[1].welcome.qpn_first);
	assert_int_equal(server.psocks.count, 1);
}

/* A killed process's socket goes with it, because the owner has it no more. */
TEST(psocks_lend__keeps_no_descriptor)
{
	struct share_message message;
	unsigned int before, with;

	before = fds_count();
	server.psocks.off = true;
	assert_false(attach(&message, 0));
	with = fds_count();
	server.psocks.off = false;
	assert_true(attach(&message, 0));
	assert_int_equal(fds_count() - with, with - before);
}

TEST(psocks_lend__follows_the_setting)
{
	struct settings settings;
	struct share_message message;

	settings_init(&settings);
	settings.uplink = SETTINGS_UPLINK_RING;
	psocks_init(&server, &settings);
	assert_false(attach(&message, 0));
	assert_int_equal(message.result, 0);
	assert_int_equal(fake.lent, 0);
	settings_init(&settings);
	psocks_init(&server, &settings);
	assert_true(attach(&message, 0));
}

TEST(psocks_lend__leaves_out_who_must_not_have_one)
{
	struct share_message message;

	assert_false(attach(&message, SLOT_ISOLATED));
	assert_int_equal(message.result, 0);
	server.uplink.link.port.watched = true;
	assert_false(attach(&message, 0));
	server.uplink.link.port.watched = false;
	server.slots.full_shares = SERVER_FULL_SHARES;
	assert_false(attach(&message, 0));
	server.slots.full_shares = 0;
	assert_int_equal(fake.lent, 0);
	assert_int_equal(server.psocks.count, 0);
}

/* The process is served as before. */
TEST(psocks_lend__falls_back)
{
	struct share_message message;
	unsigned int before;

	fake.lend_rc = -EPERM;
	assert_false(attach(&message, 0));
	assert_int_equal(message.result, 0);
	fake.lend_rc = 0;
	fake.leave_out_rc = -ENOMEM;
	before = fds_count();
	assert_false(attach(&message, 0));
	assert_int_equal(message.result, 0);
	/* The process has three eventfds, a pidfd and a socket. */
	assert_int_equal(fds_count(), before + 5);
	assert_int_equal(server.psocks.count, 0);
}

/* A process that declines before it has a queue pair. */
TEST(psocks_end__receives_its_packets_again)
{
	struct share_message message;

	assert_true(attach(&message, 0));
	fake.leave_out_rc = -ENOMEM;
	assert_int_equal(psocks_end(&server, message.welcome.slot), -ENOMEM);
	assert_true(psocks_leave_out(&server, message.welcome.qpn_first));
	psocks_check(&server);
	assert_int_equal(fake.blocks.count, 1);
	fake.leave_out_rc = 0;
	psocks_check(&server);
	assert_int_equal(fake.blocks.count, 0);
	assert_false(psocks_leave_out(&server, message.welcome.qpn_first));
	assert_int_equal(psocks_end(&server, message.welcome.slot), 0);
	assert_int_equal(server.psocks.count, 0);
}

/* Let the next process get this block. */
static void leave_only(uint32_t qpn_first)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		server.slots.blocks.quarantine_end_ns[i] =
			i == blocks_index(qpn_first) ? 0 : UINT64_MAX;
}

/* A process that got a block that the port leaves out would receive nothing. */
TEST(slot_begin__gives_no_block_that_the_port_leaves_out)
{
	struct share_message message;
	uint32_t first;

	assert_true(attach(&message, 0));
	first = message.welcome.qpn_first;
	fake.leave_out_rc = -ENOMEM;
	slot_close(&server, 0);
	slot_end(&server, 0);
	assert_int_equal(server.slots.all[0].state, SLOT_FREE);
	leave_only(first);
	assert_false(attach(&message, 0));
	assert_int_equal(message.result, -ENOMEM);
	fake.leave_out_rc = 0;
	leave_only(first);
	assert_true(attach(&message, 0));
	assert_int_equal(message.welcome.qpn_first, first);
}
