/* SPDX-License-Identifier: BSD-3-Clause */
/* A UDP socket as a port. */
#include "port/udp_port.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "af_packet.h"
#include "base/log.h"
#include "base/own.h"
#include "netdev/mute.h"
#include "netdev/netdev.h"
#include "port/port.h"
#include "port/port_eal.h"
#include "udp/udp_socket.h"
#include "wire/headers.h"

static_assert(UDP_VERIFIED == PORT_VERIFIED, "what a UDP socket says, engines understand");

struct udp_port {
	struct port *port;
	char ifname[IF_NAMESIZE];
	unsigned int ifindex;
	struct udp_socket *udp;
};

static uint16_t udp_port_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct udp_port *udp_port = arg;
	const uint16_t received = udp_rx_burst(udp_port->udp, mbufs, n);
	const struct udp_counts *counts = udp_counts(udp_port->udp);

	udp_port->port->rx_missed = counts->missed;
	udp_port->port->rx_too_long = counts->dropped;
	return received;
}

static uint16_t udp_port_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct udp_port *udp_port = arg;
	const uint16_t sent = udp_tx_burst(udp_port->udp, mbufs, n);
	const struct udp_counts *counts = udp_counts(udp_port->udp);

	udp_port->port->tx_refused.packets = counts->refused_packets;
	udp_port->port->tx_refused.bytes = counts->refused_bytes;
	return sent;
}

static bool udp_port_arm(void *arg)
{
	const struct udp_port *udp_port = arg;

	return udp_holds(udp_port->udp);
}

static bool udp_port_connected(void *arg)
{
	const struct udp_port *udp_port = arg;

	return netdev_running(udp_port->ifname);
}

/* Return true if the interface was removed, or another one has its name. Routes of groups and of
 * link-local addresses lead by its index. */
static bool udp_port_lost(void *arg)
{
	const struct udp_port *udp_port = arg;

	return if_nametoindex(udp_port->ifname) != udp_port->ifindex;
}

/* A child of a fork would keep the UDP port from the next program. */
static void udp_port_disown(void *arg)
{
	const struct udp_port *udp_port = arg;

	if (own_is(udp_fd(udp_port->udp)))
		close(udp_fd(udp_port->udp));
}

/* Close the socket, but keep the rest: a delayed helper thread may still arm the port. */
static void udp_port_close(void *arg)
{
	struct udp_port *udp_port = arg;

	udp_stop(udp_port->udp);
	__atomic_store_n(&udp_port->port->wake_fd, -1, __ATOMIC_RELAXED);
}

static void udp_port_destroy(void *arg)
{
	struct udp_port *udp_port = arg;

	if (udp_port->udp)
		udp_close(udp_port->udp);
	free(udp_port);
}

static void udp_port_tell(int rc)
{
	char holder[HOLDER_TEXT_MAX];

	if (rc != -EADDRINUSE) {
		log_error("cannot open a UDP socket for RoCE: %s", strerror(-rc));
		return;
	}
	holder_of_udp_port(WIRE_UDP_PORT, holder, sizeof(holder));
	log_error("UDP port %d is taken by %s: end it; or run uroced with --udp, so that several "
		  "programs share it",
		  WIRE_UDP_PORT, holder);
}

static int udp_port_open(void *arg)
{
	struct udp_port *udp_port = arg;
	struct port *port = udp_port->port;
	struct netdev netdev;
	uint8_t gateway[6];
	int rc;

	rc = port_make_pool(port, "uroce_udp");
	if (rc == 0)
		rc = netdev_query(udp_port->ifname, &netdev);
	if (rc != 0)
		return rc;
	udp_port_gateway(netdev.mac, gateway);
	rc = udp_open(&udp_port->udp, port->pool, netdev.mac, gateway, netdev.ifindex);
	if (rc != 0) {
		udp_port_tell(rc);
		return rc;
	}
	udp_port->ifindex = netdev.ifindex;
	memcpy(port->mac, netdev.mac, sizeof(port->mac));
	port->dma = PORT_COPIES;
	port->sums_udp = true;
	port->wake_fd = udp_fd(udp_port->udp);
	port->started = true;
	return 0;
}

static const struct port_ops udp_port_ops = {
	.open = udp_port_open,
	.rx_burst = udp_port_rx_burst,
	.tx_burst = udp_port_tx_burst,
	.arm = udp_port_arm,
	.connected = udp_port_connected,
	.lost = udp_port_lost,
	.disown = udp_port_disown,
	.close = udp_port_close,
	.destroy = udp_port_destroy,
};

int udp_port_prepare(struct port *port, const char *ifname, uint32_t mtu_bytes)
{
	struct udp_port *udp_port = calloc(1, sizeof(*udp_port));
	int rc;

	if (!udp_port)
		return -ENOMEM;
	udp_port->port = port;
	snprintf(udp_port->ifname, sizeof(udp_port->ifname), "%s", ifname);
	port_init(port, mtu_bytes);
	port->eal = &port_eal;
	port->ops = &udp_port_ops;
	port->ops_arg = udp_port;
	port->through_kernel = true;
	port->devargs.bus = DEVARGS_VDEV;
	/* This name appears in messages. */
	snprintf(port->devargs.name, sizeof(port->devargs.name), "udp");
	rc = af_packet_learn_netdev(port, ifname);
	port_size_buffers(port, af_packet_frame_bytes(port->mtu_bytes), PORT_MBUFS_SOFTWARE);
	return rc;
}
