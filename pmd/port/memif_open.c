/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepares, opens and destroys a memif port: its settings, descriptors and packet buffers. */
#include "memif_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_ether.h>

#include "base/log.h"
#include "base/own.h"
#include "base/tuning.h"
#include "memif_args.h"
#include "port/drivers.h"
#include "port/memif_direct.h"
#include "stand_in.h"
#include "wire/build.h"
#include "wire/packet.h"

#define MEMIF_MBPS 10000 /* as DPDK's driver says */

static int memif_refuse(const struct port *port, const char *what)
{
	log_error("port '%s': %s", port->devargs.name, what);
	return -EINVAL;
}

/* Return true if the longest frame to send or receive fits into as many buffers as either end
 * accepts for a packet. */
static bool memif_holds_frames(const struct port *port, unsigned long buffer_bytes,
			       unsigned long log2_size)
{
	const unsigned long frame = RTE_MIN(port->mtu_bytes + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN,
					    (uint32_t)PACKET_FRAME_MAX);

	return frame <= buffer_bytes * RTE_MIN(1UL << log2_size, (unsigned long)MEMIF_CHAIN_MAX);
}

static int memif_configure(struct memif_port *memif, bool is_server)
{
	const struct port *port = memif->first.port;
	unsigned long id = 0, buffer_bytes = 0, log2_size = 0;
	char secret[DEVARGS_TEXT_MAX] = "";

	if (devargs_get_number(&port->devargs, "id", &id) != 0 ||
	    devargs_get_number(&port->devargs, "bsize", &buffer_bytes) != 0 ||
	    devargs_get_number(&port->devargs, "rsize", &log2_size) != 0)
		return -EINVAL;
	devargs_get(&port->devargs, "secret", secret, sizeof(secret));
	if (id > UINT32_MAX)
		return memif_refuse(port, "id is a number of 32 bits");
	if (buffer_bytes == 0 || buffer_bytes > UINT16_MAX)
		return memif_refuse(port, "bsize is from 1 to 65535");
	if (log2_size > MEMIF_LOG2_MAX)
		return memif_refuse(port, "rsize is the logarithm of at most 16384 buffers: 14");
	/* The client provides the buffers, so only a client checks this. */
	if (!is_server && !memif_holds_frames(port, buffer_bytes, log2_size))
		return memif_refuse(port,
				    "the longest frame needs more buffers of bsize bytes than "
				    "the ring has, or than 64: make bsize larger, or rsize");
	if (strlen(secret) >= sizeof(memif->config.secret))
		return memif_refuse(port, "secret has at most 23 characters");
	memif->config.id = (uint32_t)id;
	memif->config.buffer_bytes = (uint16_t)buffer_bytes;
	memif->config.log2_size = (uint8_t)log2_size;
	snprintf(memif->config.secret, sizeof(memif->config.secret), "%s", secret);
	return 0;
}

static int memif_read_mac(struct port *port)
{
	struct rte_ether_addr mac;
	char text[64];

	if (!devargs_get(&port->devargs, "mac", text, sizeof(text)) ||
	    rte_ether_unformat_addr(text, &mac) != 0)
		return memif_refuse(port, "mac is of the form 02:00:00:00:00:01");
	if (!rte_is_valid_assigned_ether_addr(&mac))
		return memif_refuse(port, "mac is one interface's: not a group's, and not zero");
	memcpy(port->mac, &mac, sizeof(port->mac));
	return 0;
}

static int memif_make(struct memif_port *memif)
{
	struct port *port = memif->first.port;

	if (!memif->is_direct)
		memif->first.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	memif->conn_epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	memif->alarm_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (memif->first.epoll_fd < 0 || memif->conn_epoll_fd < 0 || memif->alarm_fd < 0)
		return -errno;
	if (!memif->is_direct)
		own_mark(memif->first.epoll_fd);
	own_mark(memif->conn_epoll_fd);
	own_mark(memif->alarm_fd);
	return port->watched ? stand_in_make(port->devargs.name, port->pool, &memif->stand_in) : 0;
}

/* Have several pairs of rings, if this port is used directly (else not all packets would pass what
 * is in front of it) by the user's program, and no capture wants to see all packets in one place.
 */
static void memif_allow_pairs(struct memif_port *memif)
{
	const struct port *port = memif->first.port;

	if (port->ops == &memif_port_ops && !port->watched && !memif->caller && !memif->is_direct)
		memif->server.queues = memif->client.config.queues = 1;
}

int memif_port_open(void *arg)
{
	struct memif_port *memif = arg;
	struct port *port = memif->first.port;
	int rc;

	rc = port_make_pool(port, "uroce_memif");
	if (rc != 0)
		return rc;
	rc = memif_make(memif);
	memif_allow_pairs(memif);
	if (rc != 0)
		log_error("port '%s' cannot be made: %s", port->devargs.name, strerror(-rc));
	if (rc == 0)
		rc = memif_conn_open(memif);
	if (rc != 0)
		return rc;
	port->dma = PORT_COPIES;
	port->no_cancel_points = !port->watched;
	port->interrupts = true;
	port->wake_fd = memif->first.epoll_fd;
	port->started = true;
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void memif_port_destroy(void *arg)
{
	struct memif_port *memif = arg;

	memif_conn_close(memif);
	if (memif->first.spares > 0)
		rte_pktmbuf_free_bulk(memif->first.spare, memif->first.spares);
	if (!memif->is_direct)
		close_fd(memif->first.epoll_fd);
	close_fd(memif->conn_epoll_fd);
	close_fd(memif->alarm_fd);
	free(memif);
}

static bool memif_copy_plain(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
	return false;
}

static struct memif_port *memif_new(struct port *port)
{
	struct memif_port *memif = calloc(1, sizeof(*memif));

	if (!memif)
		return NULL;
	memif->first.memif = memif;
	memif->first.port = port;
	memif->queues[0] = &memif->first;
	memif->queue_count = memif->engines = 1;
	/* Processes that share the port check the ICRC themselves. */
	memif->first.copy = tuning.fused_copy && !port->make_pool ? packet_copy : memif_copy_plain;
	memif->first.epoll_fd = memif->conn_epoll_fd = memif->alarm_fd = -1;
	memif->listen_fd = memif->socket_fd = -1;
	for (int i = 0; i < MEMIF_PENDING_CLIENTS_MAX; i++)
		memif->pending_clients[i].fd = -1;
	memif_server_init(&memif->server, &memif_limits_user);
	port->ops = &memif_port_ops;
	port->ops_arg = memif;
	port->link_mbps = MEMIF_MBPS;
	return memif;
}

static void memif_choose(struct memif_port *memif, bool is_server)
{
	memif->role = is_server ? &memif_server_role : &memif_client_role;
	memif->end = is_server ? &memif->server.end : &memif->client.end;
}

int memif_port_prepare(struct port *port)
{
	struct memif_port *memif;
	bool is_server;
	int rc;

	rc = memif_prepare(&port->devargs);
	if (rc != 0)
		return rc;
	memif = memif_new(port);
	if (!memif)
		return -ENOMEM;
	if (port->mtu_bytes == 0)
		port->mtu_bytes = MEMIF_MTU;
	port_size_buffers(port, 0, PORT_MBUFS_SOFTWARE);
	is_server = memif_is_server(&port->devargs);
	memif_choose(memif, is_server);
	port->link_needs_server = !is_server;
	port->opens_files = !is_server;
	rc = memif_configure(memif, is_server);
	if (rc == 0)
		rc = memif_read_mac(port);
	memif_client_init(&memif->client, &memif->config);
	return rc;
}

/* Prepare a port that was not described by device arguments. The other end rings it by a socket.
 * NULL: no memory. */
static struct memif_port *memif_new_unnamed(struct port *port, bool is_server, uint8_t log2_size,
					    const uint8_t mac[6], uint32_t mtu_bytes)
{
	struct memif_port *memif;

	port_init(port, mtu_bytes);
	memif = memif_new(port);
	if (!memif)
		return NULL;
	memif_choose(memif, is_server);
	memif->config.buffer_bytes = MEMIF_BUFFER_BYTES;
	memif->config.log2_size = log2_size;
	memif->config.socket_to_client = true;
	port_size_buffers(port, 0, PORT_MBUFS_SOFTWARE);
	port->devargs.bus = DEVARGS_VDEV;
	snprintf(port->devargs.name, sizeof(port->devargs.name), MEMIF_DRIVER "0");
	memcpy(port->mac, mac, sizeof(port->mac));
	return memif;
}

int memif_prepare_caller(struct port *port, const struct memif_caller *caller, void *arg,
			 const uint8_t mac[6], uint32_t mtu_bytes)
{
	struct memif_port *memif = memif_new_unnamed(port, false, MEMIF_RING_LOG2, mac, mtu_bytes);

	if (!memif)
		return -ENOMEM;
	memif_client_init(&memif->client, &memif->config);
	memif->caller = caller;
	memif->caller_arg = arg;
	port->link_needs_server = true;
	return 0;
}

int memif_prepare_direct(struct port *port, const struct memif_direct_config *config)
{
	struct memif_port *memif = memif_new_unnamed(port, config->is_server, MEMIF_DIRECT_LOG2,
						     config->mac, config->mtu_bytes);

	if (!memif)
		return -ENOMEM;
	memif->role = config->is_server ? &memif_direct_server_role : &memif_direct_client_role;
	memif->config.socket_to_server = true;
	memif_client_init(&memif->client, &memif->config);
	memif_server_init(&memif->server, &memif_limits_direct);
	memif_end_take_doorbell(memif->end, config->doorbell_fd);
	memif->is_direct = true;
	memif->socket_fd = config->socket_fd;
	memif->first.epoll_fd = config->wake_epoll_fd;
	/* Log no complaint: the other end could cause one with each connection. */
	memif->complaints = UINT32_MAX;
	memif->refused = true;
	return 0;
}
