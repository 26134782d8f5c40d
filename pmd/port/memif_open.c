/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and destroys a memif port: its descriptors and packet buffers. Prepares those that no
 * device arguments describe. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "base/tuning.h"
#include "memif/socket.h"
#include "memif_port.h"
#include "port/drivers.h"
#include "port/port_eal.h"
#include "wire/packet.h"

/* Make another program's text printable. */
static void printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text != '\0'; text++) {
		if (!isprint((unsigned char)*text))
			*text = '?';
	}
}

static void client_was_refused(struct memif_port *memif, const struct memif_message *message)
{
	char reason[sizeof(message->disconnect.reason)];

	if (memif->had_peer || memif->refused)
		return;
	memif->refused = true;
	memcpy(reason, message->disconnect.reason, sizeof(reason));
	printable(reason, sizeof(reason));
	log_warn("the server of memif socket %s refuses us: %s", memif->path, reason);
}

static int client_hear(struct memif_port *memif, const struct memif_message *message, int fd)
{
	struct memif_message answer;
	int answer_fd, rc;

	/* Servers send no descriptors. */
	memif_socket_discard(fd);
	if (fd >= 0)
		return -EPROTO;
	rc = memif_client_take(&memif->client, message, &answer, &answer_fd);
	if (rc == 1)
		return memif_socket_send_with(memif->socket_fd, &answer, sizeof(answer), answer_fd);
	if (rc == -ECONNRESET && message->type == MEMIF_DISCONNECT)
		client_was_refused(memif, message);
	if (rc == 0 && message->type == MEMIF_CONNECTED)
		rc = memif_conn_established(memif);
	return rc;
}

/* Return a connected socket, or -errno. */
static int client_connect(const struct memif_port *memif)
{
	struct sockaddr_un addr;
	const socklen_t len = memif_address(memif->path, memif->is_abstract, &addr);
	const int fd = memif_conn_socket();
	int rc;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, len) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Connect to the server, or ask the caller for connected sockets. An error is not final: `look` is
 * called again (client_retries). */
static void client_call(struct memif_port *memif)
{
	int fd, doorbell_fd = -1;

	/* Do not connect before the previous connection's descriptors are closed. */
	if (memif_socket_is_stuck())
		return;
	fd = memif->caller ? memif->caller->call(memif->caller_arg, &doorbell_fd)
			   : client_connect(memif);
	if (fd < 0)
		return;
	memif_end_take_doorbell(memif->end, doorbell_fd);
	memif->socket_fd = fd;
	if (memif_conn_watch(memif, fd) != 0)
		memif_conn_hang_up(memif, "No memory");
}

static void client_look(struct memif_port *memif)
{
	if (memif->socket_fd < 0 && !memif->given_up)
		client_call(memif);
	if (memif->socket_fd >= 0)
		memif_conn_hear(memif);
}

static bool client_retries(const struct memif_port *memif)
{
	return memif->socket_fd < 0 && !memif->given_up;
}

static void client_take_back(struct memif_port *memif)
{
	memif_client_take_back(&memif->client);
}

static void client_reset(struct memif_port *memif)
{
	memif_client_fini(&memif->client);
}

const struct memif_role memif_client_role = {
	.look = client_look,
	.retries = client_retries,
	.hear = client_hear,
	.take_back = client_take_back,
	.reset = client_reset,
	.not_permitted = MEMIF_NO_ROOM,
};

#define MEMIF_MBPS 10000 /* as DPDK's driver says */

static int memif_make(struct memif_port *memif)
{
	struct port *port = memif->first.port;

	memif->first.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	memif->conn_epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	memif->alarm_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (memif->first.epoll_fd < 0 || memif->conn_epoll_fd < 0 || memif->alarm_fd < 0)
		return -errno;
	own_mark(memif->first.epoll_fd);
	own_mark(memif->conn_epoll_fd);
	own_mark(memif->alarm_fd);
	return port->watched
		       ? port->eal->stand_in_make(port->devargs.name, port->pool, &memif->stand_in)
		       : 0;
}

/* Have several pairs of rings, if this port is used directly (else not all packets would pass what
 * is in front of it) by the user's program, and no capture wants to see all packets in one place.
 */
static void memif_allow_pairs(struct memif_port *memif)
{
	struct port *port = memif->first.port;

	if (port->ops != &memif_port_ops || port->watched || memif->caller)
		return;
	port->queues = MEMIF_QUEUES_MAX;
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

struct memif_port *memif_new(struct port *port)
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

void memif_choose(struct memif_port *memif, bool is_server)
{
	memif->role = is_server ? &memif_server_role : &memif_client_role;
	memif->end = is_server ? &memif->server.end : &memif->client.end;
}

/* The port is not described by device arguments. The other end rings it by a socket. */
int memif_prepare_caller(struct port *port, const struct memif_caller *caller, void *arg,
			 const uint8_t mac[6], uint32_t mtu_bytes)
{
	struct memif_port *memif;

	port_init(port, mtu_bytes);
	memif = memif_new(port);
	if (!memif)
		return -ENOMEM;
	memif_choose(memif, false);
	memif->config.buffer_bytes = MEMIF_BUFFER_BYTES;
	memif->config.log2_size = MEMIF_RING_LOG2;
	memif->config.socket_to_client = true;
	port_size_buffers(port, 0, PORT_MBUFS_SOFTWARE);
	port->devargs.bus = DEVARGS_VDEV;
	snprintf(port->devargs.name, sizeof(port->devargs.name), MEMIF_DRIVER "0");
	memcpy(port->mac, mac, sizeof(port->mac));
	memif_client_init(&memif->client, &memif->config);
	memif->caller = caller;
	memif->caller_arg = arg;
	port->link_needs_server = true;
	return 0;
}
