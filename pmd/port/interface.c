/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel interface as a port: a packet socket of our own instead of a DPDK driver. */
#include "port/interface.h"

#include <assert.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "af_packet.h"
#include "base/log.h"
#include "base/own.h"
#include "netdev/divide.h"
#include "netdev/manager.h"
#include "netdev/mute.h"
#include "netdev/netdev.h"
#include "port/drivers.h"
#include "port/port.h"
#include "psock/psock.h"
#include "port/port_eal.h"

static_assert(PSOCK_VERIFIED == PORT_VERIFIED && PSOCK_STRAY == PORT_STRAY,
	      "what a packet socket says, engines understand");

struct interface {
	struct port *port;
	char ifname[16];
	uint16_t stand_in; /* if port.watched is set: the ethdev that captures see (stand_in.h) */
	unsigned int ifindex;
	/* interface_prepare makes it, before the last uroced leaves: that shows early whether this
	 * process may have one, and the kernel takes some time to make its ring. */
	struct psock *psock;
	bool has_received; /* since the port was armed; atomic */
	uint32_t shares;   /* bits of the queues that interface_open_queue has opened */
};

static uint16_t interface_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct interface *interface = arg;
	struct port *port = interface->port;
	const uint16_t received = psock_rx_burst(interface->psock, mbufs, n);

	if (received > 0)
		__atomic_store_n(&interface->has_received, true, __ATOMIC_RELAXED);
	port->rx_missed = psock_missed(interface->psock);
	port->rx_too_long = psock_dropped(interface->psock);
	return unlikely(port->watched)
		       ? port->eal->stand_in_received(interface->stand_in, mbufs, received, n)
		       : received;
}

static uint16_t interface_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct interface *interface = arg;
	struct port *port = interface->port;
	uint16_t sent;

	if (unlikely(port->watched))
		n = port->eal->stand_in_sends(interface->stand_in, mbufs, n);
	sent = psock_tx_burst(interface->psock, mbufs, n);
	psock_refused(interface->psock, &port->tx_refused.packets, &port->tx_refused.bytes);
	return sent;
}

/*
 * Return true if packets wait that the descriptor does not report. An interface that goes down
 * leaves an error on the socket, which would end every sleep at once until it is read; so read it
 * here, unless packets have ended the last sleep.
 */
static bool interface_arm(void *arg)
{
	struct interface *interface = arg;
	int error;
	socklen_t len = sizeof(error);

	if (__atomic_exchange_n(&interface->has_received, false, __ATOMIC_RELAXED))
		return psock_holds(interface->psock);
	if (own_is(psock_fd(interface->psock)))
		(void)getsockopt(psock_fd(interface->psock), SOL_SOCKET, SO_ERROR, &error, &len);
	return psock_holds(interface->psock);
}

static bool interface_connected(void *arg)
{
	const struct interface *interface = arg;

	return netdev_running(interface->ifname);
}

/* Return true if the interface was removed, or moved to another network namespace. The kernel has
 * taken it away from the socket then, and gives the socket no other one with the same name. */
static bool interface_lost(void *arg)
{
	const struct interface *interface = arg;
	struct sockaddr_ll address = {0};
	socklen_t len = sizeof(address);

	return getsockname(psock_fd(interface->psock), (struct sockaddr *)&address, &len) == 0 &&
	       address.sll_family == AF_PACKET && address.sll_ifindex == -1;
}

/* Packets that captures must see pass through the port itself. */
static int interface_lend(void *arg, const struct divide_part *part)
{
	const struct interface *interface = arg;
	int fd, rc;

	if (interface->port->watched)
		return -EOPNOTSUPP;
	fd = psock_socket();
	if (fd < 0)
		return fd;
	rc = divide_only(fd, part);
	if (rc == 0)
		rc = psock_bind(fd, interface->ifindex);
	if (rc == 0)
		rc = manager_exclude(fd);
	if (rc != 0) {
		close(fd);
		return rc;
	}
	return fd;
}

static int interface_leave_out(void *arg, const struct divide_blocks *blocks)
{
	const struct interface *interface = arg;

	if (interface->shares != 0)
		return -EOPNOTSUPP;
	return divide_all_but(psock_fd(interface->psock), blocks);
}

/* Receive no packets any more to the queue pairs of one share. 0 or -errno: nothing has changed. */
static int interface_leave_share(struct interface *interface, uint32_t share, uint32_t count)
{
	const uint32_t shares = interface->shares | 1u << share;
	const int rc = divide_all_but_shares(psock_fd(interface->psock), shares, count);

	if (rc == 0)
		interface->shares = shares;
	return rc;
}

/* Receive the packets to the queue pairs of one share by a further socket. Those that arrive
 * between the last two steps arrive twice, but the device has no queue pair yet. */
static int interface_start_queue(struct interface *interface, struct interface *first,
				 uint32_t share, uint32_t count)
{
	int rc;

	rc = psock_open(&interface->psock, first->port->pool);
	if (rc == 0)
		rc = divide_only_share(psock_fd(interface->psock), share, count);
	if (rc != 0)
		return rc;
	psock_expect_share(interface->psock, share, count);
	rc = psock_start(interface->psock, first->ifindex);
	return rc == 0 ? interface_leave_share(first, share, count) : rc;
}

/* Close the socket, but keep the psock: a delayed helper thread may still arm the port. */
static void interface_close(void *arg)
{
	struct interface *interface = arg;

	psock_stop(interface->psock);
	__atomic_store_n(&interface->port->wake_fd, -1, __ATOMIC_RELAXED);
}

static void interface_destroy(void *arg)
{
	struct interface *interface = arg;

	if (interface->psock)
		psock_close(interface->psock);
	free(interface);
}

static int interface_start(struct interface *interface, const struct netdev *netdev)
{
	struct port *port = interface->port;
	int rc = 0;

	if (port->watched)
		rc = port->eal->stand_in_make(interface->ifname, port->pool, &interface->stand_in);
	psock_use_pool(interface->psock, port->pool);
	if (rc == 0)
		rc = mute_packet_socket(psock_fd(interface->psock));
	if (rc == 0)
		rc = psock_start(interface->psock, netdev->ifindex);
	return rc;
}

static int interface_open(void *arg)
{
	struct interface *interface = arg;
	struct port *port = interface->port;
	struct netdev netdev;
	int rc;

	rc = port_make_pool(port, "uroce_interface");
	if (rc == 0)
		rc = netdev_query(interface->ifname, &netdev);
	if (rc != 0)
		return rc;
	rc = interface_start(interface, &netdev);
	if (rc != 0) {
		log_error("no packet socket for interface '%s': %s", interface->ifname,
			  strerror(-rc));
		interface_close(interface);
		return rc;
	}
	interface->ifindex = netdev.ifindex;
	memcpy(port->mac, netdev.mac, sizeof(port->mac));
	port->dma = PORT_COPIES;
	port->wake_fd = psock_fd(interface->psock);
	port->started = true;
	return 0;
}

static int interface_open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue);

static const struct port_ops interface_ops = {
	.open = interface_open,
	.rx_burst = interface_rx_burst,
	.tx_burst = interface_tx_burst,
	.arm = interface_arm,
	.connected = interface_connected,
	.lost = interface_lost,
	.lend = interface_lend,
	.leave_out = interface_leave_out,
	.open_queue = interface_open_queue,
	.close = interface_close,
	.destroy = interface_destroy,
};

static int interface_open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	struct interface *first = arg, *interface;
	int rc;

	if (number >= port_queues(first->port))
		return -EOPNOTSUPP;
	interface = calloc(1, sizeof(*interface));
	if (!interface)
		return -ENOMEM;
	interface->port = queue;
	interface->ifindex = first->ifindex;
	memcpy(interface->ifname, first->ifname, sizeof(interface->ifname));
	rc = interface_start_queue(interface, first, number, count);
	if (rc != 0) {
		interface_destroy(interface);
		return rc;
	}
	queue->ops = &interface_ops;
	queue->ops_arg = interface;
	queue->wake_fd = psock_fd(interface->psock);
	return 0;
}

static int interface_make_psock(struct interface *interface)
{
	const int fd = af_packet_socket();
	int rc;

	if (fd < 0)
		return fd;
	rc = psock_adopt(&interface->psock, NULL, fd);
	if (rc != 0)
		log_error("no packet socket for interface '%s': %s", interface->ifname,
			  strerror(-rc));
	return rc;
}

int interface_prepare(struct port *port, const char *ifname, uint32_t mtu_bytes)
{
	struct interface *interface = calloc(1, sizeof(*interface));
	int rc;

	if (!interface)
		return -ENOMEM;
	interface->port = port;
	snprintf(interface->ifname, sizeof(interface->ifname), "%s", ifname);
	port_init(port, mtu_bytes);
	port->eal = &port_eal;
	port->ops = &interface_ops;
	port->ops_arg = interface;
	port->through_kernel = true;
	/* Packets that captures must see pass through the port itself. */
	port->queues = port->watched ? 1 : DIVIDE_SHARES_MAX;
	port->devargs.bus = DEVARGS_VDEV;
	/* This name appears in messages. */
	snprintf(port->devargs.name, sizeof(port->devargs.name), AF_PACKET_DRIVER "%u",
		 if_nametoindex(ifname));
	rc = interface_make_psock(interface);
	if (rc == 0)
		rc = af_packet_learn_netdev(port, ifname);
	port_size_buffers(port, af_packet_frame_bytes(port->mtu_bytes), PORT_MBUFS_SOFTWARE);
	return rc;
}
