/* SPDX-License-Identifier: BSD-3-Clause */
/* Code common to all kinds of ports. */
#include "port/port.h"

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
	return port->ops->lost(port->ops_arg);
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
	return port->ops->link_up(port->ops_arg, connected);
}
