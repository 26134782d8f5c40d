/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of an engine that has several pairs of rings: one with each engine of the other end
 * (memif/doorbell.h). A packet to be sent goes to the engine of its destination queue pair. It is
 * as if the engine had several ports: the pairs have nothing in common.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_pause.h>

#include "base/own.h"
#include "engine_of.h"
#include "memif_burst.h"

#define SETTLE_PAUSES 32

/* Raise the alarm if the other end has broken a rule in one of the engine's pairs. */
static void pairs_look(const struct memif_queue *queue)
{
	for (uint32_t i = 0; i < queue->rx_count; i++) {
		if (unlikely(queue->rx[i]->state == MEMIF_STATE_BROKEN))
			memif_port_alarm(queue->memif);
	}
	for (uint32_t i = 0; i < queue->tx_count; i++) {
		if (unlikely(queue->tx[i]->state == MEMIF_STATE_BROKEN))
			memif_port_alarm(queue->memif);
	}
}

/* Mark packets that the other end has sent to another engine of ours than their queue pair's. */
static void pairs_mark_strays(const struct memif_queue *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		if (engine_of_frame(mbufs[i], queue->memif->engines) != queue->number)
			mbufs[i]->port = PORT_STRAY;
	}
}

/* Each burst begins with another ring, so that none keeps the others waiting. */
static uint16_t pairs_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct memif_queue *queue = arg;
	struct memif_taken taken = {0};
	uint32_t at = queue->rx_next;

	for (uint32_t i = 0; i < queue->rx_count; i++) {
		const int before = taken.packets + taken.dropped;

		burst_receive(queue, queue->rx[at], mbufs, n, &taken);
		if (taken.packets + taken.dropped > before)
			memif_end_release(queue->rx[at]);
		at = at + 1 < queue->rx_count ? at + 1 : 0;
	}
	queue->rx_next = at + 1 < queue->rx_count ? at + 1 : 0;
	burst_note(queue, &taken, n);
	pairs_look(queue);
	if (unlikely(queue->checks_strays))
		pairs_mark_strays(queue, mbufs, taken.packets);
	return taken.packets;
}

/* The packet's destination is not known yet, so there must be room for any. */
static bool pairs_has_room(void *arg)
{
	const struct memif_queue *queue = arg;

	for (uint32_t i = 0; i < queue->tx_count; i++) {
		if (!memif_end_has_room(queue->tx[i])) {
			pairs_look(queue);
			return false;
		}
	}
	return queue->tx_count > 0;
}

static void pairs_choose(struct memif_queue *queue, uint32_t qpn)
{
	queue->aimed_at = engine_of_qpn(qpn, queue->tx_count);
	queue->aimed = queue->tx[queue->aimed_at];
}

static bool pairs_aim(void *arg, uint32_t qpn)
{
	struct memif_queue *queue = arg;

	if (unlikely(queue->tx_count == 0))
		return false;
	pairs_choose(queue, qpn);
	return true;
}

static void pairs_expect(void *arg, uint32_t ahead, uint32_t len)
{
	const struct memif_queue *queue = arg;

	if (likely(queue->aimed))
		memif_end_expect(queue->aimed, ahead, len);
}

static uint8_t *pairs_place(void *arg, uint32_t len)
{
	struct memif_queue *queue = arg;
	uint8_t *place;

	if (unlikely(!queue->aimed))
		return NULL;
	place = memif_end_place(queue->aimed, len);
	queue->port->place_way = queue->aimed->placing;
	if (unlikely(!place))
		pairs_look(queue);
	return place;
}

static void pairs_placed(void *arg, uint32_t len)
{
	struct memif_queue *queue = arg;

	memif_end_placed(queue->aimed, len);
	queue->unpushed[queue->aimed_at] = true;
}

static void pairs_push(void *arg)
{
	struct memif_queue *queue = arg;

	for (uint32_t i = 0; i < queue->tx_count; i++) {
		if (!queue->unpushed[i])
			continue;
		queue->unpushed[i] = false;
		burst_push(queue, queue->tx[i]);
	}
}

static bool pairs_taken(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken)
{
	const struct memif_queue *queue = arg;

	(void)is_local;
	return queue->tx_count > 0 &&
	       memif_end_tell_taken(queue->tx[engine_of_qpn(qpn, queue->tx_count)], &taken->given,
				    &taken->taken, &taken->dropped);
}

/* Put a packet into the ring to the engine of its queue pair. Return false if it has no room. */
static bool pairs_send_one(struct memif_queue *queue, const struct rte_mbuf *mbuf)
{
	uint32_t to;

	if (unlikely(queue->tx_count == 0))
		return burst_send_one(queue, NULL, mbuf);
	to = engine_of_frame(mbuf, queue->tx_count);
	if (!burst_send_one(queue, queue->tx[to], mbuf))
		return false;
	queue->unpushed[to] = true;
	return true;
}

static uint16_t pairs_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct memif_queue *queue = arg;
	uint16_t sent = 0;

	while (sent < n && pairs_send_one(queue, mbufs[sent]))
		sent++;
	pairs_look(queue);
	if (sent > 0) {
		pairs_push(queue);
		port_free_burst(mbufs, sent);
	}
	return sent;
}

static bool pairs_wait(const struct memif_queue *queue)
{
	for (uint32_t i = 0; i < queue->rx_count; i++) {
		if (memif_end_waits(queue->rx[i]))
			return true;
	}
	return false;
}

static void pairs_listen(const struct memif_queue *queue, bool on)
{
	for (uint32_t i = 0; i < queue->rx_count; i++)
		memif_end_listen(queue->rx[i], on);
	__atomic_store_n(&queue->port->armed, on, __ATOMIC_RELAXED);
}

/* Ask for notifications, as memif_arm does for one pair. */
static void pairs_ask_to_be_woken(const struct memif_queue *queue)
{
	pairs_listen(queue, true);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Discard old notifications. */
static void pairs_clear_doorbells(const struct memif_queue *queue)
{
	struct epoll_event events[MEMIF_PAIRS_MAX];

	if (own_is(queue->epoll_fd))
		epoll_wait(queue->epoll_fd, events, MEMIF_PAIRS_MAX, 0);
}

/* Arm all pairs, and look at them a little longer, for the reason that memif_arm has. */
static bool pairs_arm(void *arg)
{
	const struct memif_queue *queue = arg;

	pairs_clear_doorbells(queue);
	pairs_ask_to_be_woken(queue);
	for (int i = 0; i < SETTLE_PAUSES; i++) {
		if (pairs_wait(queue))
			return true;
		rte_pause();
	}
	return pairs_wait(queue);
}

static void pairs_disarm(void *arg)
{
	pairs_listen(arg, false);
}

void memif_pairs_arm_again(struct memif_port *memif)
{
	for (uint32_t i = 0; i < memif->queue_count; i++) {
		const struct memif_queue *queue = memif->queues[i];

		if (!port_is_armed(queue->port))
			continue;
		pairs_ask_to_be_woken(queue);
		/* A socket has been rung already, when it was made. */
		if (!memif->end->wakes_by_socket && pairs_wait(queue))
			memif_port_ring_doorbell(queue->rx[0]->wake_fd);
	}
}

static bool pairs_connected(void *arg)
{
	const struct memif_queue *queue = arg;

	for (uint32_t i = 0; i < queue->tx_count; i++) {
		if (queue->tx[i]->state != MEMIF_STATE_CONNECTED)
			return false;
	}
	return queue->tx_count > 0;
}

const struct port_ops memif_pairs_ops = {
	.open = memif_port_open,
	.rx_burst = pairs_rx_burst,
	.tx_burst = pairs_tx_burst,
	.expect = pairs_expect,
	.has_room = pairs_has_room,
	.place = pairs_place,
	.steers = true,
	.aim = pairs_aim,
	.placed = pairs_placed,
	.push = pairs_push,
	.taken = pairs_taken,
	.arm = pairs_arm,
	.disarm = pairs_disarm,
	.link_up = memif_port_link_up,
	.connected = pairs_connected,
	.lost = memif_port_lost,
	.lose = memif_port_lose,
	.conn_run = memif_conn_look,
	.conn_fd = memif_port_conn_fd,
	.conn_ms = memif_conn_due_ms,
	.open_queue = memif_port_open_queue,
	.close = memif_port_close,
	.destroy = memif_port_destroy,
};

/* The engine has ended, and uses no ring any more. */
static void queue_close(void *arg)
{
	const struct memif_queue *queue = arg;

	queue->memif->open_queues--;
}

/* Before the port is destroyed, which uses this queue and those behind it no more. */
static void queue_destroy(void *arg)
{
	struct memif_queue *queue = arg;
	struct memif_port *memif = queue->memif;

	memif->queue_count = RTE_MIN(memif->queue_count, queue->number);
	if (queue->spares > 0)
		rte_pktmbuf_free_bulk(queue->spare, queue->spares);
	if (queue->epoll_fd >= 0)
		close(queue->epoll_fd);
	free(queue);
}

const struct port_ops memif_queue_ops = {
	.rx_burst = pairs_rx_burst,
	.tx_burst = pairs_tx_burst,
	.expect = pairs_expect,
	.has_room = pairs_has_room,
	.place = pairs_place,
	.steers = true,
	.aim = pairs_aim,
	.placed = pairs_placed,
	.push = pairs_push,
	.taken = pairs_taken,
	.arm = pairs_arm,
	.disarm = pairs_disarm,
	.connected = pairs_connected,
	.close = queue_close,
	.destroy = queue_destroy,
};

int memif_port_open_queue(void *arg, uint32_t number, uint32_t count, struct port *port)
{
	struct memif_port *memif = arg;
	struct memif_queue *queue;

	if (number >= port_queues(memif->first.port) || memif->queue_count != number)
		return -EOPNOTSUPP;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	*queue = (struct memif_queue){.memif = memif, .port = port, .number = number};
	queue->copy = memif->first.copy;
	queue->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (queue->epoll_fd < 0) {
		const int rc = -errno;

		free(queue);
		return rc;
	}
	own_mark(queue->epoll_fd);
	port->ops = &memif_queue_ops;
	port->ops_arg = queue;
	port->wake_fd = queue->epoll_fd;
	port->interrupts = true;
	memif->engines = count;
	memif->queues[memif->queue_count++] = queue;
	memif->open_queues++;
	memif->server.queues = memif->client.config.queues = (uint8_t)memif->queue_count;
	return 0;
}

/* Return the engine of ours that a pair belongs to. */
static uint32_t pairs_owner(const struct memif_port *memif, uint32_t pair)
{
	return memif->end->side == MEMIF_SERVER
		       ? memif_pairs_server(pair, RTE_MAX(memif->server.queues, 1u))
		       : memif_pairs_client(pair, memif->client.server_queues);
}

/* The trigger of an eventfd is an edge, because nobody reads it. A socket is read (memif_arm). */
static int pairs_watch(const struct memif_queue *queue, const struct memif_end *end)
{
	struct epoll_event event = {.events = EPOLLIN | (end->wakes_by_socket ? 0 : EPOLLET),
				    .data.fd = end->wake_fd};

	return epoll_ctl(queue->epoll_fd, EPOLL_CTL_ADD, end->wake_fd, &event) == 0 ? 0 : -errno;
}

/* Give a pair of rings to its engine. A ring of the pair may be missing. */
static int pairs_give(struct memif_queue *queue, struct memif_end *end)
{
	if (end->tx.memory)
		queue->tx[queue->tx_count++] = end;
	if (!end->rx.memory)
		return 0;
	queue->rx[queue->rx_count++] = end;
	return pairs_watch(queue, end);
}

/* Prepare an engine's queue for the pairs that it has. */
static void pairs_begin(struct memif_queue *queue, bool steers)
{
	queue->rx_next = 0;
	queue->aimed_at = 0;
	queue->aimed = queue->tx_count > 0 ? queue->tx[0] : NULL;
	queue->checks_strays = !steers && queue->number > 0;
}

/* Choose the operations of the first engine's port, unless another kind of port is in front of it.
 */
static void pairs_choose_ops(struct memif_port *memif)
{
	struct port *port = memif->first.port;
	const bool has_one = memif->first.rx_count <= 1 && memif->first.tx_count <= 1;

	if (port->ops == &memif_port_ops || port->ops == &memif_pairs_ops)
		port->ops = has_one ? &memif_port_ops : &memif_pairs_ops;
}

int memif_pairs_attach(struct memif_port *memif)
{
	const bool steers = memif->end->side == MEMIF_SERVER ? memif->server.client_steers
							     : memif->client.server_steers;
	int rc = 0;

	for (uint32_t i = 0; i < memif_port_pairs(memif) && rc == 0; i++)
		rc = pairs_give(memif->queues[pairs_owner(memif, i)], memif_port_pair(memif, i));
	for (uint32_t i = 0; i < memif->queue_count && rc == 0; i++)
		pairs_begin(memif->queues[i], steers);
	pairs_choose_ops(memif);
	return rc;
}

void memif_pairs_detach(struct memif_port *memif)
{
	for (uint32_t i = 0; i < memif->queue_count; i++) {
		struct memif_queue *queue = memif->queues[i];

		for (uint32_t k = 0; k < queue->rx_count; k++)
			epoll_ctl(queue->epoll_fd, EPOLL_CTL_DEL, queue->rx[k]->wake_fd, NULL);
		queue->rx_count = queue->tx_count = 0;
		memset(queue->unpushed, 0, sizeof(queue->unpushed));
		pairs_begin(queue, true);
	}
	pairs_choose_ops(memif);
}
