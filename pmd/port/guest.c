/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives through queues of a port that the application has set up, or through rings
 * that the application fills and empties. */
#include "port/guest.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_ring.h>

#include "base/log.h"
#include "base/own.h"
#include "port/drivers.h"
#include "port/port.h"
#include "wire/build.h"

#define RING_FRAMES    1024
#define POOL_FRAMES    8191
#define POOL_CACHE     256
#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN)
#define REPLY_MAX      2048 /* net/link.h: frames that are not RoCE */

static uint16_t guest_take_given(struct guest *guest, struct rte_mbuf **mbufs, uint16_t n)
{
	if (!guest->in || n == 0)
		return 0;
	return (uint16_t)rte_ring_sc_dequeue_burst(guest->in, (void **)mbufs, n, NULL);
}

static uint16_t guest_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct guest *guest = arg;
	uint16_t received = 0;

	/* `in` has the frames that no flow rule directs to the queue. `in` and the queue take turns
	 * at being first, so that neither starves. */
	if (guest->in_first)
		received = guest_take_given(guest, mbufs, n);
	if (guest->rx_queue != GUEST_NO_QUEUE && received < n)
		received += rte_eth_rx_burst(guest->port_id, guest->rx_queue, mbufs + received,
					     (uint16_t)(n - received));
	if (!guest->in_first)
		received += guest_take_given(guest, mbufs + received, (uint16_t)(n - received));
	guest->in_first = !guest->in_first;
	return received;
}

static uint16_t guest_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct guest *guest = arg;

	if (guest->tx_queue != GUEST_NO_QUEUE)
		return rte_eth_tx_burst(guest->port_id, guest->tx_queue, mbufs, n);
	return (uint16_t)rte_ring_sp_enqueue_burst(guest->out, (void *const *)mbufs, n, NULL);
}

static bool guest_arm(void *arg)
{
	struct guest *guest = arg;
	uint64_t count;

	if (guest->wake_fd < 0)
		return false;
	/* Discard old notifications. */
	if (own_is(guest->wake_fd) && read(guest->wake_fd, &count, sizeof(count)) < 0 &&
	    errno != EAGAIN)
		return true;
	__atomic_store_n(&guest->sleeps, 1, __ATOMIC_RELAXED);
	/* Order the store before the load: either we see the given frames, or guest_give sees that
	 * we sleep. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !rte_ring_empty(guest->in);
}

/* Without a queue of its own, the application must take the frames. */
static bool guest_taken(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken)
{
	const struct guest *guest = arg;

	(void)qpn, (void)is_local;
	if (!guest->out)
		return false;
	taken->taken = __atomic_load_n(&guest->out->cons.tail, __ATOMIC_RELAXED);
	taken->given = guest->out->prod.tail;
	return true;
}

static bool guest_connected(void *arg)
{
	const struct guest *guest = arg;
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(guest->port_id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

/*
 * Remove the rules only from a primary's port. That port continues, and must not direct more frames
 * to a queue that nobody polls. An application's own port stays open; the application may have
 * stopped it, which removed the rules.
 */
static void guest_close(void *arg)
{
	struct guest *guest = arg;

	if (guest->alone)
		flow_end(&guest->flow);
}

/* No packet of the port is in flight: it was never used, or its owner ends it. A pool of the caller
 * stays. */
static void guest_destroy(void *arg)
{
	struct guest *guest = arg;

	flow_end(&guest->flow);
	rte_ring_free(guest->in);
	rte_ring_free(guest->out);
	rte_mempool_free(guest->own_pool);
	guest->in = guest->out = NULL;
	guest->own_pool = NULL;
	if (guest->wake_fd >= 0)
		close(guest->wake_fd);
	guest->wake_fd = -1;
}

static const struct port_ops guest_ops = {
	.rx_burst = guest_rx_burst,
	.tx_burst = guest_tx_burst,
	.taken = guest_taken,
	.arm = guest_arm,
	.connected = guest_connected,
	.close = guest_close,
	.destroy = guest_destroy,
};

static struct rte_ring *guest_make_ring(const struct guest *guest, const char *way,
					unsigned int flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "uroce_%s_%u", way, guest->port_id);
	return rte_ring_create(name, RING_FRAMES, SOCKET_ID_ANY, flags);
}

static int guest_make_rings(struct guest *guest)
{
	if (!guest->takes_nothing && !guest->alone) {
		guest->in = guest_make_ring(guest, "in", RING_F_SC_DEQ);
		if (!guest->in)
			return -ENOMEM;
	}
	/* Frames in a queue cause no notification, so wake_fd is of use only without a queue. */
	if (guest->in && guest->rx_queue == GUEST_NO_QUEUE) {
		guest->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (guest->wake_fd < 0)
			return -ENOMEM;
		own_mark(guest->wake_fd);
	}
	if (guest->tx_queue != GUEST_NO_QUEUE)
		return 0;
	guest->out = guest_make_ring(guest, "out", RING_F_SP_ENQ | RING_F_SC_DEQ);
	return guest->out ? 0 : -ENOMEM;
}

static int guest_make_pool(struct guest *guest, struct port *port)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t need;

	if (guest->pool) {
		port->pool = guest->pool;
		port->mbuf_bytes =
			(uint32_t)(rte_pktmbuf_data_room_size(guest->pool) - RTE_PKTMBUF_HEADROOM);
		need = RTE_MAX(
			RTE_MIN(port->mtu_bytes + FRAME_OVERHEAD, (uint32_t)PACKET_FRAME_MAX),
			(uint32_t)REPLY_MAX);
		if (port->mbuf_bytes >= need)
			return 0;
		log_error("buffers of pool '%s' have room for %u bytes, but %u are needed",
			  guest->pool->name, port->mbuf_bytes, need);
		return -EINVAL;
	}
	port->mbuf_bytes = GUEST_MBUF_BYTES;
	if (port->make_pool)
		return port->make_pool(port);
	snprintf(name, sizeof(name), "uroce_guest_%u", guest->port_id);
	port->pool = rte_pktmbuf_pool_create(name, POOL_FRAMES + port->mbufs, POOL_CACHE, 0,
					     (uint16_t)(port->mbuf_bytes + RTE_PKTMBUF_HEADROOM),
					     rte_eth_dev_socket_id(guest->port_id));
	guest->own_pool = port->pool;
	if (port->pool)
		return 0;
	log_error("no memory for packet buffers: %s", rte_strerror(rte_errno));
	return -ENOMEM;
}

/*
 * Return false if the port is not started. ethdev has no call that tells. It gives a port that is
 * not started the same function as a number that is no port: one that receives nothing. In a
 * secondary process all ports count as started.
 */
static bool guest_is_started(const struct guest *guest)
{
	for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; id++)
		if (!rte_eth_dev_is_valid_port(id))
			return rte_eth_fp_ops[guest->port_id].rx_pkt_burst !=
			       rte_eth_fp_ops[id].rx_pkt_burst;
	return true;
}

/* Return true if the port has this queue. `queues` are those that the application has set up; NULL:
 * it may still do so. */
static bool guest_has_queue(uint16_t queue, uint16_t count, void *const *queues)
{
	return queue == GUEST_NO_QUEUE || (queue < count && (!queues || queues[queue]));
}

/* Check the port and its queues, which ethdev's bursts do not check. */
static int guest_check(const struct guest *guest)
{
	const struct rte_eth_fp_ops *ops;
	struct rte_eth_dev_info info;

	if (!rte_eth_dev_is_valid_port(guest->port_id) ||
	    rte_eth_dev_info_get(guest->port_id, &info) != 0) {
		log_error("there is no port %u", guest->port_id);
		return -EINVAL;
	}
	ops = &rte_eth_fp_ops[guest->port_id];
	if (!guest->starts_later && !guest_is_started(guest)) {
		log_error("port %u is not started", guest->port_id);
		return -EINVAL;
	}
	if (!guest_has_queue(guest->rx_queue, info.nb_rx_queues,
			     guest->starts_later ? NULL : ops->rxq.data)) {
		log_error("port %u has no receive queue %u: it has %u", guest->port_id,
			  guest->rx_queue, info.nb_rx_queues);
		return -EINVAL;
	}
	if (!guest_has_queue(guest->tx_queue, info.nb_tx_queues,
			     guest->starts_later ? NULL : ops->txq.data)) {
		log_error("port %u has no transmit queue %u: it has %u", guest->port_id,
			  guest->tx_queue, info.nb_tx_queues);
		return -EINVAL;
	}
	return 0;
}

/* Read the port's properties. */
static int guest_learn(const struct guest *guest, struct port *port)
{
	struct rte_ether_addr mac;
	struct rte_eth_link link;
	uint16_t mtu;
	int rc;

	rc = rte_eth_macaddr_get(guest->port_id, &mac);
	if (rc == 0 && port->mtu_bytes == 0) {
		rc = rte_eth_dev_get_mtu(guest->port_id, &mtu);
		port->mtu_bytes = mtu;
	}
	if (rc != 0) {
		log_error("there is no port %u: %s", guest->port_id, rte_strerror(-rc));
		return -EINVAL;
	}
	memcpy(port->mac, &mac, sizeof(port->mac));
	if (rte_eth_link_get_nowait(guest->port_id, &link) == 0 &&
	    link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		port->link_mbps = link.link_speed;
	return 0;
}

int guest_open(struct guest *guest, struct port *port)
{
	int rc;

	port_init(port, port->mtu_bytes);
	port->lcores_are_others = true;
	port->devargs.bus = DEVARGS_OTHER;
	snprintf(port->devargs.name, sizeof(port->devargs.name), "port %u", guest->port_id);
	port->ops = &guest_ops;
	port->ops_arg = guest;
	guest->wake_fd = -1;
	rc = guest_check(guest);
	if (rc == 0)
		rc = guest_learn(guest, port);
	if (rc == 0)
		rc = guest_make_pool(guest, port);
	if (rc == 0)
		rc = guest_make_rings(guest);
	port->wake_fd = guest->wake_fd;
	port->started = rc == 0;
	return rc;
}

/* Return true if rules cannot be used from this process: net_tap's rules contain pointers and
 * descriptors of its own process, which are invalid in another one. */
static bool guest_rules_are_anothers(const struct guest *guest, const struct rte_eth_dev_info *info)
{
	return guest->alone && info->driver_name && strcmp(info->driver_name, TAP_DRIVER) == 0;
}

void guest_steer(struct guest *guest, const struct addresses *own)
{
	struct rte_eth_dev_info info;
	size_t steered;

	if (guest->rx_queue == GUEST_NO_QUEUE || rte_eth_dev_info_get(guest->port_id, &info) != 0 ||
	    info.nb_rx_queues < 2 || guest_rules_are_anothers(guest, &info))
		return;
	guest->flow = (struct flow){.port_id = guest->port_id, .queue = guest->rx_queue};
	steered = flow_steer(&guest->flow, own);
	if (steered > 0 && guest->alone && !flow_steer_neighbours(&guest->flow))
		log_info("port %u has no flow rules for ARP and neighbour discovery",
			 guest->port_id);
	log_info("port %u directs RoCE for %zu of %zu addresses to queue %u by flow rules",
		 guest->port_id, steered, own->count, guest->rx_queue);
}

uint16_t guest_give(struct guest *guest, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t given =
		(uint16_t)rte_ring_mp_enqueue_burst(guest->in, (void *const *)mbufs, n, NULL);

	/* Order the stores of the given frames before the load. Pairs with guest_arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&guest->sleeps, __ATOMIC_RELAXED) != 0 &&
	    __atomic_exchange_n(&guest->sleeps, 0, __ATOMIC_RELAXED) != 0)
		own_ring(guest->wake_fd);
	return given;
}

uint16_t guest_fetch(struct guest *guest, struct rte_mbuf **mbufs, uint16_t n)
{
	return (uint16_t)rte_ring_sc_dequeue_burst(guest->out, (void **)mbufs, n, NULL);
}
