/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel interface as a port: a packet socket of our own in the place of a DPDK driver. */
#include "interface.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "link/mute.h"
#include "link/netdev.h"
#include "link/port.h"
#include "psock/psock.h"
#include "stand_in.h"

static_assert(PSOCK_VERIFIED == PORT_VERIFIED, "what a packet socket says, engines understand");

static uint16_t interface_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct port *port = arg;
	const uint16_t received = psock_rx_burst(port->psock, mbufs, n);

	port->rx_missed = psock_missed(port->psock);
	return unlikely(port->watched) ? stand_in_received(port->id, mbufs, received, n) : received;
}

static uint16_t interface_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct port *port = arg;
	uint16_t sent;

	if (unlikely(port->watched))
		n = stand_in_sends(port->id, mbufs, n);
	sent = psock_tx_burst(port->psock, mbufs, n);
	psock_refused(port->psock, &port->tx_refused.packets, &port->tx_refused.bytes);
	return sent;
}

/* The descriptor tells of everything else. An interface that goes down leaves an error there, which
 * would end every sleep at once until it is read. */
static bool interface_arm(void *arg)
{
	const struct port *port = arg;
	int error;
	socklen_t len = sizeof(error);

	(void)getsockopt(psock_fd(port->psock), SOL_SOCKET, SO_ERROR, &error, &len);
	return psock_holds(port->psock);
}

static bool interface_connected(void *arg)
{
	struct port *port = arg;

	port->was_running = netdev_running(port->ifname);
	return port->was_running;
}

static bool interface_link_up(void *arg)
{
	const struct port *port = arg;

	return port->was_running;
}

/* One that is taken away is down from then on. */
static bool interface_lost(void *arg)
{
	(void)arg;
	return false;
}

static void interface_close(void *arg)
{
	struct port *port = arg;

	psock_close(port->psock);
	port->psock = NULL;
	port->wake_fd = -1;
}

static const struct port_ops interface_ops = {
	.rx_burst = interface_rx_burst,
	.tx_burst = interface_tx_burst,
	.arm = interface_arm,
	.link_up = interface_link_up,
	.connected = interface_connected,
	.lost = interface_lost,
	.close = interface_close,
};

static int interface_start(const struct port *port, const struct netdev *netdev)
{
	int rc = mute_packet_socket(psock_fd(port->psock));

	if (rc == 0)
		rc = psock_start(port->psock, netdev->ifindex);
	return rc;
}

int interface_open(struct port *port)
{
	struct netdev netdev;
	int rc;

	rc = netdev_query(port->ifname, &netdev);
	if (rc != 0)
		return rc;
	rc = port->watched ? stand_in_make(port->ifname, port->pool, &port->id) : 0;
	if (rc == 0)
		rc = psock_open(&port->psock, port->pool);
	if (rc == 0)
		rc = interface_start(port, &netdev);
	if (rc != 0) {
		log_error("no packet socket for interface '%s': %s", port->ifname, strerror(-rc));
		if (port->psock)
			interface_close(port);
		return rc;
	}
	memcpy(port->mac, netdev.mac, sizeof(port->mac));
	port->dma = PORT_COPIES;
	port->wake_fd = psock_fd(port->psock);
	port->ops = &interface_ops;
	port->ops_arg = port;
	port->started = true;
	return 0;
}
