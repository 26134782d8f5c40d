/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing a DPDK port up for RoCE, whatever drives it. */
#include "link/port.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ether.h>

#include "af_packet.h"
#include "base/log.h"
#include "interface.h"
#include "link/eal_log.h"
#include "link/footprint.h"
#include "link/netdev.h"
#include "link/plan.h"
#include "memif.h"
#include "memif_port.h"
#include "nic.h"
#include "wire/build.h"

#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN)
#define MBUF_OVERHEAD  512 /* mbuf, mempool's header and padding, cache lines */
#define MBUF_BYTES_MAX ((uint32_t)UINT16_MAX - RTE_PKTMBUF_HEADROOM)
#define DESCRIPTORS    1024
#define MBUFS_SOFTWARE 2048 /* drivers that copy hold no buffers of ours */
#define MBUFS_HARDWARE (2 * DESCRIPTORS + MBUFS_SOFTWARE)
#define POOL_CACHE     256
#define NULL_DRIVER    "net_null"
#define VHOST_DRIVER   "net_vhost"
#define DRAIN_NS       10000000

static int port_prepare_af_packet(struct port *port)
{
	unsigned long frame = 2048;
	struct netdev netdev;
	int rc;

	if (!devargs_get(&port->devargs, "iface", port->ifname, sizeof(port->ifname))) {
		log_error("port '%s' needs an interface: add iface=NAME", port->devargs.name);
		return -EINVAL;
	}
	rc = af_packet_check_privilege();
	if (rc == 0)
		rc = netdev_query(port->ifname, &netdev);
	if (rc == 0)
		rc = af_packet_prepare(&port->devargs, netdev.mtu_bytes);
	if (rc != 0)
		return rc;
	if (port->mtu_bytes > netdev.mtu_bytes) {
		log_error("interface '%s' has an MTU of %u, less than the %u that are wanted: `ip "
			  "link "
			  "set %s mtu %u` first",
			  port->ifname, netdev.mtu_bytes, port->mtu_bytes, port->ifname,
			  port->mtu_bytes);
		return -EINVAL;
	}
	if (port->mtu_bytes == 0)
		port->mtu_bytes = netdev.mtu_bytes;
	port->link_mbps = netdev.mbps;
	rc = devargs_get_number(&port->devargs, "framesz", &frame);
	port->mbuf_bytes = (uint32_t)frame;
	return rc;
}

int port_prepare(struct port *port, const char *text, uint32_t mtu_bytes)
{
	int rc;

	port->wake_fd = -1;
	port->listen_fd = -1;
	port->mtu_bytes = mtu_bytes;
	rc = devargs_parse(text, &port->devargs);
	if (rc != 0)
		return rc;
	if (devargs_is(&port->devargs, MEMIF_DRIVER)) {
		port->driver = port->keeps_driver || !memif_port_suits(&port->devargs) ? PORT_MEMIF
										       : PORT_WIRE;
		port->waits_for_peer = true;
		rc = memif_prepare(&port->devargs);
		port->is_client = !memif_is_server(&port->devargs);
		if (port->mtu_bytes == 0)
			port->mtu_bytes = MEMIF_MTU;
	} else if (devargs_is(&port->devargs, AF_PACKET_DRIVER)) {
		port->driver = PORT_AF_PACKET;
		rc = port_prepare_af_packet(port);
	} else {
		/* Left alone it receives made-up packets as fast as it is asked. */
		if (devargs_is(&port->devargs, NULL_DRIVER))
			rc = devargs_default(&port->devargs, "no-rx", "1");
		port->waits_for_peer = devargs_is(&port->devargs, VHOST_DRIVER);
		port->mbuf_bytes =
			RTE_MAX(mtu_bytes, (uint32_t)PLAN_MTU_DEFAULT) + (uint32_t)FRAME_OVERHEAD;
	}
	port->mbuf_bytes = RTE_ALIGN_CEIL(RTE_MAX(port->mbuf_bytes, (uint32_t)PACKET_FRAME_MAX),
					  (uint32_t)RTE_CACHE_LINE_SIZE);
	/* No buffer has more; a driver spreads what is longer, or refuses. */
	port->mbuf_bytes = RTE_MIN(port->mbuf_bytes, MBUF_BYTES_MAX);
	/* virtio-user, for one, is a virtual device whose rings hold buffers as a NIC's do. */
	port->mbufs = port->driver == PORT_GENERIC ? MBUFS_HARDWARE : MBUFS_SOFTWARE;
	return rc;
}

size_t port_memory_bytes(const struct port *port)
{
	return (size_t)port->mbufs * (port->mbuf_bytes + RTE_PKTMBUF_HEADROOM + MBUF_OVERHEAD);
}

static int port_error(const struct port *port, const char *what, int rc)
{
	log_error("port '%s' %s: %s", port->devargs.name, what,
		  eal_log_reason()[0] ? eal_log_reason() : rte_strerror(-rc));
	return rc < 0 ? rc : -EIO;
}

static int port_probe(struct port *port)
{
	int rc;

	if (port->devargs.bus == DEVARGS_VDEV) {
		rc = rte_eal_hotplug_add("vdev", port->devargs.name, port->devargs.args);
		if (rc != 0)
			return port_error(port, "cannot be made", rc);
	}
	rc = rte_eth_dev_get_port_by_name(port->devargs.name, &port->id);
	if (rc == 0)
		return 0;
	if (port->devargs.bus == DEVARGS_PCI)
		return nic_explain(port->devargs.name);
	return port_error(port, "is no Ethernet port", rc);
}

/* A pool that gives the buffer freed last: few buffers are in use at once, and stay in the cache.
 */
static int port_make_pool(struct port *port)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	const uint16_t room = (uint16_t)(port->mbuf_bytes + RTE_PKTMBUF_HEADROOM);
	const bool is_ours = port->driver == PORT_WIRE;
	const int socket =
		is_ours || port->own_socket ? SOCKET_ID_ANY : rte_eth_dev_socket_id(port->id);

	if (is_ours)
		snprintf(name, sizeof(name), "uroce_memif");
	else
		snprintf(name, sizeof(name), "uroce_%u", port->id);
	port->pool = rte_pktmbuf_pool_create_by_ops(name, port->mbufs, POOL_CACHE, 0, room, socket,
						    "stack");
	if (!port->pool)
		port->pool =
			rte_pktmbuf_pool_create(name, port->mbufs, POOL_CACHE, 0, room, socket);
	if (port->pool)
		return 0;
	log_error("no memory for %zu MiB of packet buffers: free some, or set up more huge pages",
		  port_memory_bytes(port) >> 20);
	return -ENOMEM;
}

static int port_apply(struct port *port, const struct rte_eth_dev_info *info,
		      const struct plan *plan)
{
	struct rte_eth_rxconf rxconf = info->default_rxconf;
	struct rte_eth_txconf txconf = info->default_txconf;
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	const int socket = rte_eth_dev_socket_id(port->id);
	int rc;

	rc = rte_eth_dev_configure(port->id, 1, 1, &plan->conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx, &tx);
	rxconf.offloads = plan->conf.rxmode.offloads;
	txconf.offloads = plan->conf.txmode.offloads;
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(port->id, 0, rx, (unsigned int)socket, &rxconf,
					    port->pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port->id, 0, tx, (unsigned int)socket, &txconf);
	return rc;
}

/* A driver may refuse what it said it can: then it is asked for less. */
static int port_configure(struct port *port)
{
	struct plan_wish wish = {
		.mtu_bytes = port->mtu_bytes,
		.mbuf_bytes = port->mbuf_bytes,
		.keeps_mtu = port->driver != PORT_GENERIC,
	};
	struct rte_eth_dev_info info;
	struct plan plan;
	int rc;

	rc = rte_eth_dev_info_get(port->id, &info);
	if (rc != 0)
		return port_error(port, "tells nothing of itself", rc);
	port->dma = nic_dma(port);
	wish.interrupts = port->dma == PORT_DMA_IOMMU || devargs_is(&port->devargs, TAP_DRIVER);
	/* Whose pool is made elsewhere sends nothing but what is in its buffers. */
	wish.dma = port->dma == PORT_DMA_IOMMU && !port->make_pool;
	plan_make(&info, &wish, &plan);
	port->mbuf_bytes = plan.mbuf_bytes;
	rc = port->make_pool ? port->make_pool(port) : port_make_pool(port);
	if (rc != 0)
		return rc;
	do
		rc = port_apply(port, &info, &plan);
	while (rc != 0 && plan_reduce(&info, &plan));
	if (rc != 0)
		return port_error(port, "cannot be configured", rc);
	port->checks_sums = plan.checks_sums;
	port->sums_udp = plan.sums_udp;
	port->gathers = plan.gathers;
	port->interrupts = plan.conf.intr_conf.rxq;
	return 0;
}

/* Drivers of virtual devices make up a local address where they are given none. */
static bool port_mac_is_random(const struct port *port, const struct rte_ether_addr *mac)
{
	char value[RTE_ETHER_ADDR_FMT_SIZE];

	return port->driver == PORT_GENERIC && port->devargs.bus == DEVARGS_VDEV &&
	       rte_is_local_admin_ether_addr(mac) &&
	       !devargs_get(&port->devargs, "mac", value, sizeof(value));
}

static int port_learn(struct port *port)
{
	struct rte_ether_addr mac;
	struct rte_eth_link link;
	uint16_t mtu = 0;
	int rc;

	rc = rte_eth_macaddr_get(port->id, &mac);
	if (rc == 0 && port->driver == PORT_GENERIC)
		rc = rte_eth_dev_get_mtu(port->id, &mtu);
	if (rc != 0)
		return port_error(port, "tells nothing of itself", rc);
	if (port->driver == PORT_GENERIC) {
		if (mtu < port->mtu_bytes)
			log_warn("port '%s' carries an MTU of %u at most, not %u",
				 port->devargs.name, mtu, port->mtu_bytes);
		port->mtu_bytes = mtu;
	}
	memcpy(port->mac, &mac, sizeof(port->mac));
	port->mac_is_random = port_mac_is_random(port, &mac);
	if (port->link_mbps == 0 && rte_eth_link_get_nowait(port->id, &link) == 0 &&
	    link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		port->link_mbps = link.link_speed;
	return 0;
}

/* A solicitation comes to a group. An interface's own flags are the kernel's, and would outlive us.
 */
static void port_listen_to_groups(const struct port *port)
{
	if (port->driver != PORT_AF_PACKET && rte_eth_allmulticast_enable(port->id) != 0)
		rte_eth_promiscuous_enable(port->id);
}

int port_start(struct port *port)
{
	const int rc = rte_eth_dev_start(port->id);

	port->started = rc == 0;
	if (port->started)
		port_listen_to_groups(port);
	return rc;
}

/* What it has for interrupts is its descriptor, which is readable while frames wait: nothing has to
 * be armed. */
static void port_find_tap(struct port *port)
{
	if (port->interrupts)
		port->wake_fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port->id, 0);
	port->interrupts = false;
}

static int port_bring_up(struct port *port)
{
	int rc;

	rc = port_probe(port);
	if (rc == 0)
		rc = port_configure(port);
	if (rc != 0)
		return rc;
	/* A memif client's start waits for its server: reconnect.h does that when there is one. */
	if (port->driver != PORT_MEMIF || !port->is_client)
		rc = port_start(port);
	if (rc != 0)
		return port_error(port, "does not start", rc);
	nic_watch(port, port->interrupts);
	if (devargs_is(&port->devargs, TAP_DRIVER))
		port_find_tap(port);
	return port_learn(port);
}

static int port_open_interface(struct port *port)
{
	const int rc = port->make_pool ? port->make_pool(port) : port_make_pool(port);

	return rc == 0 ? interface_open(port) : rc;
}

/* A driver's socket is named in its arguments, on either end. */
static bool port_owns(const void *arg, int fd)
{
	const struct port *port = arg;
	struct sockaddr_un addr = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(addr) - 1;

	if (port->driver == PORT_MEMIF)
		return memif_owns_socket(&port->devargs, fd);
	if (getpeername(fd, (struct sockaddr *)&addr, &len) != 0) {
		len = sizeof(addr) - 1;
		if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
			return false;
	}
	return addr.sun_family == AF_UNIX && addr.sun_path[0] == '/' &&
	       strstr(port->devargs.args, addr.sun_path);
}

int port_open(struct port *port)
{
	struct footprint footprint;
	int rc;

	if (port->driver == PORT_WIRE) {
		rc = port_make_pool(port);
		return rc == 0 ? memif_port_open(port) : rc;
	}
	if (port->own_socket)
		return port_open_interface(port);
	rc = footprint_save(&footprint);
	if (rc != 0)
		return rc;
	eal_log_capture();
	rc = port_bring_up(port);
	eal_log_release();
	if (rc == 0 && port->driver == PORT_MEMIF && !port->is_client)
		port->listen_fd = memif_find_listener(&port->devargs);
	if (rc == 0 && port->driver == PORT_AF_PACKET) {
		port->wake_fd = af_packet_find_socket(&footprint.fds);
		rc = af_packet_listen_to_groups(port->wake_fd, port->ifname);
	}
	footprint_seal(&footprint, port_owns, port);
	footprint_restore(&footprint);
	return rc;
}

/* virtio-user tells its back end, which may have gone, and would have the program killed for that.
 */
static void port_stop(const struct port *port)
{
	const struct timespec at_once = {0}, drain = {.tv_nsec = DRAIN_NS};
	sigset_t pipe, before, pending;
	bool was_pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	/* Its ring goes with it, and with that the last acknowledgement, which nobody tells us was
	 * taken. */
	if (devargs_is(&port->devargs, VIRTIO_USER_DRIVER))
		nanosleep(&drain, NULL);
	rte_eth_dev_stop(port->id);
	rte_eth_dev_close(port->id);
	if (!was_pending)
		sigtimedwait(&pipe, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void port_close(struct port *port)
{
	port->started = false;
	if (port->ops) {
		port->ops->close(port->ops_arg);
		return;
	}
	if (port->removed)
		return;
	port_stop(port);
}

bool port_lost(const struct port *port)
{
	return port->ops ? port->ops->lost(port->ops_arg) : nic_is_gone(port);
}

void port_lose(struct port *port)
{
	port->started = false;
	if (port->ops)
		return;
	port->removed = true;
	nic_give_up(port);
}

bool port_connected(const struct port *port)
{
	struct rte_eth_link link;

	if (!port->started)
		return false;
	if (port->ops)
		return port->ops->connected(port->ops_arg);
	if (port->driver == PORT_AF_PACKET)
		return netdev_running(port->ifname);
	return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

bool port_link_up(struct port *port, bool connected)
{
	if (port->ops)
		return port->ops->link_up(port->ops_arg);
	port->had_peer |= connected;
	return connected || (port->waits_for_peer && !port->had_peer);
}
