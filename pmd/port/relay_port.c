/* SPDX-License-Identifier: BSD-3-Clause */
/* A port whose frames another engine of the same device receives and sends. */
#include "port/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_ring_peek.h>

#include "base/log.h"
#include "base/own.h"
#include "port/inbox.h"
#include "port/port.h"

#define OUT_FRAMES 1024 /* a power of two */

struct relay {
	struct relay_carrier carrier;
	struct port *port;
	struct inbox in;      /* frames for the engine; any engine puts them */
	struct rte_ring *out; /* frames that it sends; the carrier takes them */
	/* The pool of the carrier's port belongs to one thread, so frames are copied from one pool
	 * to the other. */
	bool copies;
	bool armed; /* atomic: the next frame makes wake_fd readable */
};

/* Make the ring without EAL, which an attached process does not start. */
static struct rte_ring *relay_ring(void)
{
	const ssize_t bytes = rte_ring_get_memsize(OUT_FRAMES);
	struct rte_ring *ring =
		bytes < 0 ? NULL : aligned_alloc(RTE_CACHE_LINE_SIZE, (size_t)bytes);

	if (!ring || rte_ring_init(ring, "relay", OUT_FRAMES, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0)
		return ring;
	free(ring);
	return NULL;
}

/* Move a frame into a buffer of another pool. The frame is freed. Returns NULL if the pool has no
 * buffer. */
static struct rte_mbuf *relay_move(struct rte_mbuf *mbuf, struct rte_mempool *pool)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(mbuf, pool, 0, UINT32_MAX);

	rte_pktmbuf_free(mbuf);
	return copy;
}

/* Wake the engine's helper if it sleeps. */
static void relay_ring_bell(struct relay *relay)
{
	/* Put the frame in before reading `armed`: relay_arm stores `armed` before it looks for
	 * frames. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(!__atomic_load_n(&relay->armed, __ATOMIC_RELAXED)) ||
	    !__atomic_exchange_n(&relay->armed, false, __ATOMIC_SEQ_CST))
		return;
	/* The write fails only if the descriptor is readable already. */
	if (own_is(relay->port->wake_fd))
		(void)eventfd_write(relay->port->wake_fd, 1);
}

bool relay_give(struct relay *relay, struct rte_mbuf *mbuf, bool received)
{
	/* A received frame may be in a buffer that another process has lent to the carrier. */
	if (relay->copies && (received || mbuf->pool == relay->carrier.port->pool))
		mbuf = relay_move(mbuf, relay->port->pool);
	if (unlikely(!mbuf))
		return false;
	inbox_put(&relay->in, mbuf);
	relay_ring_bell(relay);
	return true;
}

/* Copy packets into buffers of the carrier's port. Those for which it has none stay in the ring. */
static uint16_t relay_fetch_copies(struct relay *relay, struct rte_mbuf **mbufs, uint16_t n)
{
	const unsigned int found =
		rte_ring_dequeue_burst_start(relay->out, (void **)mbufs, n, NULL);
	uint16_t taken = 0;

	for (; taken < found; taken++) {
		struct rte_mbuf *copy =
			rte_pktmbuf_copy(mbufs[taken], relay->carrier.port->pool, 0, UINT32_MAX);

		if (!copy)
			break;
		rte_pktmbuf_free(mbufs[taken]);
		mbufs[taken] = copy;
	}
	if (found > 0)
		rte_ring_dequeue_finish(relay->out, taken);
	return taken;
}

uint16_t relay_fetch(struct relay *relay, struct rte_mbuf **mbufs, uint16_t n)
{
	if (relay->copies)
		return relay_fetch_copies(relay, mbufs, n);
	return (uint16_t)rte_ring_dequeue_burst(relay->out, (void **)mbufs, n, NULL);
}

bool relay_sends(const struct relay *relay)
{
	return !rte_ring_empty(relay->out);
}

static uint16_t relay_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct relay *relay = arg;
	const uint16_t taken = inbox_take(&relay->in, mbufs, n);

	relay->port->rx_cut = inbox_has_more(&relay->in);
	return taken;
}

static uint16_t relay_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct relay *relay = arg;
	const unsigned int sent = rte_ring_enqueue_burst(relay->out, (void **)mbufs, n, NULL);

	/* Also if there was no room: the carrier makes some. */
	relay->carrier.sent(relay->carrier.sent_arg);
	return (uint16_t)sent;
}

static bool relay_arm(void *arg)
{
	struct relay *relay = arg;
	eventfd_t before;

	if (own_is(relay->port->wake_fd))
		(void)eventfd_read(relay->port->wake_fd, &before);
	__atomic_store_n(&relay->armed, true, __ATOMIC_SEQ_CST);
	return inbox_has_new(&relay->in);
}

/* The carrier drops packets that reach nobody: only it knows that at any time. */
static bool relay_connected(void *arg)
{
	(void)arg;
	return true;
}

static bool relay_link_up(void *arg, bool connected)
{
	(void)arg;
	return connected;
}

static bool relay_lost(void *arg)
{
	const struct relay *relay = arg;

	return __atomic_load_n(relay->carrier.lost, __ATOMIC_RELAXED);
}

/* The process ends; other engines may still give frames. */
static void relay_close(void *arg)
{
	(void)arg;
}

static void relay_destroy(void *arg)
{
	struct relay *relay = arg;

	if (relay->port->wake_fd >= 0)
		close(relay->port->wake_fd);
	free(relay->out);
	free(relay);
}

static const struct port_ops relay_ops = {
	.rx_burst = relay_rx_burst,
	.tx_burst = relay_tx_burst,
	.arm = relay_arm,
	.link_up = relay_link_up,
	.connected = relay_connected,
	.lost = relay_lost,
	.close = relay_close,
	.destroy = relay_destroy,
};

/* Give the engine's port what packets depend on, and nothing that the carrier does alone. */
static void relay_fill(const struct port *main, struct port *port)
{
	port_init(port, main->mtu_bytes);
	port->mbuf_bytes = main->mbuf_bytes;
	port->mbufs = PORT_MBUFS_SOFTWARE;
	port->make_pool = main->make_pool;
	port->make_pool_arg = main->make_pool_arg;
	port->through_kernel = main->through_kernel;
	port->kernel_beyond = main->kernel_beyond;
	port->lcores_are_others = main->lcores_are_others;
	port->tsc_hz = main->tsc_hz;
	port->spares_icrc = main->spares_icrc;
	port->own_qpn_first = main->own_qpn_first;
	port->own_qpn_count = main->own_qpn_count;
	port->dma = PORT_COPIES;
	port->numa_node = main->numa_node;
	port->pool = main->pool;
	port->mac_is_random = main->mac_is_random;
	port->link_mbps = main->link_mbps;
	port->sums_udp = main->sums_udp;
	memcpy(port->mac, main->mac, sizeof(port->mac));
	port->started = true;
}

int relay_open(const struct relay_carrier *carrier, struct port *port, struct relay **out)
{
	struct relay *relay = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*relay));
	int rc = -ENOMEM;

	if (!relay)
		return -ENOMEM;
	memset(relay, 0, sizeof(*relay));
	relay->carrier = *carrier;
	relay->port = port;
	relay->copies = carrier->port->make_pool != NULL;
	relay_fill(carrier->port, port);
	port->ops = &relay_ops;
	port->ops_arg = relay;
	port->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (port->wake_fd < 0)
		rc = -errno;
	relay->out = relay_ring();
	if (port->wake_fd >= 0 && relay->out)
		rc = relay->copies ? port_make_pool(port, "uroce_relay") : 0;
	if (rc != 0) {
		log_error("cannot make the queues of a further engine: %s", strerror(-rc));
		port_destroy(port);
		return rc;
	}
	own_mark(port->wake_fd);
	*out = relay;
	return 0;
}
