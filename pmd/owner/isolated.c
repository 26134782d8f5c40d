/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An isolated process has no part of the arena. It is a memif client with memory of its own, and
 * packets are copied. We make both ends of the sockets of the memif connection, and pass it one end
 * of each. If it made them, it could keep a copy of our end, and keep us from reading that
 * (memif/doorbell.h).
 */
#include "isolated.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/own.h"
#include "event.h"
#include "forward.h"
#include "mads.h"
#include "memif/doorbell.h"
#include "memif/server_end.h"
#include "memif/socket.h"
#include "server.h"
#include "share/message.h"
#include "share/vet.h"

struct isolated {
	int socket_fd; /* memif's messages; -1: the process has no memif connection now */
	bool heard;    /* a message has come over this connection */
	struct memif_server memif;
	bool hung_up;  /* memif's other end has gone: its packets are taken, then its memory is
			  unmapped */
	uint32_t left; /* hung_up: packets to be taken, at most */
	struct rte_mbuf *waiting; /* a packet taken from the process; its receiver had no room */
	/* of waking the process, in all its connections */
	struct memif_doorbell_cost doorbell_cost;
};

int isolated_create(struct slot *slot)
{
	slot->isolated = calloc(1, sizeof(*slot->isolated));
	if (!slot->isolated)
		return -ENOMEM;
	slot->isolated->socket_fd = -1;
	memif_server_init(&slot->isolated->memif, &memif_limits_isolated);
	return 0;
}

static void isolated_unplug(struct server *server, struct isolated *isolated)
{
	/* Closing is not enough: the process has the eventfd open too, so it would stay in the set.
	 */
	if (isolated->memif.end.wake_fd >= 0)
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, isolated->memif.end.wake_fd, NULL);
	memif_socket_end(server->epoll_fd, isolated->socket_fd);
	isolated->socket_fd = -1;
	isolated->heard = false;
	isolated->hung_up = false;
	memif_server_fini(&isolated->memif);
	memif_server_init(&isolated->memif, &memif_limits_isolated);
}

void isolated_destroy(struct server *server, struct slot *slot)
{
	if (!slot->isolated)
		return;
	isolated_unplug(server, slot->isolated);
	rte_pktmbuf_free(slot->isolated->waiting);
	free(slot->isolated);
	slot->isolated = NULL;
}

/* Make the sockets of a connection: our ends of them, and the process's. 0 or -errno. */
static int isolated_make_sockets(struct isolated *isolated, int theirs[SHARE_MEMIF_FDS])
{
	int ends[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return -errno;
	isolated->socket_fd = ends[0];
	theirs[SHARE_MEMIF_FD_SOCKET] = ends[1];
	rc = memif_doorbell_make(ends);
	if (rc != 0)
		return rc;
	own_mark(ends[0]);
	memif_end_take_doorbell(&isolated->memif.end, ends[0]);
	theirs[SHARE_MEMIF_FD_DOORBELL] = ends[1];
	return 0;
}

/* Make a connection, and say hello to the process on it. 0 or -errno. */
static int isolated_connect(struct server *server, uint16_t number, int theirs[SHARE_MEMIF_FDS])
{
	struct isolated *isolated = server->slots.all[number].isolated;
	struct memif_message hello;
	int rc = isolated_make_sockets(isolated, theirs);

	if (rc == 0)
		rc = event_watch(server, isolated->socket_fd, EVENT_MEMIF, number);
	memif_server_hello(&isolated->memif, &hello, "uroced");
	if (rc == 0)
		rc = memif_socket_send(isolated->socket_fd, &hello, sizeof(hello));
	if (rc != 0)
		isolated_unplug(server, isolated);
	return rc;
}

/* Return true if the process has an answer that it has not used. The kernel counts descriptors that
 * nobody has received yet against us: a process that asks and never receives would use up what we
 * may send to others. */
static bool isolated_has_answer(const struct isolated *isolated)
{
	return isolated->socket_fd >= 0 && !isolated->heard;
}

/* Answer a request, with descriptors if there is a connection. If the kernel lets us send no
 * descriptors now, the client asks again. 0 or -errno. */
static int isolated_answer(struct server *server, const struct slot *slot,
			   struct share_message *message, const int theirs[SHARE_MEMIF_FDS])
{
	int rc = message_send(slot->socket, message, theirs,
			      message->result == 0 ? SHARE_MEMIF_FDS : 0);

	if (message->result != 0 || (rc != -ETOOMANYREFS && rc != -ENOMEM && rc != -ENOBUFS))
		return rc;
	isolated_unplug(server, slot->isolated);
	message->result = -EBUSY;
	return message_send(slot->socket, message, NULL, 0);
}

/* Take all packets of a connection that has ended, whatever credit the tenant has. */
static void isolated_take_all(struct server *server, uint16_t number)
{
	struct tenants_take take = {.credit = INT64_MAX};

	isolated_take(server, number, 1u << MEMIF_ISOLATED_LOG2_MAX, &take);
	tenants_charge(&server->tenants, server->slots.all[number].tenant, &take, server->now_ns);
}

int isolated_plug(struct server *server, uint16_t number, struct share_message *message)
{
	const struct slot *slot = &server->slots.all[number];
	int theirs[SHARE_MEMIF_FDS] = {-1, -1};
	int rc;

	if (isolated_has_answer(slot->isolated)) {
		message->result = -EBUSY;
		return isolated_answer(server, slot, message, theirs);
	}

	if (slot->isolated->hung_up)
		isolated_take_all(server, number);
	if (isolated_is_broken(slot))
		return -EPROTO;
	isolated_unplug(server, slot->isolated);
	/* If something is missing here, or too many descriptors are being closed, the client tries
	 * again. */
	message->result =
		memif_socket_is_stuck() ? -EBUSY : isolated_connect(server, number, theirs);
	rc = isolated_answer(server, slot, message, theirs);
	/* The process may have sent descriptors to these ends, and closed them, already. */
	for (int i = 0; i < SHARE_MEMIF_FDS; i++)
		memif_socket_discard(theirs[i]);
	return rc;
}

/* Handle one memif message. 0; -EBUSY: try later; -ECONNRESET: the connection has ended; -EPROTO:
 * the process broke a rule. */
static int isolated_talk(struct server *server, uint16_t number)
{
	struct isolated *isolated = server->slots.all[number].isolated;
	struct memif_message message, answer;
	int len, fd, rc;

	len = memif_socket_receive(isolated->socket_fd, &message, sizeof(message), &fd);
	if (len == -EAGAIN)
		return 0;
	if (len == -EPROTO || len == -EBUSY)
		return len;
	if (len <= 0)
		return -ECONNRESET;
	if (len != (int)sizeof(message)) {
		memif_socket_discard(fd);
		return -EPROTO;
	}
	isolated->heard = true;
	rc = memif_server_take(&isolated->memif, &message, fd, &answer);
	/* Memory that is missing here breaks no rule: the client tries again. */
	if (rc != 0)
		return rc == -EPROTO ? rc : -ECONNRESET;
	if (answer.type == MEMIF_CONNECTED &&
	    event_watch(server, isolated->memif.end.wake_fd, EVENT_DOORBELL, number) != 0)
		return -ECONNRESET;
	return memif_socket_send(isolated->socket_fd, &answer, sizeof(answer)) == 0 ? 0
										    : -ECONNRESET;
}

void isolated_hang_up(struct server *server, struct slot *slot)
{
	memif_socket_end(server->epoll_fd, slot->isolated->socket_fd);
	slot->isolated->socket_fd = -1;
	slot->isolated->hung_up = true;
	slot->isolated->left = 1u << MEMIF_ISOLATED_LOG2_MAX;
}

int isolated_hear(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	int rc;

	if (!slot->isolated || slot->isolated->socket_fd < 0)
		return 0;
	rc = isolated_talk(server, number);
	if (rc != -ECONNRESET)
		return rc;
	isolated_hang_up(server, slot);
	return 0;
}

/* Send a frame to the process. 0 or -errno, as memif_end_send. The process is woken at the end of
 * the poll (isolated_wake). */
static int isolated_send(struct isolated *isolated, const uint8_t *frame, size_t len)
{
	const int rc = memif_end_send(&isolated->memif.end, frame, len);

	if (rc == 0)
		memif_end_publish(&isolated->memif.end);
	return rc;
}

void isolated_tell_dropped(const struct slot *slot)
{
	memif_end_tell_dropped(&slot->isolated->memif.end, slot->dropped);
}

void isolated_tell_unread(const struct slot *slot, uint64_t unread)
{
	memif_end_tell_unread(&slot->isolated->memif.end, unread);
}

bool isolated_tell_taken(const struct slot *slot, uint32_t *given, uint32_t *taken)
{
	uint32_t dropped;

	return memif_end_tell_taken(&slot->isolated->memif.end, given, taken, &dropped);
}

void isolated_wake(struct slot *slot)
{
	struct isolated *isolated = slot->isolated;

	if (memif_end_is_asleep(&isolated->memif.end))
		memif_doorbell_ring(isolated->memif.end.doorbell_fd, &isolated->doorbell_cost);
}

bool isolated_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags)
{
	struct slot *slot = &server->slots.all[number];
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	int rc = -EBADMSG;

	if (slot->state != SLOT_LIVE)
		return false;
	if (!(flags & SHARE_FLAG_LOCAL) || vet_seal(frame, mbuf->data_len))
		rc = isolated_send(slot->isolated, frame, mbuf->data_len);
	if (rc == -EAGAIN || rc == -EPROTO)
		return false;
	if (rc == 0) {
		slot->touched = true;
		slot->rx_packets++;
		transmit_timeout_credit(&slot->transmit_timeout, server->now_ns);
	} else {
		slot->rx_dropped++;
	}
	rte_pktmbuf_free(mbuf);
	return true;
}

/* Copy the process's next packet. If the process may not send it, its length is set to 0. NULL:
 * there is no packet, or no buffer. */
static struct rte_mbuf *isolated_next(struct server *server, uint16_t number, uint32_t *taken)
{
	struct slot *slot = &server->slots.all[number];
	const struct vet vet = {
		.mac = server->uplink.link.port.mac,
		.addresses = &server->uplink.link.addresses,
		.qpn_first = slot->qpn_first,
		.qpn_count = slot->qpn_count,
		.mtu_bytes = server->uplink.link.port.mtu_bytes,
	};
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server->uplink.link.port.pool);
	enum vet_verdict verdict;
	const uint8_t *frame;
	int len;

	if (!mbuf)
		return NULL;
	len = memif_server_receive(&slot->isolated->memif, rte_pktmbuf_mtod(mbuf, uint8_t *),
				   rte_pktmbuf_tailroom(mbuf));
	if (len <= 0) {
		rte_pktmbuf_free(mbuf);
		return NULL;
	}
	(*taken)++;
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	verdict = vet_frame(&vet, frame, (size_t)len);
	if (verdict == VET_REFUSED ||
	    (verdict == VET_MAD && !mads_may_send(server, number, frame, (size_t)len))) {
		server->totals.refused++;
		mbuf->data_len = 0;
	} else if (verdict == VET_MAD && !mads_may_ask(server, number, frame, (size_t)len)) {
		server->totals.mads_dropped++;
		mbuf->data_len = 0;
	}
	return mbuf;
}

uint32_t isolated_take(struct server *server, uint16_t number, uint32_t most,
		       struct tenants_take *take)
{
	struct slot *slot = &server->slots.all[number];
	struct isolated *isolated = slot->isolated;
	struct rte_mbuf *mbuf;
	uint32_t taken = 0;

	if (isolated->waiting && !forward_send_on(server, number, isolated->waiting, take))
		return 0;
	isolated->waiting = NULL;
	while (taken < most && take->cost < take->credit &&
	       (mbuf = isolated_next(server, number, &taken)) != NULL) {
		tenants_take_packet(take, mbuf->pkt_len);
		if (mbuf->data_len == 0) {
			rte_pktmbuf_free(mbuf);
		} else if (!forward_send_on(server, number, mbuf, take)) {
			isolated->waiting = mbuf;
			break;
		}
	}
	/* The process may send the next packet to this receiver by a direct channel as soon as its
	 * ring says that all earlier packets have been taken. So the ring must not say so while a
	 * packet waits here. */
	if (!isolated->waiting)
		memif_end_release(&isolated->memif.end);
	slot->tx_packets += taken;
	if (unlikely(isolated->hung_up)) {
		isolated->left -= RTE_MIN(isolated->left, taken);
		/* If the process broke a rule, its slot is ended elsewhere. */
		if (!isolated_is_broken(slot) && (isolated->left == 0 || !isolated_waits(slot)))
			isolated_unplug(server, isolated);
	}
	return taken;
}

int isolated_socket(const struct slot *slot)
{
	return slot->isolated ? slot->isolated->socket_fd : -1;
}

bool isolated_is_connected(const struct slot *slot)
{
	return slot->isolated->memif.end.state == MEMIF_STATE_CONNECTED;
}

bool isolated_is_broken(const struct slot *slot)
{
	return slot->isolated->memif.end.state == MEMIF_STATE_BROKEN;
}

bool isolated_waits(const struct slot *slot)
{
	return slot->isolated->waiting || memif_end_waits(&slot->isolated->memif.end);
}

void isolated_listen(const struct slot *slot, bool on)
{
	memif_end_listen(&slot->isolated->memif.end, on);
}
