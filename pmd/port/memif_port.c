/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets over memif. A packet to be sent is built in memif's own buffers. A received packet is
 * copied out of them once, and the copy computes the ICRC: so the bytes that were checked are the
 * bytes that are used, even if the other end writes to the buffers meanwhile.
 */
#include "memif_burst.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_pause.h>

#include "base/own.h"
#include "memif/socket.h"
#include "port/port_eal.h"
#include "wire/qpn_block.h"

#define SETTLE_PAUSES	    32
#define MEMIF_DOORBELLS_MAX 16 /* doorbells whose notifications one call discards */

bool memif_port_is_connected(const struct memif_port *memif)
{
	return memif->end->state == MEMIF_STATE_CONNECTED;
}

uint32_t memif_port_pairs(const struct memif_port *memif)
{
	return memif->end->side == MEMIF_SERVER ? memif->server.pairs : memif->client.pairs;
}

struct memif_end *memif_port_pair(struct memif_port *memif, uint32_t pair)
{
	return memif->end->side == MEMIF_SERVER ? memif_server_end(&memif->server, pair)
						: memif_client_end(&memif->client, pair);
}

bool memif_port_is_broken(struct memif_port *memif)
{
	for (uint32_t i = 0; i < memif_port_pairs(memif); i++) {
		if (memif_port_pair(memif, i)->state == MEMIF_STATE_BROKEN)
			return true;
	}
	return false;
}

void memif_port_alarm(const struct memif_port *memif)
{
	own_ring(memif->alarm_fd);
}

/* Raise the alarm if the other end has broken a rule. Called after each operation that can detect
 * it: no packets move until there is a new connection. */
static void memif_look(const struct memif_port *memif)
{
	if (unlikely(memif->end->state == MEMIF_STATE_BROKEN))
		memif_port_alarm(memif);
}

static uint16_t memif_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct memif_port *memif = arg;
	struct memif_taken taken = {0};

	burst_receive(&memif->first, memif->end, mbufs, n, &taken);
	burst_note(&memif->first, &taken, n);
	if (taken.packets + taken.dropped > 0)
		memif_end_release(memif->end);
	memif_look(memif);
	return unlikely(memif->first.port->watched)
		       ? memif->first.port->eal->stand_in_received(memif->stand_in, mbufs,
								   taken.packets, n)
		       : taken.packets;
}

static bool memif_has_room(void *arg)
{
	struct memif_port *memif = arg;
	const bool has_room = memif_end_has_room(memif->end);

	if (unlikely(!has_room))
		memif_look(memif);
	return has_room;
}

static void memif_expect(void *arg, uint32_t ahead, uint32_t len)
{
	const struct memif_port *memif = arg;

	memif_end_expect(memif->end, ahead, len);
}

static uint8_t *memif_place(void *arg, uint32_t len)
{
	struct memif_port *memif = arg;
	uint8_t *place = memif_end_place(memif->end, len);

	memif->first.port->place_way = memif->end->placing;
	if (unlikely(!place))
		memif_look(memif);
	return place;
}

static void memif_placed(void *arg, uint32_t len)
{
	struct memif_port *memif = arg;

	memif_end_placed(memif->end, len);
}

/*
 * Write to the other end's eventfd, but only if it has room: the other end could have filled it to
 * block us. A small window remains: the other end can make the eventfd blocking and fill it between
 * the poll and the write. That is accepted, because it would be the user's own program; an isolated
 * program's eventfd is never written to. No write avoids the window: both ends share O_NONBLOCK,
 * and eventfds do not support RWF_NOWAIT.
 */
void memif_port_ring_doorbell(int fd)
{
	const int cancel_state = cancel_disable();
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

	if (own_is(fd) && poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT))
		own_ring_checked(fd);
	cancel_restore(cancel_state);
}

/* Ring before the packet is there. The packet rings again when it is published: the other end may
 * have woken before that, found nothing, and fallen asleep again. */
static void memif_wake_other_end(void *arg)
{
	const struct memif_port *memif = arg;

	if (memif_end_is_asleep(memif->end))
		memif_port_ring_doorbell(memif->end->doorbell_fd);
}

static void memif_push(void *arg)
{
	struct memif_port *memif = arg;

	burst_push(&memif->first, memif->end);
}

static bool memif_taken(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken)
{
	const struct memif_port *memif = arg;

	uint32_t dropped;

	if (!memif_end_tell_taken(memif->end, &taken->given, &taken->taken, &dropped))
		return false;
	/* An owner tells only of packets to processes of this host. */
	taken->dropped = is_local ? dropped : 0;
	taken->unread = is_local && (memif_end_unread(memif->end) & wire_block_bit(qpn)) != 0;
	return true;
}

/* Send packets that were built in mbufs. Without a connection they are lost, and counted. */
static uint16_t memif_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct memif_port *memif = arg;
	struct memif_end *end = memif_port_is_connected(memif) ? memif->end : NULL;
	uint16_t sent = 0;

	if (unlikely(memif->first.port->watched))
		n = memif->first.port->eal->stand_in_sends(memif->stand_in, mbufs, n);
	while (sent < n && burst_send_one(&memif->first, end, mbufs[sent]))
		sent++;
	memif_look(memif);
	if (sent > 0) {
		memif_push(memif);
		port_free_burst(mbufs, sent);
	}
	return sent;
}

static void memif_listen(struct memif_port *memif, bool on)
{
	memif_end_listen(memif->end, on);
	__atomic_store_n(&memif->first.port->armed, on, __ATOMIC_RELAXED);
}

/* Ask for notifications. The fence orders the store before the loads that follow: either we see the
 * other end's packets, or it sees that we sleep. */
static void memif_ask_to_be_woken(struct memif_port *memif)
{
	memif_listen(memif, true);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Discard old notifications: those of this port, and those of direct channels, which have the same
 * set. Do not listen to another end any more that sends anything else. */
static void memif_clear_doorbells(const struct memif_port *memif)
{
	struct epoll_event events[MEMIF_DOORBELLS_MAX];
	uint64_t before;
	int count;

	if (!own_is(memif->first.epoll_fd))
		return;
	before = memif_socket_charge(MEMIF_SOCKET_PEERS);
	count = epoll_wait(memif->first.epoll_fd, events, MEMIF_DOORBELLS_MAX, 0);
	for (int i = 0; i < count; i++) {
		const int fd = events[i].data.fd;

		if (memif->end->wakes_by_socket && (!own_is(fd) || !memif_doorbell_clear(fd)))
			epoll_ctl(memif->first.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	}
	memif_socket_charge(before);
}

/*
 * Arm the port. DPDK's driver and libmemif have no fence between their store of an index and their
 * load of our flag. So they may load the flag before their store is visible, and then neither end
 * notices the other. So check the ring for about a microsecond, in which a store leaves its CPU's
 * store buffer. A store that takes longer is found at the next look, at most 20 ms later. An other
 * end that rings by a socket has the fence.
 */
static bool memif_arm(void *arg)
{
	struct memif_port *memif = arg;
	const int looks = memif->end->wakes_by_socket ? 0 : SETTLE_PAUSES;

	memif_clear_doorbells(memif);
	memif_ask_to_be_woken(memif);
	for (int i = 0; i < looks; i++) {
		if (memif_end_waits(memif->end))
			return true;
		rte_pause();
	}
	return memif_end_waits(memif->end);
}

static void memif_disarm(void *arg)
{
	memif_listen(arg, false);
}

void *memif_caller_arg(const void *arg)
{
	const struct memif_port *memif = arg;

	return memif->caller_arg;
}

struct memif_mark memif_caller_sent(const void *arg)
{
	const struct memif_port *memif = arg;

	return (struct memif_mark){memif->first.port->connections, memif_end_sent(memif->end)};
}

bool memif_caller_has_taken(const void *arg, const struct memif_mark *mark)
{
	const struct memif_port *memif = arg;

	return memif->first.port->connections != mark->connection ||
	       memif_end_has_taken(memif->end, mark->index);
}

struct memif_mark memif_caller_arrived(const void *arg)
{
	const struct memif_port *memif = arg;

	return (struct memif_mark){memif->first.port->connections, memif_end_arrived(memif->end)};
}

bool memif_caller_has_received(const void *arg, const struct memif_mark *mark)
{
	const struct memif_port *memif = arg;

	return memif->first.port->connections != mark->connection ||
	       !memif_port_is_connected(memif) || memif_end_has_received(memif->end, mark->index);
}

static bool memif_connected(void *arg)
{
	return memif_port_is_connected(arg);
}

/* The link counts as up until the first peer has come and gone (port_link_up). */
bool memif_port_link_up(void *arg, bool connected)
{
	const struct memif_port *memif = arg;

	return memif->caller ? memif->caller->link_up(memif->caller_arg)
			     : connected || !memif->had_peer;
}

bool memif_port_lost(void *arg)
{
	const struct memif_port *memif = arg;

	return memif->caller && memif->caller->lost(memif->caller_arg);
}

void memif_port_lose(void *arg)
{
	struct memif_port *memif = arg;

	memif->given_up = true;
}

void memif_port_close(void *arg)
{
	struct memif_port *memif = arg;

	/* A thread may be stuck in a further engine that could not be ended, and use the rings. */
	if (memif->open_queues == 0)
		memif_conn_close(memif);
}

int memif_port_conn_fd(const void *arg)
{
	const struct memif_port *memif = arg;

	return memif->conn_epoll_fd;
}

const struct port_ops memif_port_ops = {
	.open = memif_port_open,
	.rx_burst = memif_rx_burst,
	.tx_burst = memif_tx_burst,
	.expect = memif_expect,
	.has_room = memif_has_room,
	.place = memif_place,
	.placed = memif_placed,
	.push = memif_push,
	.taken = memif_taken,
	.wake_other_end = memif_wake_other_end,
	.arm = memif_arm,
	.disarm = memif_disarm,
	.link_up = memif_port_link_up,
	.connected = memif_connected,
	.lost = memif_port_lost,
	.lose = memif_port_lose,
	.conn_run = memif_conn_look,
	.conn_fd = memif_port_conn_fd,
	.conn_ms = memif_conn_due_ms,
	.open_queue = memif_port_open_queue,
	.close = memif_port_close,
	.destroy = memif_port_destroy,
};
