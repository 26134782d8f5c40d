/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/slot.c, slot_begin.c and slot_prepare.c: what a process gets, whatever it asks
 * for. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "event.h"
#include "isolated.h"
#include "owner/arbiter.h"
#include "report/set.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"
#include "test.h"
#include "server_poll.h"

#define MAX_QP 4
#define BEFORE 4 /* slots that a process may have had */

static struct server server; /* without a port, and so without buffers to give */
static struct report_set reports;

static int setup(TEST_STATE)
{
	memset(&server, 0, sizeof(server));
	LIST_INIT(&server.groups);
	LIST_INIT(&server.directs.list);
	report_set_init(&reports);
	server.status.reports = &reports;
	server.slots.max_qp = MAX_QP;
	server.arena.fd = server.wake_fd = server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(server.epoll_fd >= 0);
	blocks_init(&server.slots.blocks);
	assert_int_equal(arbiter_create(&server.gsi.arbiter), 0);
	assert_int_equal(ownership_init(&server.arena.ownership, 1, 256, SERVE_SLOTS_MAX, 0), 0);
	server.slots.max = SERVE_SLOTS_MAX;
	return 0;
}

static int teardown(TEST_STATE)
{
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_end(&server, i);
	ownership_fini(&server.arena.ownership);
	arbiter_destroy(server.gsi.arbiter);
	close(server.epoll_fd);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* This process asks for a slot; returns its own end of the socket, what it was given, and what the
 * owner makes of it. */
static int attach_as(unsigned int flags, struct share_message *message, int *rc, int fds[SHARE_FDS])
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
	*rc = slot_begin(&server, pair[0], -1, flags, &(struct share_message){.engine.count = 1});
	if (*rc != 0)
		close(pair[0]);
	assert_int_equal(message_receive(pair[1], message, fds), 0);
	assert_int_equal(message->type, SHARE_WELCOME);
	assert_int_equal(message->result, *rc);
	return pair[1];
}

static int attach_with(struct share_message *message, int *rc, int fds[SHARE_FDS])
{
	return attach_as(0, message, rc, fds);
}

static void close_all(int fds[SHARE_FDS])
{
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

static int attach(struct share_message *message, int *rc)
{
	int fds[SHARE_FDS];
	const int fd = attach_with(message, rc, fds);

	close_all(fds);
	return fd;
}

/* Return true if the owner has been notified, by a doorbell. */
static bool hears_a_doorbell(void)
{
	struct epoll_event event;

	while (epoll_wait(server.epoll_fd, &event, 1, 0) > 0) {
		if (event.data.u64 >> 32 == EVENT_DOORBELL)
			return true;
	}
	return false;
}

TEST(slot_begin__gives_as_many_numbers_as_the_limit_takes)
{
	struct share_message message;
	uint32_t first;
	int fd, rc;

	fd = attach(&message, &rc);
	assert_int_equal(rc, 0);
	first = message.welcome.qpn_first;
	assert_int_equal(message.welcome.qpn_count, 2 * MAX_QP);
	assert_int_equal(slot_of(&server, first), message.welcome.slot);
	assert_int_equal(slot_of(&server, first + 2 * MAX_QP - 1), message.welcome.slot);
	/* Whatever numbers its queue pairs have themselves: nothing comes there. */
	assert_int_equal(slot_of(&server, first + 2 * MAX_QP), BLOCK_NONE);
	assert_int_equal(slot_of(&server, first + BLOCK_QPNS - 1), BLOCK_NONE);
	assert_int_equal(slot_of(&server, first + BLOCK_QPNS), BLOCK_NONE);
	close(fd);
}

TEST(slot_begin__gives_a_whole_block_without_a_limit)
{
	struct share_message message;
	int fd, rc;

	server.slots.max_qp = 0;
	fd = attach(&message, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(message.welcome.qpn_count, BLOCK_QPNS);
	close(fd);
}

/* Attach one more isolated process. Returns its queue pairs, or -errno. */
static int attach_one_more(void)
{
	struct share_message message;
	int fds[SHARE_FDS], rc;

	/* With its real pid, this process would be found to have a slot already. */
	for (uint16_t i = 0; i < server.slots.live_count; i++)
		server.slots.all[server.slots.live[i]].pid = 1;
	close(attach_as(SLOT_ISOLATED, &message, &rc, fds));
	close_all(fds);
	if (rc != 0)
		return rc;
	assert_int_equal(message.welcome.qpn_count, 2 * message.welcome.max_qp);
	return (int)message.welcome.max_qp;
}

/* The superuser's isolated processes have the limits of user id 0. */
TEST(slot_begin__gives_a_tenant_its_queue_pairs)
{
	const struct serve_tenant user = {user_of_uid(geteuid()), {.weight = 1, .max_qp = 10}};
	const struct serve_tenants limits = {.attached = {.weight = 1, .max_qp = 1},
					     .others = {.weight = 1, .max_qp = 2},
					     .users = &user,
					     .count = 1};

	server.tenant_limits = &limits;
	assert_int_equal(attach_one_more(), MAX_QP);
	assert_int_equal(attach_one_more(), MAX_QP);
	assert_int_equal(attach_one_more(), 10 - 2 * MAX_QP);
	assert_int_equal(attach_one_more(), -EDQUOT);
	slot_close(&server, 0);
	assert_int_equal(attach_one_more(), MAX_QP);
	slot_close(&server, 0);
	server.slots.max_qp = 0;
	assert_int_equal(attach_one_more(), MAX_QP);
}

TEST(slot_begin__gives_a_process_one_slot)
{
	struct share_message message;
	int fds[2], rc;

	fds[0] = attach(&message, &rc);
	assert_int_equal(rc, 0);
	fds[1] = attach(&message, &rc);
	assert_int_equal(rc, -EBUSY);
	assert_int_equal(server.slots.live_count, 1);
	close(fds[1]);
	close(fds[0]);
}

TEST(slot_begin__gives_another_to_one_that_hung_up_but_not_for_ever)
{
	struct share_message message;
	int fd, rc;

	for (int i = 0; i < BEFORE; i++) {
		fd = attach(&message, &rc);
		assert_int_equal(rc, 0);
		close(fd);
	}
	fd = attach(&message, &rc);
	assert_int_equal(rc, -EUSERS);
	close(fd);
	assert_int_equal(server.slots.live_count, 0);
}

/* A process that executes another program, which attaches, has one slot all the time. */
TEST(slot_begin__frees_the_slots_of_a_process_that_holds_nothing_of_them)
{
	struct share_message message;
	int fds[SHARE_FDS];
	int fd, rc;

	for (int i = 0; i < 3 * BEFORE; i++) {
		fd = attach_as(SLOT_HOLDS_NOTHING, &message, &rc, fds);
		assert_int_equal(rc, 0);
		assert_int_equal(server.slots.live_count, 1);
		assert_int_equal(server.slots.full_shares, 1);
		assert_int_equal(server.slots.blocks.used, 1);
		close_all(fds);
		close(fd);
	}
}

/* Returns the number of the slot, which then counts as another process's. */
static uint16_t attach_another(int *fd)
{
	struct share_message message;
	int rc;

	*fd = attach(&message, &rc);
	assert_int_equal(rc, 0);
	server.slots.all[message.welcome.slot].pid = -1 - message.welcome.slot;
	return message.welcome.slot;
}

TEST(slot_begin__gives_full_shares_to_those_that_came_first)
{
	int fds[SERVER_FULL_SHARES + 2];
	uint16_t last = 0;

	for (uint16_t i = 0; i < SERVER_FULL_SHARES + 2; i++) {
		last = attach_another(&fds[i]);
		assert_int_equal(last, i);
		assert_int_equal(server.slots.all[i].has_full_share, i < SERVER_FULL_SHARES);
	}
	/* The full share of a process that ends goes to one of the others. */
	slot_end(&server, 5);
	assert_int_equal(server.slots.full_shares, SERVER_FULL_SHARES);
	assert_false(server.slots.all[5].has_full_share);
	assert_true(server.slots.all[last].has_full_share !=
		    server.slots.all[last - 1].has_full_share);
	for (uint16_t i = 0; i < SERVER_FULL_SHARES + 2; i++)
		close(fds[i]);
}

TEST(slot_begin__gives_as_many_slots_as_the_port_has)
{
	struct share_message message;
	int fds[4], fd, rc;

	server.slots.max = 4;
	for (int i = 0; i < 4; i++)
		attach_another(&fds[i]);
	fd = attach(&message, &rc);
	assert_int_equal(rc, -ENOSPC);
	close(fd);
	slot_end(&server, 2);
	assert_int_equal(attach_another(&fd), 2);
	close(fd);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

static int claim(uint16_t slot)
{
	struct cm_port_claim port = {
		.space = CM_PS_TCP, .port = 7174, .any_address = true, .vlan_id = -1};
	uint32_t id;

	return arbiter_claim(server.gsi.arbiter, slot, &port, &id);
}

TEST(slot_begin__gives_communication_ids)
{
	struct share_message message;
	int fd, rc;

	fd = attach(&message, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(message.welcome.id_mask, IDS_MASK);
	assert_int_equal(ids_find(&server.gsi.arbiter->ids, message.welcome.id_value | 7),
			 message.welcome.slot);
	slot_end(&server, message.welcome.slot);
	assert_int_equal(ids_find(&server.gsi.arbiter->ids, message.welcome.id_value | 7),
			 IDS_NONE);
	close(fd);
}

/* The process goes on and keeps its buffers. */
TEST(slot_close__frees_ports_at_once)
{
	struct share_message message;
	int fds[2], rc;

	fds[0] = attach(&message, &rc);
	assert_int_equal(claim(message.welcome.slot), 0);
	assert_int_equal(claim(message.welcome.slot), -EADDRINUSE);
	slot_close(&server, message.welcome.slot);
	assert_int_equal(server.slots.all[message.welcome.slot].state, SLOT_CLOSING);
	fds[1] = attach(&message, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(claim(message.welcome.slot), 0);
	close(fds[0]);
	close(fds[1]);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static bool has_gone(void *arg)
{
	(void)arg;
	return true;
}

static bool is_not_up(void *arg, bool connected)
{
	(void)arg, (void)connected;
	return false;
}

/* The processes of a port that has gone did nothing wrong. */
TEST(uplink_check__ends_slots_of_a_port_that_has_gone)
{
	static const struct port_ops gone = {
		.lost = has_gone, .connected = never, .link_up = is_not_up};
	const struct port_ops *const before = server.uplink.link.port.ops;
	struct share_message message;
	const struct slot *slot;
	int fd, rc;

	fd = attach(&message, &rc);
	assert_int_equal(rc, 0);
	slot = &server.slots.all[message.welcome.slot];
	server.uplink.link.port.ops = &gone;
	server.uplink.port_fd = -1;
	uplink_check(&server);
	server.uplink.link.port.ops = before;
	assert_int_equal(slot->state, SLOT_CLOSING);
	assert_false(slot->broke_rule);
	assert_int_equal(server.totals.refused, 0);
	server.uplink.lost = false;
	close(fd);
}

TEST(slot_begin__gives_nothing_where_the_port_has_gone)
{
	struct share_message message;
	int fd, rc;

	server.uplink.lost = true;
	server.ports = 3;
	fd = attach(&message, &rc);
	assert_int_equal(rc, -ENODEV);
	/* The others may be there still. */
	assert_int_equal(message.welcome.ports, 3);
	close(fd);
}

/* Two users have so many isolated slots, and this process asks for one. Returns the answer. */
static int attach_beside(user_t first, uint32_t first_count, user_t second, uint32_t second_count)
{
	const uint32_t count = first_count + second_count;
	struct share_message message;
	int pair[2], rc;

	for (uint32_t i = 0; i < count; i++) {
		server.slots.all[i] = (struct slot){.state = SLOT_LIVE,
						    .user = i < first_count ? first : second,
						    .tenant = TENANTS_NONE,
						    .socket = -1,
						    .pidfd = -1,
						    .process_fd = -1,
						    .direct_fd = -1,
						    .wake_set_fd = -1,
						    .doorbell_fd = -1};
		assert_int_equal(isolated_create(&server.slots.all[i]), 0);
	}
	server.slots.isolated_count = count;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_PENDING_CLIENT, 0), 0);
	rc = slot_begin(&server, pair[0], -1, SLOT_ISOLATED,
			&(struct share_message){.engine.count = 1});
	if (rc != 0)
		close(pair[0]);
	assert_int_equal(message_receive(pair[1], &message, NULL), 0);
	assert_int_equal(message.result, rc);
	close(pair[1]);
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_close(&server, i);
	assert_int_equal(server.slots.isolated_count, 0);
	return rc;
}

/* A user has so many of them. */
static int attach_isolated(uid_t uid, uint32_t count)
{
	return attach_beside(user_of_uid(uid), count, USER_UNKNOWN, 0);
}

TEST(slot_begin__gives_a_user_a_part_of_the_isolated_slots)
{
	const uid_t own = geteuid(), user = own != 0 ? own : 65534;

	if (own == 0)
		assert_int_equal(attach_isolated(0, SERVER_ISOLATED_MAX - 1), 0);
	/* A socket's user is who makes it. */
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(attach_isolated(user, SERVER_ISOLATED_USER_MAX - 1), 0);
	assert_int_equal(attach_isolated(user, SERVER_ISOLATED_USER_MAX), -ENOSPC);
	/* Other users' slots do not count until all are taken. */
	assert_int_equal(attach_isolated(user + 1, SERVER_ISOLATED_MAX - 1), 0);
	assert_int_equal(attach_isolated(user + 1, SERVER_ISOLATED_MAX), -ENOSPC);
	assert_int_equal(seteuid(own), 0);
}

/* An owner that is not root cannot tell who has made a user namespace. */
TEST(slot_begin__leaves_slots_if_a_user_counts_twice)
{
	const uid_t own = geteuid(), user = own != 0 ? own : 65534;

	assert_int_equal(seteuid(user), 0);
	for (uint16_t max = SERVE_SLOTS_DMA; max <= SERVE_SLOTS_MAX;
	     max += SERVE_SLOTS_MAX - SERVE_SLOTS_DMA) {
		const uint32_t most = RTE_MIN(SERVER_ISOLATED_USER_MAX, max / 5u);

		server.slots.max = max;
		assert_int_equal(attach_beside(user_of_uid(user + 1), most, USER_UNKNOWN, most), 0);
		assert_int_equal(attach_isolated(user, most), -ENOSPC);
	}
	assert_int_equal(server.slots.max, SERVE_SLOTS_MAX);
	assert_int_equal(seteuid(own), 0);
}

TEST(slot_begin__no_process_can_fill_the_counter_of_another_ones_doorbell)
{
	const uint64_t full = UINT64_MAX - 1, one = 1;
	struct share_message message;
	int fds[SHARE_FDS], others[SHARE_FDS];
	int fd, other, rc;

	fd = attach_with(&message, &rc, fds);
	assert_int_equal(rc, 0);
	assert_false(hears_a_doorbell());
	assert_int_equal(write(fds[SHARE_FD_OWNER], &full, sizeof(full)), sizeof(full));
	assert_true(hears_a_doorbell());
	close(fd);
	other = attach_with(&message, &rc, others);
	assert_int_equal(rc, 0);
	assert_false(hears_a_doorbell());
	assert_int_equal(write(others[SHARE_FD_OWNER], &one, sizeof(one)), sizeof(one));
	assert_true(hears_a_doorbell());
	/* The owner ignores the doorbell of a process that has ended, though a copy of it is open.
	 */
	slot_end(&server, message.welcome.slot);
	assert_int_equal(write(others[SHARE_FD_OWNER], &one, sizeof(one)), sizeof(one));
	assert_false(hears_a_doorbell());
	close_all(fds);
	close_all(others);
	close(other);
}

/* Wake a process that says that it sleeps. */
static void wake(uint16_t slot)
{
	server.slots.all[slot].page->process_sleeps = 1;
	server.slots.all[slot].touched = true;
	server_poll_wake(&server);
}

/* Return true if the process is woken, and discard that. */
static bool is_woken(int wake_set_fd)
{
	struct epoll_event events[2];

	return epoll_wait(wake_set_fd, events, 2, 0) > 0;
}

/* Fill the counter of a descriptor, if it is an eventfd, and make writes to it block. Returns false
 * if it is none. */
static bool fill(int fd)
{
	const uint64_t full = UINT64_MAX - 1;

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	if (write(fd, &full, sizeof(full)) != sizeof(full))
		return false;
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0;
}

/* A process that it has a direct channel with can fill that one's eventfd, too. */
TEST(server_poll_wake__waits_for_no_process)
{
	struct share_message message;
	int fds[SHARE_FDS], fd, rc;
	uint16_t slot;

	fd = attach_with(&message, &rc, fds);
	assert_int_equal(rc, 0);
	slot = message.welcome.slot;
	for (int i = 0; i < 3; i++) {
		assert_false(is_woken(fds[SHARE_FD_PROCESS]));
		wake(slot);
		assert_true(is_woken(fds[SHARE_FD_PROCESS]));
	}
	assert_true(fill(fds[SHARE_FD_OWNER]));
	assert_false(fill(fds[SHARE_FD_PROCESS]));
	assert_true(fill(server.slots.all[slot].direct_fd));
	assert_true(is_woken(fds[SHARE_FD_PROCESS]));
	for (int i = 0; i < 3; i++) {
		wake(slot);
		assert_true(is_woken(fds[SHARE_FD_PROCESS]));
	}
	close_all(fds);
	close(fd);
}
