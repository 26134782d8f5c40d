/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues that a DPDK port has for a further engine of its device. */
#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_ethdev.h>

#include "engine_of.h"
#include "ethdev.h"
#include "pci.h"

static uint16_t queue_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct ethdev_queue *queue = arg;
	uint16_t received;

	if (unlikely(queue->dev->given_up))
		return 0;
	received = rte_eth_rx_burst(queue->dev->id, queue->number, mbufs, n);
	for (uint16_t i = 0; i < received; i++) {
		if (engine_of_frame(mbufs[i], queue->dev->queues) != queue->number)
			mbufs[i]->port = PORT_STRAY;
	}
	return received;
}

/* Drop packets that reach nobody. */
static uint16_t queue_drop(const struct ethdev_queue *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	struct port_drops *drops = &queue->port->tx_unconnected;

	drops->packets += n;
	for (uint16_t i = 0; i < n; i++)
		drops->bytes += mbufs[i]->pkt_len;
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

static uint16_t queue_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct ethdev_queue *queue = arg;

	if (unlikely(!__atomic_load_n(&queue->dev->connected, __ATOMIC_RELAXED)))
		return queue_drop(queue, mbufs, n);
	return rte_eth_tx_burst(queue->dev->id, queue->number, mbufs, n);
}

static bool queue_arm(void *arg)
{
	const struct ethdev_queue *queue = arg;

	return !queue->dev->given_up && pci_arm(queue);
}

static void queue_disarm(void *arg)
{
	const struct ethdev_queue *queue = arg;

	if (!queue->dev->given_up)
		pci_disarm(queue);
}

/* Return what the driver has told the first engine: one thread at a time may ask the driver. */
static bool queue_connected(void *arg)
{
	const struct ethdev_queue *queue = arg;

	return __atomic_load_n(&queue->dev->connected, __ATOMIC_RELAXED);
}

static void queue_close(void *arg)
{
	const struct ethdev_queue *queue = arg;

	queue->dev->further--;
}

static const struct port_ops queue_ops = {
	.rx_burst = queue_rx_burst,
	.tx_burst = queue_tx_burst,
	.arm = queue_arm,
	.disarm = queue_disarm,
	.connected = queue_connected,
	.close = queue_close,
	.destroy = free,
};

void ethdev_queue_listen(const struct ethdev_queue *queue)
{
	struct port *port = queue->port;

	port->wake_fd = queue->dev->wake_fds[queue->number];
	port->interrupts = port->arms_once = queue->dev->arms && port->wake_fd >= 0;
}

int ethdev_queue_open(void *arg, uint32_t number, uint32_t count, struct port *queue_port)
{
	struct ethdev *dev = arg;
	struct ethdev_queue *queue;

	if (number >= dev->queues || count != dev->queues)
		return -EOPNOTSUPP;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->dev = dev;
	queue->port = queue_port;
	queue->number = (uint16_t)number;
	ethdev_queue_listen(queue);
	queue_port->ops = &queue_ops;
	queue_port->ops_arg = queue;
	dev->further++;
	return 0;
}
