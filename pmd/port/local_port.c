/* SPDX-License-Identifier: BSD-3-Clause */
/* A port without a network. An owner that has it passes packets between the processes that attach;
 * it needs no interface, socket, driver or privilege. Frames to others go nowhere. */
#include "local_port.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_ether.h>

#include "base/host.h"
#include "port/port.h"
#include "port/port_eal.h"

#define LOCAL_MBPS 100000 /* packets stay in memory, so any value is as good */
#define LOCAL_MTU  9000	  /* largest IP packet unless the user sets another one */

struct local_port {
	struct port *port;
	int fd;		   /* never readable: no frame arrives */
	uint16_t stand_in; /* if port.watched is set: the ethdev that captures see (stand_in.h) */
};

static uint16_t local_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg, (void)mbufs, (void)n;
	return 0;
}

static uint16_t local_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct local_port *local = arg;

	if (unlikely(local->port->watched))
		local->port->eal->stand_in_sends(local->stand_in, mbufs, n);
	for (uint16_t i = 0; i < n; i++) {
		local->port->tx_unconnected.packets++;
		local->port->tx_unconnected.bytes += rte_pktmbuf_pkt_len(mbufs[i]);
	}
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

/* Return false: no frame ever waits. */
static bool local_arm(void *arg)
{
	(void)arg;
	return false;
}

static bool local_connected(void *arg)
{
	(void)arg;
	return true;
}

static void local_close(void *arg)
{
	struct local_port *local = arg;

	__atomic_store_n(&local->port->wake_fd, -1, __ATOMIC_RELAXED);
	close(local->fd);
	local->fd = -1;
}

/* The port may be open: a later step of its user has failed. */
static void local_destroy(void *arg)
{
	const struct local_port *local = arg;

	if (local->fd >= 0)
		close(local->fd);
	free(arg);
}

static int local_open(void *arg)
{
	struct local_port *local = arg;
	struct port *port = local->port;
	char text[sizeof(port->devargs.name) + PATH_MAX];
	uint64_t hash;
	int rc;

	local->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (local->fd < 0)
		return -errno;
	rc = port_make_pool(port, "uroce_local");
	if (rc == 0 && port->watched)
		rc = port->eal->stand_in_make(port->devargs.name, port->pool, &local->stand_in);
	if (rc != 0)
		return rc;
	snprintf(text, sizeof(text), "%s %s", port->devargs.name, port->unique ? port->unique : "");
	hash = hash_unique(text);
	memcpy(port->mac, &hash, sizeof(port->mac));
	port->mac[0] =
		(uint8_t)((port->mac[0] & ~RTE_ETHER_GROUP_ADDR) | RTE_ETHER_LOCAL_ADMIN_ADDR);
	port->link_mbps = LOCAL_MBPS;
	port->dma = PORT_COPIES;
	port->no_cancel_points = !port->watched;
	port->wake_fd = local->fd;
	port->started = true;
	return 0;
}

static const struct port_ops local_ops = {
	.open = local_open,
	.rx_burst = local_rx_burst,
	.tx_burst = local_tx_burst,
	.arm = local_arm,
	.connected = local_connected,
	.close = local_close,
	.destroy = local_destroy,
};

int local_port_prepare(struct port *port)
{
	struct local_port *local = calloc(1, sizeof(*local));

	if (!local)
		return -ENOMEM;
	local->port = port;
	local->fd = -1;
	port->ops = &local_ops;
	port->ops_arg = local;
	if (port->mtu_bytes == 0)
		port->mtu_bytes = LOCAL_MTU;
	port_size_buffers(port, port->mtu_bytes + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN,
			  PORT_MBUFS_SOFTWARE);
	return 0;
}
