/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings a DPDK port up for RoCE, with any driver. */
#include "ethdev.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include "af_packet.h"
#include "base/log.h"
#include "base/own.h"
#include "eal/eal_log.h"
#include "eal/footprint.h"
#include "netdev/netdev.h"
#include "pci.h"
#include "port/drivers.h"
#include "port/ethdev_plan.h"

#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN)
#define DESCRIPTORS    1024
#define MBUFS_HARDWARE (2 * DESCRIPTORS + PORT_MBUFS_SOFTWARE)
#define DRAIN_NS       10000000

static int ethdev_error(const struct port *port, const char *what, int rc)
{
	log_error("port '%s' %s: %s", port->devargs.name, what,
		  eal_log_reason()[0] ? eal_log_reason() : rte_strerror(-rc));
	return rc < 0 ? rc : -EIO;
}

static int ethdev_probe(struct ethdev *dev)
{
	const struct devargs *devargs = &dev->port->devargs;
	int rc;

	if (devargs->bus == DEVARGS_VDEV) {
		rc = rte_eal_hotplug_add("vdev", devargs->name, devargs->args);
		if (rc != 0)
			return ethdev_error(dev->port, "cannot be made", rc);
	}
	rc = rte_eth_dev_get_port_by_name(devargs->name, &dev->id);
	if (rc == 0) {
		dev->port->numa_node = rte_eth_dev_socket_id(dev->id);
		return 0;
	}
	if (devargs->bus == DEVARGS_PCI)
		return pci_explain(devargs->name);
	return ethdev_error(dev->port, "is not an Ethernet port", rc);
}

static int ethdev_set_up_queues(const struct ethdev *dev, const struct rte_eth_dev_info *info,
				const struct ethdev_plan *plan)
{
	struct rte_eth_rxconf rxconf = info->default_rxconf;
	struct rte_eth_txconf txconf = info->default_txconf;
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	const unsigned int node = (unsigned int)dev->port->numa_node;
	int rc;

	rc = rte_eth_dev_adjust_nb_rx_tx_desc(dev->id, &rx, &tx);
	rxconf.offloads = plan->conf.rxmode.offloads;
	txconf.offloads = plan->conf.txmode.offloads;
	for (uint16_t i = 0; i < plan->queues && rc == 0; i++)
		rc = rte_eth_rx_queue_setup(dev->id, i, rx, node, &rxconf, dev->port->pool);
	for (uint16_t i = 0; i < plan->queues && rc == 0; i++)
		rc = rte_eth_tx_queue_setup(dev->id, i, tx, node, &txconf);
	return rc;
}

static int ethdev_apply(const struct ethdev *dev, const struct rte_eth_dev_info *info,
			const struct ethdev_plan *plan)
{
	const int rc = rte_eth_dev_configure(dev->id, plan->queues, plan->queues, &plan->conf);

	return rc == 0 ? ethdev_set_up_queues(dev, info, plan) : rc;
}

/* Return how many queues the port shall have. Packets that captures must see, or that a bad network
 * shall damage, pass one place. */
static uint32_t ethdev_wanted_queues(const struct port *port)
{
	if (port->watched || port->impaired)
		return 1;
	return RTE_MIN(port->engines, (uint32_t)ETHDEV_QUEUES_MAX);
}

static int ethdev_make_pool(const struct ethdev *dev)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "uroce_%u", dev->id);
	return port_make_pool(dev->port, name);
}

/* Configure the port with so many queues, or one. A driver may refuse what its capabilities
 * promise: then ask for less. */
static int ethdev_configure(struct ethdev *dev, uint32_t queues)
{
	struct port *port = dev->port;
	struct ethdev_plan_wish wish = {
		.mtu_bytes = port->mtu_bytes,
		.mbuf_bytes = port->mbuf_bytes,
		.keeps_mtu = !dev->is_hardware,
		.queues = queues,
	};
	struct rte_eth_dev_info info;
	struct ethdev_plan plan;
	int rc;

	rc = rte_eth_dev_info_get(dev->id, &info);
	if (rc != 0)
		return ethdev_error(port, "tells nothing of itself", rc);
	port->dma = pci_dma(port);
	wish.interrupts = port->dma == PORT_DMA_IOMMU || devargs_is(&port->devargs, TAP_DRIVER);
	/* A port whose pool is made by another function sends only data in its own buffers. */
	wish.dma = port->dma == PORT_DMA_IOMMU && !port->make_pool;
	ethdev_plan_make(&info, &wish, &plan);
	port->mbuf_bytes = plan.mbuf_bytes;
	rc = port->pool ? 0 : ethdev_make_pool(dev);
	if (rc != 0)
		return rc;
	do
		rc = ethdev_apply(dev, &info, &plan);
	while (rc != 0 && ethdev_plan_reduce(&info, &plan));
	if (rc != 0)
		return ethdev_error(port, "cannot be configured", rc);
	port->checks_sums = plan.checks_sums;
	port->sums_udp = plan.sums_udp;
	port->gathers = plan.gathers;
	port->interrupts = plan.conf.intr_conf.rxq;
	dev->queues = plan.queues;
	return 0;
}

/* Return true if the driver chose a random address. Drivers of virtual devices choose a local
 * address if they are given none. */
static bool ethdev_mac_is_random(const struct ethdev *dev, const struct rte_ether_addr *mac)
{
	const struct devargs *devargs = &dev->port->devargs;
	char value[RTE_ETHER_ADDR_FMT_SIZE];

	return dev->is_hardware && devargs->bus == DEVARGS_VDEV &&
	       rte_is_local_admin_ether_addr(mac) &&
	       !devargs_get(devargs, "mac", value, sizeof(value));
}

static int ethdev_learn(const struct ethdev *dev)
{
	struct port *port = dev->port;
	struct rte_ether_addr mac;
	struct rte_eth_link link;
	uint16_t mtu = 0;
	int rc;

	rc = rte_eth_macaddr_get(dev->id, &mac);
	if (rc == 0 && dev->is_hardware)
		rc = rte_eth_dev_get_mtu(dev->id, &mtu);
	if (rc != 0)
		return ethdev_error(port, "tells nothing of itself", rc);
	if (dev->is_hardware) {
		if (mtu < port->mtu_bytes)
			log_warn("port '%s' carries an MTU of %u at most, not %u",
				 port->devargs.name, mtu, port->mtu_bytes);
		port->mtu_bytes = mtu;
	}
	memcpy(port->mac, &mac, sizeof(port->mac));
	port->mac_is_random = ethdev_mac_is_random(dev, &mac);
	if (port->link_mbps == 0 && rte_eth_link_get_nowait(dev->id, &link) == 0 &&
	    link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		port->link_mbps = link.link_speed;
	return 0;
}

/* Start the port, and receive multicast: neighbour solicitations are sent to a group. Do not change
 * a kernel interface's flags: the change would outlive this process. */
static int ethdev_start(const struct ethdev *dev)
{
	const int rc = rte_eth_dev_start(dev->id);

	dev->port->started = rc == 0;
	if (rc == 0 && dev->ifname[0] == '\0' && rte_eth_allmulticast_enable(dev->id) != 0)
		rte_eth_promiscuous_enable(dev->id);
	return rc;
}

/* Find the descriptors of the receive interrupts. A tap's is readable while frames wait, so nothing
 * must be armed. */
static void ethdev_find_interrupts(struct ethdev *dev)
{
	dev->arms = dev->port->devargs.bus == DEVARGS_PCI;
	for (uint16_t i = 0; i < dev->queues; i++) {
		dev->wake_fds[i] =
			dev->port->interrupts ? rte_eth_dev_rx_intr_ctl_q_get_fd(dev->id, i) : -1;
		if (dev->arms)
			own_mark(dev->wake_fds[i]);
	}
	ethdev_queue_listen(&dev->first);
}

/* Let the driver bring each engine's packets to the engine's queue. Return false if it cannot. A
 * port that receives nothing has nothing to divide. */
static bool ethdev_divide(struct ethdev *dev)
{
	if (dev->queues == 1 || dev->is_silent)
		return true;
	dev->flow.port_id = dev->id;
	if (flow_divide(&dev->flow, dev->queues))
		return true;
	flow_end(&dev->flow);
	return false;
}

/* Configure the port with a queue for each engine, if its driver has flow rules at all; else with
 * one. */
static int ethdev_configure_queues(struct ethdev *dev)
{
	int rc = ethdev_configure(dev, ethdev_wanted_queues(dev->port));

	if (rc != 0 || dev->queues == 1 || dev->is_silent || flow_can_divide(dev->id, dev->queues))
		return rc;
	return ethdev_configure(dev, 1);
}

/* Start the port. If it refuses the rules, start it anew with one queue. */
static int ethdev_start_queues(struct ethdev *dev)
{
	int rc = ethdev_start(dev);

	if (rc == 0 && !ethdev_divide(dev)) {
		rte_eth_dev_stop(dev->id);
		rc = ethdev_configure(dev, 1);
		if (rc == 0)
			rc = ethdev_start(dev);
	}
	return rc == 0 ? 0 : ethdev_error(dev->port, "does not start", rc);
}

static int ethdev_bring_up(struct ethdev *dev)
{
	int rc;

	rc = ethdev_probe(dev);
	if (rc == 0)
		rc = ethdev_configure_queues(dev);
	if (rc == 0)
		rc = ethdev_start_queues(dev);
	if (rc != 0)
		return rc;
	pci_watch(dev);
	ethdev_find_interrupts(dev);
	dev->port->queues = dev->queues;
	if (dev->flow.count > 0)
		log_info("port '%s' divides queue pairs among %u queues by flow rules",
			 dev->port->devargs.name, dev->queues);
	return ethdev_learn(dev);
}

/* Return true if a socket belongs to the driver: its path is in the driver's arguments, at either
 * end. */
static bool ethdev_owns(const void *arg, int fd)
{
	const struct ethdev *dev = arg;
	struct sockaddr_un addr = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(addr) - 1;

	if (getpeername(fd, (struct sockaddr *)&addr, &len) != 0) {
		len = sizeof(addr) - 1;
		if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
			return false;
	}
	return addr.sun_family == AF_UNIX && addr.sun_path[0] == '/' &&
	       strstr(dev->port->devargs.args, addr.sun_path);
}

static int ethdev_open(void *arg)
{
	struct ethdev *dev = arg;
	struct footprint footprint;
	int rc;

	rc = footprint_save(&footprint);
	if (rc != 0)
		return rc;
	eal_log_capture();
	rc = ethdev_bring_up(dev);
	eal_log_release();
	if (rc == 0 && dev->ifname[0] != '\0') {
		dev->wake_fds[0] = af_packet_find_socket(&footprint.fds);
		ethdev_queue_listen(&dev->first);
		rc = af_packet_listen_to_groups(dev->port->wake_fd, dev->ifname);
	}
	footprint_seal(&footprint, ethdev_owns, dev);
	footprint_restore(&footprint);
	return rc;
}

static uint16_t ethdev_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct ethdev *dev = arg;

	return rte_eth_rx_burst(dev->id, 0, mbufs, n);
}

static uint16_t ethdev_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct ethdev *dev = arg;

	return rte_eth_tx_burst(dev->id, 0, mbufs, n);
}

static bool ethdev_is_connected(const struct ethdev *dev)
{
	struct rte_eth_link link;

	if (dev->ifname[0] != '\0')
		return netdev_running(dev->ifname);
	return rte_eth_link_get_nowait(dev->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

static bool ethdev_connected(void *arg)
{
	struct ethdev *dev = arg;
	const bool connected = !dev->given_up && ethdev_is_connected(dev);

	__atomic_store_n(&dev->connected, connected, __ATOMIC_RELAXED);
	return connected;
}

static bool ethdev_link_up(void *arg, bool connected)
{
	struct ethdev *dev = arg;

	dev->had_peer |= connected;
	return connected || (dev->link_needs_peer && !dev->had_peer);
}

static bool ethdev_arm(void *arg)
{
	const struct ethdev *dev = arg;

	return pci_arm(&dev->first);
}

static void ethdev_disarm(void *arg)
{
	const struct ethdev *dev = arg;

	pci_disarm(&dev->first);
}

static bool ethdev_lost(void *arg)
{
	return pci_is_gone(arg);
}

static void ethdev_lose(void *arg)
{
	struct ethdev *dev = arg;

	dev->removed = true;
	dev->given_up = true;
	__atomic_store_n(&dev->connected, false, __ATOMIC_RELAXED);
	pci_give_up(dev);
}

/*
 * Stop and close the port. virtio-user writes to its back end, which may have gone: SIGPIPE would
 * kill the program, so it is blocked. If another engine could not be stopped, its thread may be in
 * its queues: leave the port as it is.
 */
static void ethdev_close(void *arg)
{
	struct ethdev *dev = arg;
	const struct timespec at_once = {0}, drain = {.tv_nsec = DRAIN_NS};
	sigset_t pipe, before, pending;
	bool was_pending;

	if (dev->removed || dev->further > 0)
		return;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	/* Give the back end time to take the last acknowledgement: the ring disappears with the
	 * device, and nothing reports when the ring is empty. */
	if (devargs_is(&dev->port->devargs, VIRTIO_USER_DRIVER))
		nanosleep(&drain, NULL);
	flow_end(&dev->flow);
	rte_eth_dev_stop(dev->id);
	rte_eth_dev_close(dev->id);
	if (!was_pending)
		sigtimedwait(&pipe, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static const struct port_ops ethdev_ops = {
	.open = ethdev_open,
	.rx_burst = ethdev_rx_burst,
	.tx_burst = ethdev_tx_burst,
	.arm = ethdev_arm,
	.disarm = ethdev_disarm,
	.link_up = ethdev_link_up,
	.connected = ethdev_connected,
	.lost = ethdev_lost,
	.lose = ethdev_lose,
	.open_queue = ethdev_queue_open,
	.close = ethdev_close,
	.destroy = free,
};

static int ethdev_prepare_af_packet(struct ethdev *dev)
{
	struct port *port = dev->port;
	uint32_t frame_bytes = 0;
	int rc;

	if (!devargs_get(&port->devargs, "iface", dev->ifname, sizeof(dev->ifname))) {
		log_error("port '%s' needs an interface: add iface=NAME", port->devargs.name);
		return -EINVAL;
	}
	rc = af_packet_learn(port, dev->ifname);
	if (rc == 0)
		rc = af_packet_prepare(port, &frame_bytes);
	port->through_kernel = true;
	port_size_buffers(port, frame_bytes, PORT_MBUFS_SOFTWARE);
	return rc;
}

/* By default net_null receives invented packets as fast as it is polled. */
static int ethdev_prepare_null(struct ethdev *dev)
{
	struct devargs *devargs = &dev->port->devargs;
	char value[8];
	const int rc = devargs_default(devargs, "no-rx", "1");

	dev->is_silent =
		devargs_get(devargs, "no-rx", value, sizeof(value)) && strcmp(value, "1") == 0;
	return rc;
}

/* Refuse queues that nobody would read: the kernel, or the other end, puts packets into all that
 * these drivers make, and their packets cannot be divided by queue pair. */
static int ethdev_check_queues(const struct port *port, const char *driver, const char *argument)
{
	unsigned long queues = 1;

	if (!devargs_is(&port->devargs, driver))
		return 0;
	if (devargs_get_number(&port->devargs, argument, &queues) != 0)
		return -EINVAL;
	if (queues <= 1)
		return 0;
	log_error("port '%s' cannot bring packets to a queue by their queue pair: leave out %s=",
		  port->devargs.name, argument);
	return -EINVAL;
}

/* Refuse a port that DPDK has a driver for, but that cannot work. */
static int ethdev_check(const struct port *port)
{
	int rc;

	if (port->devargs.bus == DEVARGS_PCI)
		return pci_check(port->devargs.name);
	rc = ethdev_check_queues(port, AF_PACKET_DRIVER, "qpairs");
	if (rc == 0)
		rc = ethdev_check_queues(port, VHOST_DRIVER, "queues");
	if (rc != 0)
		return rc;
	if (!devargs_is(&port->devargs, AF_XDP_DRIVER))
		return 0;
	log_error("port '%s' cannot be used: AF_XDP takes no buffer larger than a page, and RoCE's "
		  "packets are longer: use --netdev, or port net_af_packet0",
		  port->devargs.name);
	return -EOPNOTSUPP;
}

int ethdev_prepare(struct port *port)
{
	struct ethdev *dev;
	int rc = ethdev_check(port);

	if (rc != 0)
		return rc;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->port = port;
	dev->first = (struct ethdev_queue){.dev = dev, .port = port};
	port->ops = &ethdev_ops;
	port->ops_arg = dev;
	if (devargs_is(&port->devargs, AF_PACKET_DRIVER))
		return ethdev_prepare_af_packet(dev);
	if (devargs_is(&port->devargs, NULL_DRIVER))
		rc = ethdev_prepare_null(dev);
	dev->link_needs_peer = devargs_is(&port->devargs, VHOST_DRIVER);
	port->link_comes =
		port->devargs.bus == DEVARGS_PCI || devargs_is(&port->devargs, BOND_DRIVER);
	/* All others count as hardware: virtio-user, for example, is a virtual device whose rings
	 * hold buffers as a NIC's do. */
	dev->is_hardware = true;
	port_size_buffers(port,
			  RTE_MAX(port->mtu_bytes, (uint32_t)ETHDEV_PLAN_MTU_DEFAULT) +
				  (uint32_t)FRAME_OVERHEAD,
			  MBUFS_HARDWARE);
	return rc;
}
