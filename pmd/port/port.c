/* SPDX-License-Identifier: BSD-3-Clause */
/* Code common to all kinds of ports. */
#include "port/port.h"

#include <string.h>

#include "port/port_eal.h"
#include "wire/build.h"

#define MBUF_OVERHEAD  512 /* mbuf, mempool's header and padding, cache lines */
#define MBUF_BYTES_MAX ((uint32_t)UINT16_MAX - RTE_PKTMBUF_HEADROOM)

void port_init(struct port *port, uint32_t mtu_bytes)
{
	port->wake_fd = -1;
	port->numa_node = SOCKET_ID_ANY;
	port->mtu_bytes = mtu_bytes;
}

void port_size_buffers(struct port *port, uint32_t frame_bytes, uint32_t mbufs)
{
	port->mbuf_bytes = RTE_ALIGN_CEIL(RTE_MAX(frame_bytes, (uint32_t)PACKET_FRAME_MAX),
					  (uint32_t)RTE_CACHE_LINE_SIZE);
	/* No mbuf is larger. A driver spreads longer frames over several buffers, or refuses. */
	port->mbuf_bytes = RTE_MIN(port->mbuf_bytes, MBUF_BYTES_MAX);
	port->mbufs = mbufs;
}

size_t port_memory_bytes(const struct port *port)
{
	return (size_t)port->mbufs * (port->mbuf_bytes + RTE_PKTMBUF_HEADROOM + MBUF_OVERHEAD);
}

int port_make_pool(struct port *port, const char *name)
{
	return port->make_pool ? port->make_pool(port) : port->eal->make_pool(port, name);
}

uint32_t port_queues(const struct port *port)
{
	return port->ops->open_queue ? RTE_MAX(port->queues, 1u) : 1;
}

void port_fill_queue(const struct port *main, struct port *queue)
{
	memset(queue, 0, sizeof(*queue));
	port_init(queue, main->mtu_bytes);
	queue->mbuf_bytes = main->mbuf_bytes;
	queue->mbufs = PORT_MBUFS_SOFTWARE;
	queue->make_pool = main->make_pool;
	queue->make_pool_arg = main->make_pool_arg;
	queue->through_kernel = main->through_kernel;
	queue->kernel_beyond = main->kernel_beyond;
	queue->no_cancel_points = main->no_cancel_points;
	queue->lcores_are_others = main->lcores_are_others;
	queue->passed_on = main->passed_on;
	queue->tsc_hz = main->tsc_hz;
	queue->spares_icrc = main->spares_icrc;
	queue->own_qpn_first = main->own_qpn_first;
	queue->own_qpn_count = main->own_qpn_count;
	queue->dma = PORT_COPIES;
	queue->numa_node = main->numa_node;
	queue->pool = main->pool;
	queue->mac_is_random = main->mac_is_random;
	queue->link_mbps = main->link_mbps;
	queue->sums_udp = main->sums_udp;
	memcpy(queue->mac, main->mac, sizeof(queue->mac));
	queue->started = true;
}

int port_open_queue(const struct port *main, uint32_t number, uint32_t count, struct port *queue)
{
	port_fill_queue(main, queue);
	return main->ops->open_queue(main->ops_arg, number, count, queue);
}

int port_open(struct port *port)
{
	return port->ops->open(port->ops_arg);
}

void port_close(struct port *port)
{
	port->started = false;
	port->ops->close(port->ops_arg);
}

void port_destroy(struct port *port)
{
	if (port->ops && port->ops->destroy)
		port->ops->destroy(port->ops_arg);
	port->ops = NULL;
	port->ops_arg = NULL;
}

bool port_lost(const struct port *port)
{
	return port->ops->lost && port->ops->lost(port->ops_arg);
}

void port_lose(struct port *port)
{
	port->started = false;
	if (port->ops->lose)
		port->ops->lose(port->ops_arg);
}

bool port_connected(const struct port *port)
{
	return port->started && port->ops->connected(port->ops_arg);
}

bool port_link_up(struct port *port, bool connected)
{
	return port->ops->link_up ? port->ops->link_up(port->ops_arg, connected) : connected;
}
