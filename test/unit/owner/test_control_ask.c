/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/control.c: what processes that share memory ask for, and what they get. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "arbiter_mads.h"
#include "control.h"
#include "event.h"
#include "port_rig.h"
#include "report/layout.h"
#include "slot.h"
#include "test.h"

#define GROUPS_MAX 256 /* of a process */
#define SECOND	   UINT64_C(1000000000)

static int set_up(void **state)
{
	server.now_ns += 100 * SECOND; /* neighbours of the last test are forgotten */
	server.uplink.up = true;
	return port_rig_setup(state);
}

TEST_FIXTURE(set_up, port_rig_teardown);
TEST_GROUP(port_rig_group_setup, port_rig_group_teardown);

static void say(uint16_t n, struct share_message message)
{
	message.version = SHARE_VERSION;
	assert_int_equal(message_send(sockets[n], &message, NULL, 0), 0);
	control_event(&server, EVENT_SOCKET, n);
}

/* Return the reply to a message of a process. */
static struct share_message ask(uint16_t n, struct share_message message)
{
	struct share_message reply;

	message.number = 77;
	say(n, message);
	assert_int_equal(message_receive(sockets[n], &reply, NULL), 0);
	assert_int_equal(reply.type, SHARE_REPLY);
	assert_int_equal(reply.number, 77);
	return reply;
}

static void no_reply(uint16_t n)
{
	struct share_message reply;

	assert_int_equal(message_receive(sockets[n], &reply, NULL), -EAGAIN);
}

static struct share_message about(enum share_message_type type, const uint8_t gid[GID_LEN])
{
	struct share_message message = {.type = type, .number = 1, .from = {.vlan = VLAN_NONE}};

	memcpy(message.from.gid, host, GID_LEN);
	memcpy(message.gid, gid, GID_LEN);
	return message;
}

static struct share_message about_group(enum share_message_type type, unsigned int n)
{
	const uint8_t gid[GID_LEN] = {0xff, 0x0e, [14] = (uint8_t)(n >> 8), [15] = (uint8_t)n};

	return about(type, gid);
}

static int join(uint16_t n, unsigned int group)
{
	return ask(n, about_group(SHARE_JOIN, group)).result;
}

static int leave(uint16_t n, unsigned int group)
{
	return ask(n, about_group(SHARE_LEAVE, group)).result;
}

TEST(route__by_our_own_addresses)
{
	static const uint8_t far[GID_LEN] = {[10] = 0xff, 0xff, 10, 9, 1, 2};
	struct share_message reply = ask(0, about(SHARE_ROUTE, peer)), message;

	assert_int_equal(reply.result, 0);
	assert_false(reply.hop.known);
	assert_memory_equal(reply.hop.gid, peer, GID_LEN);
	reply = ask(0, about(SHARE_ROUTE, host));
	assert_int_equal(reply.result, 0);
	assert_true(reply.hop.known);
	assert_memory_equal(reply.hop.mac, our_mac, 6);
	assert_int_equal(ask(0, about(SHARE_ROUTE, far)).result, -ENETUNREACH);
	/* Nothing is told about networks where we have no address. */
	message = about(SHARE_ROUTE, peer);
	message.from.vlan = 5;
	assert_int_equal(ask(0, message).result, -ENETUNREACH);
	message = about(SHARE_ROUTE, peer);
	memcpy(message.from.gid, peer, GID_LEN);
	assert_int_equal(ask(0, message).result, -ENETUNREACH);
}

TEST(resolve__asks_the_network_once_and_tells_the_answer)
{
	struct share_message reply = ask(0, about(SHARE_RESOLVE, peer));
	struct share_message message = about(SHARE_RESOLVE, peer);

	assert_int_equal(reply.result, 0);
	assert_int_equal(server.uplink.pending_count, 1);
	assert_int_equal(ask(1, about(SHARE_RESOLVE, peer)).result, 0);
	assert_int_equal(server.uplink.pending_count, 1);
	neigh_answer(&server.uplink.link.neighbours, VLAN_NONE, peer, peer_mac, true,
		     server.now_ns);
	reply = ask(0, about(SHARE_RESOLVE, peer));
	assert_int_equal(reply.result, 1);
	assert_memory_equal(reply.mac, peer_mac, 6);
	assert_int_equal(server.uplink.pending_count, 1);
	message.from.vlan = 5;
	assert_int_equal(ask(0, message).result, 0);
	assert_int_equal(server.uplink.pending_count, 1);
}

/* The process asks again. */
TEST(resolve__without_a_buffer)
{
	struct rte_mempool *pool = server.uplink.link.port.pool;
	static struct rte_mbuf *all[65536];
	unsigned int count = 0;

	while (count < RTE_DIM(all) && (all[count] = rte_pktmbuf_alloc(pool)) != NULL)
		count++;
	assert_in_range(count, 1, RTE_DIM(all) - 1);
	assert_int_equal(ask(0, about(SHARE_RESOLVE, peer)).result, 0);
	assert_int_equal(server.totals.no_buffer, 1);
	rte_pktmbuf_free_bulk(all, count);
	assert_int_equal(ask(0, about(SHARE_RESOLVE, peer)).result, 0);
	assert_int_equal(server.totals.no_buffer, 1);
	assert_int_equal(server.uplink.pending_count, 1);
}

static bool port_is_in(unsigned int n)
{
	const struct share_message message = about_group(SHARE_JOIN, n);
	const struct group *group;

	LIST_FOREACH (group, &server.uplink.link.groups.list, link) {
		if (memcmp(group->gid, message.gid, GID_LEN) == 0)
			return true;
	}
	return false;
}

TEST(join__the_port_is_in_a_group_while_a_process_is)
{
	assert_int_equal(join(0, 1), 0);
	assert_int_equal(join(0, 1), 0);
	assert_int_equal(join(1, 1), 0);
	assert_int_equal(server.totals.groups, 2);
	assert_true(port_is_in(1));
	assert_int_equal(leave(0, 1), 0);
	assert_int_equal(leave(0, 1), 0);
	assert_int_equal(server.totals.groups, 1);
	assert_true(port_is_in(1));
	/* The end of a process ends its memberships, and no other's. */
	assert_int_equal(join(1, 2), 0);
	assert_int_equal(join(0, 2), 0);
	control_leave_all(&server, 1);
	assert_int_equal(server.totals.groups, 1);
	assert_false(port_is_in(1));
	assert_true(port_is_in(2));
	assert_int_equal(leave(0, 2), 0);
	assert_false(port_is_in(2));
	assert_int_equal(ask(0, about(SHARE_JOIN, peer)).result, -EINVAL);
}

TEST(join__no_more_groups_than_a_process_may_have)
{
	unsigned int count = 0;
	int rc;

	while ((rc = join(0, count)) == 0)
		count++;
	assert_int_equal(rc, -ENOMEM);
	assert_true(count <= GROUPS_MAX);
	/* The port has no room for others; what it is in costs nothing. */
	assert_int_equal(join(1, 0), 0);
	control_leave_all(&server, 0);
	assert_int_equal(server.totals.groups, 1);
	control_leave_all(&server, 1);
}

TEST(ask__what_is_answered)
{
	struct share_message message = {.type = SHARE_XRC, .xrc = {.type = XRC_FIND}};

	assert_int_equal(ask(0, (struct share_message){.type = SHARE_WELCOME}).result, -EOPNOTSUPP);
	assert_int_equal(ask(0, message).result, -EINVAL);
	message.xrc.type = XRC_CLOSE;
	say(0, message);
	no_reply(0);
	say(0, (struct share_message){.type = SHARE_RELEASE});
	no_reply(0);
	assert_int_equal(server.slots.all[0].state, SLOT_LIVE);
	/* The first engine of a process has all this. */
	server.slots.all[0].is_further = true;
	assert_int_equal(ask(0, about(SHARE_ROUTE, peer)).result, -EOPNOTSUPP);
	assert_int_equal(ask(0, message).result, -EOPNOTSUPP);
	server.slots.all[0].is_further = false;
	assert_int_equal(server.totals.refused, 0);
}

TEST(ask__what_is_no_message_ends_the_process)
{
	assert_int_equal(send(sockets[0], "x", 1, 0), 1);
	control_event(&server, EVENT_SOCKET, 0);
	assert_int_equal(server.slots.all[0].state, SLOT_CLOSING);
	assert_int_equal(server.slots.all[1].state, SLOT_LIVE);
	assert_int_equal(server.totals.refused, 1);
}

TEST(ask__a_process_that_has_gone_breaks_no_rule)
{
	shutdown(sockets[0], SHUT_RDWR);
	control_event(&server, EVENT_SOCKET, 0);
	assert_int_not_equal(server.slots.all[0].state, SLOT_LIVE);
	assert_int_equal(server.totals.refused, 0);
}

/* A process that is stopped reads nothing: it is told when it goes on. */
TEST(send_addresses__waits_for_room)
{
	struct share_message message;
	unsigned int told = 0;

	while (!server.slots.all[0].addresses_due) {
		control_send_addresses(&server, 0);
		told++;
	}
	while (message_receive(sockets[0], &message, NULL) == 0) {
		assert_int_equal(message.type, SHARE_ADDRESSES);
		assert_int_equal(message.addresses.count, 1);
		assert_true(message.link_up);
		told--;
	}
	assert_int_equal(told, 1);
	control_send_addresses(&server, 0);
	assert_false(server.slots.all[0].addresses_due);
	assert_int_equal(message_receive(sockets[0], &message, NULL), 0);
}

/* Return what a client's first message is answered with, and let it go. */
static ssize_t hello(const void *bytes, size_t len, void *answer, size_t room)
{
	ssize_t got = -1;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, (uint32_t)pair[0]), 0);
	control_event(&server, EVENT_HELLO, (uint32_t)pair[0]); /* nothing is there yet */
	assert_int_equal(recv(pair[1], answer, room, MSG_DONTWAIT), -1);
	if (len > 0)
		assert_int_equal(send(pair[1], bytes, len, 0), len);
	else
		shutdown(pair[1], SHUT_WR);
	control_event(&server, EVENT_HELLO, (uint32_t)pair[0]);
	got = recv(pair[1], answer, room, MSG_DONTWAIT);
	/* Then it is closed. */
	assert_int_equal(got > 0 ? recv(pair[1], &(char){0}, 1, MSG_DONTWAIT) : 0, 0);
	close(pair[1]);
	return got;
}

TEST(hello__status_and_what_is_refused)
{
	static char text[SHARE_STATUS_MAX];
	struct share_message message = {.type = SHARE_STATUS, .version = SHARE_VERSION}, answer;
	ssize_t len = hello(&message, sizeof(message), text, sizeof(text));

	assert_in_range(len, 100, SHARE_STATUS_MAX);
	assert_non_null(memmem(text, (size_t)len, "process", strlen("process")));
	assert_int_equal(server.totals.refused, 0);
	message.type = SHARE_ROUTE;
	assert_int_equal(hello(&message, sizeof(message), &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(answer.type, SHARE_WELCOME);
	assert_int_equal(answer.result, -EPROTO);
	assert_int_equal(hello("x", 1, &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(answer.result, -EPROTO);
	assert_int_equal(server.totals.refused, 2);
	/* One that goes at once. */
	assert_int_equal(hello("", 0, &answer, sizeof(answer)), 0);
	assert_int_equal(server.totals.refused, 2);
}

/* A further engine needs the slot of its process's first one. */
TEST(hello__of_a_further_engine_without_a_first)
{
	struct share_message message = {.type = SHARE_HELLO,
					.version = SHARE_VERSION,
					.engine = {.number = 1, .count = 2, .slot = 7}};
	struct share_message answer;

	assert_int_equal(hello(&message, sizeof(message), &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(answer.type, SHARE_WELCOME);
	assert_true(answer.result < 0);
	assert_int_equal(server.slots.live_count, PORT_RIG_PROCESSES);
}
