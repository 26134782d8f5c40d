/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles processes' requests over their sockets. */
#include "control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "event.h"
#include "forward.h"
#include "isolated.h"
#include "listen.h"
#include "mads.h"
#include "memif/socket.h"
#include "pause.h"
#include "psocks.h"
#include "resume.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"
#include "uplink.h"

#define GROUPS_MAX 256 /* of a process */
/* Groups of an untrusted user, counted once for each network. The kernel accepts 20 groups for each
 * socket. */
#define MEMBERSHIPS_USER_MAX 512

static struct server_group *find_group(struct server *server, int slot, const uint8_t gid[GID_LEN])
{
	struct server_group *group;

	LIST_FOREACH (group, &server->groups, link) {
		if ((slot < 0 || group->slot == slot) && memcmp(group->gid, gid, GID_LEN) == 0)
			return group;
	}
	return NULL;
}

static unsigned int count_groups(const struct server *server, uint16_t number)
{
	const struct server_group *group;
	unsigned int count = 0;

	LIST_FOREACH (group, &server->groups, link)
		count += group->slot == number;
	return count;
}

static unsigned int count_networks(const struct addresses *addresses)
{
	unsigned int count = 0;

	for (size_t i = 0; i < addresses->count; i++)
		count += addresses_first_of_vlan(addresses, i);
	return RTE_MAX(count, 1u);
}

/* Return true if a process may join one more group. A group costs a part of a socket in each
 * network. */
static bool control_may_join(const struct server *server, uint16_t number)
{
	const struct slot *slot = &server->slots.all[number];
	unsigned int count = 0;

	if (count_groups(server, number) == GROUPS_MAX)
		return false;
	if (!slot->isolated || !user_is_limited(slot->user))
		return true;
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++) {
		if (server->slots.all[i].isolated && server->slots.all[i].user == slot->user)
			count += count_groups(server, i);
	}
	return (count + 1) * count_networks(&server->uplink.link.addresses) <= MEMBERSHIPS_USER_MAX;
}

/* Add a process to a group. The port is in the group while at least one process is. */
static int control_join(struct server *server, uint16_t number, const uint8_t gid[GID_LEN])
{
	struct server_group *group;
	int rc = 0;

	if (find_group(server, number, gid))
		return 0;
	if (!gid_is_multicast(gid))
		return -EINVAL;
	if (!control_may_join(server, number))
		return -ENOMEM;
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	if (!find_group(server, -1, gid))
		rc = link_join(&server->uplink.link, gid, server->now_ns);
	if (rc != 0) {
		free(group);
		return rc;
	}
	group->slot = number;
	memcpy(group->gid, gid, GID_LEN);
	LIST_INSERT_HEAD(&server->groups, group, link);
	server->totals.groups++;
	return 0;
}

static void control_leave(struct server *server, struct server_group *group)
{
	uint8_t gid[GID_LEN], frame[LINK_REPLY_MAX];
	size_t len;

	memcpy(gid, group->gid, GID_LEN);
	LIST_REMOVE(group, link);
	free(group);
	server->totals.groups--;
	if (find_group(server, -1, gid))
		return;
	/* The port leaves the group even if no buffer is free for the messages that say so. */
	while (link_leave(&server->uplink.link, gid, server->now_ns, frame, &len)) {
		if (len > 0)
			(void)forward_send_copy(server, frame, len);
	}
}

void control_leave_all(struct server *server, uint16_t number)
{
	struct server_group *group, *next;

	for (group = LIST_FIRST(&server->groups); group; group = next) {
		next = LIST_NEXT(group, link);
		if (group->slot == number)
			control_leave(server, group);
	}
}

static int control_resolve(struct server *server, uint16_t number, struct share_message *message)
{
	const uint16_t asker = server->slots.all[number].isolated ? number : NEIGH_TRUSTED;
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server->uplink.link.port.pool);
	size_t len = 0;
	bool known;

	if (!mbuf) {
		server->totals.no_buffer++;
		return 0;
	}
	known = link_resolve(&server->uplink.link, asker, &message->from, message->gid,
			     server->now_ns, message->mac, rte_pktmbuf_mtod(mbuf, uint8_t *), &len);
	if (len > 0)
		forward_send_own(server, mbuf, len);
	else
		rte_pktmbuf_free(mbuf);
	return known;
}

/* Return true if `from` is an address of ours, and replace it by our own entry. So a process
 * learns only what this address reaches, and nothing of other networks. */
static bool control_knows(const struct server *server, struct address *from)
{
	const struct addresses *own = &server->uplink.link.addresses;

	for (size_t i = 0; i < own->count; i++) {
		if (own->list[i].vlan == from->vlan &&
		    memcmp(own->list[i].gid, from->gid, GID_LEN) == 0) {
			*from = own->list[i];
			return true;
		}
	}
	return false;
}

static int control_answer(struct server *server, uint16_t number, struct share_message *message)
{
	struct server_group *group;

	/* The first engine has the process's addresses, groups and ports. */
	if (server->slots.all[number].is_further)
		return -EOPNOTSUPP;
	switch (message->type) {
	case SHARE_ROUTE:
		if (!control_knows(server, &message->from))
			return -ENETUNREACH;
		return link_route(&server->uplink.link, &message->from, message->gid,
				  &message->hop);
	case SHARE_RESOLVE:
		if (!control_knows(server, &message->from))
			return 0;
		return control_resolve(server, number, message);
	case SHARE_JOIN:
		return control_join(server, number, message->gid);
	case SHARE_LEAVE:
		group = find_group(server, number, message->gid);
		if (group)
			control_leave(server, group);
		return 0;
	case SHARE_DECLINE:
		return psocks_end(server, number);
	case SHARE_CLAIM:
	case SHARE_LISTEN:
	case SHARE_CHANGE:
	case SHARE_RELEASE:
		return mads_ports(server, number, message);
	default:
		return -EOPNOTSUPP;
	}
}

/* Receive the next message. A process passes no descriptor with it. */
static int control_receive(struct server *server, uint16_t number, struct share_message *message)
{
	const struct slot *slot = &server->slots.all[number];
	int fd, rc;

	if (!slot->isolated)
		return message_receive(slot->socket, message, NULL);
	rc = pending_client_receive(slot->socket, message, &fd);
	memif_socket_discard(fd);
	return fd >= 0 ? -EPROTO : rc;
}

/* Stop serving a process that broke a rule or has gone. */
static void control_give_up(struct server *server, uint16_t number, int rc)
{
	/* When a process ends, its socket closes before its pidfd reports the end. We find the
	 * socket closed when we read or answer. */
	if (rc == -ECONNRESET || rc == -EPIPE) {
		slot_hang_up(server, number);
		return;
	}
	server->totals.refused++;
	slot_close(server, number);
}

static int control_reply(struct server *server, uint16_t number, struct share_message *message)
{
	message->type = SHARE_REPLY;
	return message_send(server->slots.all[number].socket, message, NULL, 0);
}

static int control_xrc(struct server *server, uint16_t number, struct share_message *message)
{
	bool is_answered;

	message->result = xrc_hear(server, number, &message->xrc, &is_answered);
	return is_answered ? control_reply(server, number, message) : message->result;
}

/* Do what a message asks for, and answer it. 0 or -errno. */
static int control_handle(struct server *server, uint16_t number, struct share_message *message)
{
	const struct slot *slot = &server->slots.all[number];
	bool is_answered;

	if (slot->isolated && message->type == SHARE_MEMIF)
		return isolated_plug(server, number, message);
	if (message->type == SHARE_XRC && !slot->is_further)
		return control_xrc(server, number, message);
	if (message->type == SHARE_RETURNED) {
		resume_note_returned(server, number);
		return 0;
	}
	/* A process that only tells us that it leaves a group gives no number, and reads no
	 * answer. */
	is_answered = message->type != SHARE_RELEASE &&
		      (message->type != SHARE_LEAVE || message->number != 0);
	message->result = control_answer(server, number, message);
	return is_answered ? control_reply(server, number, message) : 0;
}

static void control_socket(struct server *server, uint16_t number)
{
	struct share_message message;
	int rc;

	rc = control_receive(server, number, &message);
	if (rc == -EBUSY)
		pause_slot(server, number);
	if (rc == -EAGAIN || rc == -EBUSY)
		return;
	if (rc == 0)
		rc = control_handle(server, number, &message);
	if (rc != 0)
		control_give_up(server, number, rc);
}

/* Handle messages on an isolated process's memif socket. */
static void control_memif(struct server *server, uint16_t number)
{
	const int rc = isolated_hear(server, number);

	if (rc == -EBUSY)
		pause_slot(server, number);
	else if (rc != 0)
		control_give_up(server, number, rc);
}

void control_send_addresses(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	const struct share_message message = {.type = SHARE_ADDRESSES,
					      .version = SHARE_VERSION,
					      .addresses = server->uplink.link.addresses,
					      .link_up = server->uplink.up,
					      .away_ms = server->resume.away_ms};

	/* If the process has stopped and its socket is full, it is told when there is room
	 * again. */
	slot->addresses_due = message_send(slot->socket, &message, NULL, 0) == -EAGAIN;
}

static void control_send_status(struct server *server, int fd)
{
	char text[SHARE_STATUS_MAX];
	const int len = serve_status(server, text, sizeof(text));

	if (len > 0 && send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_info("cannot send the status that was requested: %s", strerror(errno));
}

static void control_listen(struct server *server)
{
	const int fd = listen_accept(server, &server->pending_clients.trusted);

	if (fd < 0)
		return;
	if (event_watch(server, fd, EVENT_HELLO, (uint32_t)fd) != 0)
		close(fd);
}

static int control_begin(struct server *server, int fd, const struct share_message *message,
			 int report_fd)
{
	int rc;

	if (message->engine.number > 0) {
		rc = slot_begin_further(server, fd, message);
		if (rc != 0)
			log_info("a further engine has no slot: %s", strerror(-rc));
		return rc;
	}
	return slot_begin(server, fd, report_fd, message->holds_nothing ? SLOT_HOLDS_NOTHING : 0,
			  message);
}

/* Handle a client's first message, which says what the client wants. */
static void control_hello(struct server *server, int fd)
{
	struct share_message message;
	int fds[SHARE_FDS];
	int rc = message_receive(fd, &message, fds);
	const bool hello = rc == 0 && message.type == SHARE_HELLO;

	if (rc == -EAGAIN)
		return;
	if (hello)
		rc = control_begin(server, fd, &message, fds[0]);
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	if (hello && rc == 0)
		return;
	/* The next owner keeps its connection until this one has left. */
	if (rc == 0 && message.type == SHARE_REPLACE && resume_replace(server, fd, &message) == 0)
		return;
	if (rc == 0 && message.type == SHARE_STATUS) {
		control_send_status(server, fd);
	} else if (!hello && rc != -ECONNRESET && !(rc == 0 && message.type == SHARE_REPLACE)) {
		listen_refuse_hello(server, fd, rc);
	}
	resume_next_ended(server, fd);
	close(fd);
}

/* Charge the descriptors that come from an isolated process to its user. */
static void control_hear(struct server *server, enum server_event event, uint16_t number)
{
	memif_socket_charge(server->slots.all[number].user);
	if (event == EVENT_SOCKET)
		control_socket(server, number);
	else
		control_memif(server, number);
	memif_socket_charge(USER_TRUSTED);
}

static void control_do(struct server *server, enum server_event event, uint32_t number)
{
	switch (event) {
	case EVENT_WAKE:
	case EVENT_PORT:
		break;
	case EVENT_CONN:
		uplink_conn_run(server);
		break;
	case EVENT_LISTEN:
		control_listen(server);
		break;
	case EVENT_HELLO:
		control_hello(server, (int)number);
		break;
	case EVENT_SOCKET:
	case EVENT_MEMIF:
		control_hear(server, event, (uint16_t)number);
		break;
	case EVENT_PIDFD:
		slot_end(server, (uint16_t)number);
		break;
	case EVENT_LISTEN_ISOLATED:
		pending_client_accept(server);
		break;
	case EVENT_PENDING_CLIENT:
		pending_client_hello(server, (int)number);
		break;
	case EVENT_DOORBELL:
		break;
	}
}

/* Return this thread's CPU time. No client is charged for time in which other threads had the
 * CPU. */
static uint64_t control_worked_ns(void)
{
	struct timespec worked;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &worked);
	return (uint64_t)worked.tv_sec * 1000000000 + (uint64_t)worked.tv_nsec;
}

/* Handle an event, and charge its CPU time to the untrusted user that caused it. */
void control_event(struct server *server, enum server_event event, uint32_t number)
{
	const uint64_t begun_ns = control_worked_ns();
	const bool pending = event == EVENT_PENDING_CLIENT || event == EVENT_LISTEN_ISOLATED;
	bool isolated = false;

	if (event == EVENT_SOCKET || event == EVENT_MEMIF || event == EVENT_PIDFD)
		isolated = server->slots.all[number].isolated != NULL;
	server->clock_ns = event_now_ns();
	control_do(server, event, number);
	server->clock_ns = event_now_ns();
	if (isolated && server->slots.all[number].state == SLOT_LIVE)
		pause_charge_slot(server, (uint16_t)number, control_worked_ns() - begun_ns);
	else if (isolated || pending)
		pause_charge_pending_clients(server, control_worked_ns() - begun_ns);
}
