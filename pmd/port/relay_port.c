/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a further engine of a device: a queue of its own, if there is one, and frames that
 * another engine receives and sends for it. */
#include "port/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
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
#define ERRORS_MAX 100	/* looks in a row that find the queue's descriptor in error */

struct relay {
	struct relay_carrier carrier;
	struct port *port;
	struct inbox in;      /* frames for the engine; any engine puts them */
	struct rte_ring *out; /* frames that it sends; the carrier takes them */
	/* The pool of the carrier's port belongs to one thread, so frames are copied from one pool
	 * to the other. */
	bool copies;
	/* The buffers of frames that engines give each other: each engine may take and free them. A
	 * queue may have a pool of its own, which belongs to the thread of its engine. */
	struct rte_mempool *pool;
	bool armed;	 /* atomic: the next frame of another engine makes doorbell_fd readable */
	int doorbell_fd; /* an eventfd */
	int set_fd; /* with a queue: an epoll set of doorbell_fd and the queue's descriptor; or -1
		     */
	unsigned int errors; /* looks in a row that found the queue's descriptor in error */
	const struct port_ops *queue; /* operations of the engine's own queue; NULL: it has none */
	void *queue_arg;
	bool receives;	     /* the queue does */
	struct port_ops ops; /* of the engine's port */
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
static void relay_ring_doorbell(struct relay *relay)
{
	/* Put the frame in before reading `armed`: relay_arm stores `armed` before it looks for
	 * frames. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(!__atomic_load_n(&relay->armed, __ATOMIC_RELAXED)) ||
	    !__atomic_exchange_n(&relay->armed, false, __ATOMIC_SEQ_CST))
		return;
	/* The write fails only if the descriptor is readable already. */
	own_ring(relay->doorbell_fd);
}

/* Return true if the engine has a queue of its own that can send now. */
static bool relay_has_queue(const struct relay *relay)
{
	return relay->queue && !port_is_relayed(relay->port);
}

bool relay_receives(const struct relay *relay)
{
	return relay->receives && !port_is_relayed(relay->port);
}

const struct port_ops **relay_queue(const struct port *port, void **arg)
{
	struct relay *relay = port->ops_arg;

	*arg = relay->queue_arg;
	return relay->receives ? &relay->queue : NULL;
}

bool relay_give(struct relay *relay, struct rte_mbuf *mbuf, bool received)
{
	/* A received frame may be in a buffer that another process has lent to the carrier. */
	if (relay->copies && (received || mbuf->pool == relay->carrier.port->pool))
		mbuf = relay_move(mbuf, relay->pool);
	if (unlikely(!mbuf))
		return false;
	inbox_put(&relay->in, mbuf);
	relay_ring_doorbell(relay);
	return true;
}

struct rte_mbuf *relay_hand_out(struct relay *relay, struct rte_mbuf *mbuf)
{
	if (likely(relay->port->pool == relay->pool) || mbuf->pool == relay->pool)
		return mbuf;
	return relay_move(mbuf, relay->pool);
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
	/* Neither side can keep the other one waiting. */
	const uint16_t most = relay->receives ? (uint16_t)((n + 1) / 2) : n;
	uint16_t taken = inbox_take(&relay->in, mbufs, most);

	relay->port->rx_cut = false;
	/* The queue may set rx_cut. */
	if (relay->receives)
		taken = (uint16_t)(taken + relay->queue->rx_burst(relay->queue_arg, mbufs + taken,
								  (uint16_t)(n - taken)));
	if (inbox_has_more(&relay->in))
		relay->port->rx_cut = true;
	return taken;
}

static uint16_t relay_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct relay *relay = arg;
	unsigned int sent;

	if (relay_has_queue(relay)) {
		sent = relay->queue->tx_burst(relay->queue_arg, mbufs, n);
		if (likely(sent > 0 || !relay->port->tx_stuck))
			return (uint16_t)sent;
	}
	sent = rte_ring_enqueue_burst(relay->out, (void **)mbufs, n, NULL);
	/* Also if there was no room: the carrier makes some. */
	relay->carrier.sent(relay->carrier.sent_arg);
	return (uint16_t)sent;
}

/* Tell what the engine's queue knows, or what the carrier has taken from the ring. */
static bool relay_taken(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken)
{
	const struct relay *relay = arg;

	if (relay_has_queue(relay) && !relay->port->tx_stuck)
		return relay->queue->taken &&
		       relay->queue->taken(relay->queue_arg, qpn, is_local, taken);
	taken->taken = __atomic_load_n(&relay->out->cons.tail, __ATOMIC_RELAXED);
	taken->given = relay->out->prod.tail;
	return true;
}

/*
 * The descriptor of an interface that was deleted reports an error for ever, and would end every
 * sleep at once. Do not sleep on it any more. Other errors are cleared when the queue is polled or
 * armed.
 */
static void relay_look_for_errors(struct relay *relay)
{
	struct epoll_event events[2];
	const int n = own_is(relay->set_fd) ? epoll_wait(relay->set_fd, events, 2, 0) : 0;
	int broken_fd = -1;

	for (int i = 0; i < n; i++)
		if (events[i].events & (EPOLLERR | EPOLLHUP))
			broken_fd = events[i].data.fd;
	relay->errors = broken_fd >= 0 ? relay->errors + 1 : 0;
	if (relay->errors >= ERRORS_MAX)
		epoll_ctl(relay->set_fd, EPOLL_CTL_DEL, broken_fd, NULL);
}

static bool relay_arm(void *arg)
{
	struct relay *relay = arg;
	bool waits = false;
	eventfd_t before;

	if (own_is(relay->doorbell_fd))
		(void)eventfd_read(relay->doorbell_fd, &before);
	__atomic_store_n(&relay->armed, true, __ATOMIC_SEQ_CST);
	if (relay->queue)
		waits = relay->queue->arm(relay->queue_arg);
	relay_look_for_errors(relay);
	return inbox_has_new(&relay->in) || waits;
}

/* Called if the queue has interrupts. */
static void relay_disarm(void *arg)
{
	const struct relay *relay = arg;

	relay->queue->disarm(relay->queue_arg);
}

/* Without a queue, the carrier drops packets that reach nobody: only it knows that at any time. */
static bool relay_connected(void *arg)
{
	const struct relay *relay = arg;

	return !relay_has_queue(relay) || relay->queue->connected(relay->queue_arg);
}

static bool relay_link_up(void *arg, bool connected)
{
	(void)arg;
	return connected;
}

static bool relay_lost(void *arg)
{
	const struct relay *relay = arg;
	/* The queue may use the call to look after itself. */
	const bool lost =
		relay->queue && relay->queue->lost && relay->queue->lost(relay->queue_arg);

	return __atomic_load_n(relay->carrier.lost, __ATOMIC_RELAXED) || lost;
}

static void relay_lose(void *arg)
{
	const struct relay *relay = arg;

	if (relay->queue && relay->queue->lose)
		relay->queue->lose(relay->queue_arg);
}

/* Operations that the engine's port has if its queue has them. */

static void relay_expect(void *arg, uint32_t ahead, uint32_t len)
{
	const struct relay *relay = arg;

	relay->queue->expect(relay->queue_arg, ahead, len);
}

static uint8_t *relay_place(void *arg, uint32_t len)
{
	const struct relay *relay = arg;

	return relay->queue->place(relay->queue_arg, len);
}

/* Without a place in the queue, packets are built in mbufs, which the carrier takes. */
static bool relay_aim(void *arg, uint32_t qpn)
{
	const struct relay *relay = arg;

	return relay_has_queue(relay) && relay->queue->aim(relay->queue_arg, qpn);
}

static bool relay_has_room(void *arg)
{
	const struct relay *relay = arg;

	return !relay_has_queue(relay) || relay->queue->has_room(relay->queue_arg);
}

static uint8_t *relay_offer(void *arg)
{
	const struct relay *relay = arg;

	return relay->queue->offer(relay->queue_arg);
}

static bool relay_suits(void *arg, uint32_t qpn)
{
	const struct relay *relay = arg;

	return relay->queue->suits(relay->queue_arg, qpn);
}

static void relay_placed(void *arg, uint32_t len)
{
	const struct relay *relay = arg;

	relay->queue->placed(relay->queue_arg, len);
}

static void relay_push(void *arg)
{
	const struct relay *relay = arg;

	relay->queue->push(relay->queue_arg);
}

/* The process ends; other engines may still give frames. */
static void relay_close(void *arg)
{
	const struct relay *relay = arg;

	if (relay->queue)
		relay->queue->close(relay->queue_arg);
}

static void relay_destroy(void *arg)
{
	struct relay *relay = arg;

	if (relay->queue && relay->queue->destroy)
		relay->queue->destroy(relay->queue_arg);
	if (relay->set_fd >= 0)
		close(relay->set_fd);
	if (relay->doorbell_fd >= 0)
		close(relay->doorbell_fd);
	free(relay->out);
	free(relay);
}

static const struct port_ops relay_ops = {
	.rx_burst = relay_rx_burst,
	.tx_burst = relay_tx_burst,
	.taken = relay_taken,
	.arm = relay_arm,
	.link_up = relay_link_up,
	.connected = relay_connected,
	.lost = relay_lost,
	.lose = relay_lose,
	.close = relay_close,
	.destroy = relay_destroy,
};

static void relay_set_ops(struct relay *relay)
{
	const struct port_ops *queue = relay->queue;

	relay->ops = relay_ops;
	relay->port->ops = &relay->ops;
	relay->port->ops_arg = relay;
	if (!queue)
		return;
	relay->ops.expect = queue->expect ? relay_expect : NULL;
	relay->ops.has_room = queue->has_room ? relay_has_room : NULL;
	relay->ops.place = queue->place ? relay_place : NULL;
	relay->ops.aim = queue->aim ? relay_aim : NULL;
	relay->ops.steers = queue->steers;
	relay->ops.offer = queue->offer ? relay_offer : NULL;
	relay->ops.suits = queue->suits ? relay_suits : NULL;
	relay->ops.placed = queue->placed ? relay_placed : NULL;
	relay->ops.push = queue->push ? relay_push : NULL;
	relay->ops.disarm = queue->disarm ? relay_disarm : NULL;
}

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
	port->no_cancel_points = main->no_cancel_points;
	port->lcores_are_others = main->lcores_are_others;
	port->passed_on = main->passed_on;
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

static int relay_watch(const struct relay *relay, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(relay->set_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* Make a descriptor that is readable when another engine has rung, and when the queue has frames.
 */
static int relay_make_set(struct relay *relay, int queue_fd)
{
	int rc;

	relay->set_fd = epoll_create1(EPOLL_CLOEXEC);
	if (relay->set_fd < 0)
		return -errno;
	own_mark(relay->set_fd);
	rc = relay_watch(relay, relay->doorbell_fd);
	return rc == 0 ? relay_watch(relay, queue_fd) : rc;
}

/* Open the engine's own queue of the carrier's port. 0, also if the engine has none; or -errno. */
static int relay_open_queue(struct relay *relay, uint32_t number)
{
	const struct port *main = relay->carrier.port;
	struct port *port = relay->port;
	int rc;

	if (!main->ops || !main->ops->open_queue)
		return 0;
	rc = main->ops->open_queue(main->ops_arg, number, relay->carrier.engines, port);
	if (rc != 0) {
		/* An attached process has given up its packet sockets (client_open_queue). */
		port->kernel_beyond = main->kernel_beyond;
		log_info("engine %u has no queue of '%s', and its packets pass through the first "
			 "engine: %s",
			 number, main->devargs.name, strerror(-rc));
		return 0;
	}
	relay->queue = port->ops;
	relay->queue_arg = port->ops_arg;
	relay->receives = port->ops->rx_burst != NULL;
	return relay->receives && port->wake_fd >= 0 ? relay_make_set(relay, port->wake_fd) : 0;
}

/* Return the descriptor to sleep on. -1: the queue has none, so the helper polls. */
static int relay_wake_fd(const struct relay *relay)
{
	if (relay->set_fd >= 0)
		return relay->set_fd;
	return relay->receives ? -1 : relay->doorbell_fd;
}

static int relay_make(struct relay *relay, uint32_t number)
{
	struct port *port = relay->port;
	int rc;

	relay->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (relay->doorbell_fd < 0)
		return -errno;
	own_mark(relay->doorbell_fd);
	relay->out = relay_ring();
	if (!relay->out)
		return -ENOMEM;
	rc = relay->copies ? port_make_pool(port, "uroce_relay") : 0;
	relay->pool = port->pool;
	if (rc == 0)
		rc = relay_open_queue(relay, number);
	port->wake_fd = relay_wake_fd(relay);
	return rc;
}

int relay_open(const struct relay_carrier *carrier, uint32_t number, struct port *port,
	       struct relay **out)
{
	struct relay *relay = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*relay));
	int rc;

	if (!relay)
		return -ENOMEM;
	memset(relay, 0, sizeof(*relay));
	relay->carrier = *carrier;
	relay->port = port;
	relay->copies = carrier->port->make_pool != NULL;
	relay->doorbell_fd = -1;
	relay->set_fd = -1;
	relay_fill(carrier->port, port);
	rc = relay_make(relay, number);
	relay_set_ops(relay);
	if (rc != 0) {
		log_error("cannot make the queues of a further engine: %s", strerror(-rc));
		port_destroy(port);
		return rc;
	}
	*out = relay;
	return 0;
}
