/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares the owner's port with the kernel. The other end of a net_tap is a kernel interface. It
 * gets frames that are not RoCE, and its own frames go out through the port. The kernel answers
 * ARP, neighbour discovery and pings there. The link has the addresses of this interface.
 */
#include "kernel.h"

#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "base/log.h"
#include "config/settings.h"
#include "netdev/netdev.h"
#include "port/ethdev_plan.h"
#include "server.h"

/* The kernel's share of the room in the port. The rest is for the processes. */
#define KERNEL_BURST (SERVER_BURST / 2)

#define LEARN_BYTES 256 /* ARP frames and neighbour advertisements are shorter */

/* Use the port's pool: buffers of this interface come from the port and go to the port. */
static int kernel_share_pool(struct port *kernel)
{
	const struct server *server = kernel->make_pool_arg;

	kernel->pool = server->uplink.link.port.pool;
	return 0;
}

static int kernel_open_port(struct server *server, const char *name)
{
	const struct port *port = &server->uplink.link.port;
	struct port *kernel = &server->kernel.port;
	char mac[RTE_ETHER_ADDR_FMT_SIZE], text[128];
	int rc;

	rte_ether_format_addr(mac, sizeof(mac), (const struct rte_ether_addr *)port->mac);
	snprintf(text, sizeof(text), "net_tap_kernel%u,iface=%s,mac=%s", server->number, name, mac);
	/* The driver of the interface carries no larger MTU. */
	rc = port_prepare(kernel, text,
			  RTE_MIN(port->mtu_bytes, (uint32_t)ETHDEV_PLAN_MTU_DEFAULT));
	if (rc != 0)
		return rc;
	kernel->mbuf_bytes = port->mbuf_bytes;
	kernel->make_pool = kernel_share_pool;
	kernel->make_pool_arg = server;
	rc = port_open(kernel);
	/* The kernel must not send what the port does not carry. */
	if (rc == 0)
		rc = netdev_limit_mtu(name, port->mtu_bytes);
	if (rc != 0)
		log_error("no interface '%s' with the port's MTU of %u: %s", name, port->mtu_bytes,
			  strerror(-rc));
	return rc;
}

int kernel_open(struct server *server, const struct settings *settings)
{
	int rc;

	if (settings->kernel[0] == '\0')
		return 0;
	rc = kernel_open_port(server, settings->kernel);
	if (rc != 0)
		return rc;
	server->kernel.is_open = true;
	return link_use_interface(&server->uplink.link, settings->kernel);
}

/* Learn from answers to what processes asked for. No reply is sent here. */
static void kernel_learn(struct server *server, const struct rte_mbuf *mbuf)
{
	uint8_t frame[LEARN_BYTES], reply[LINK_REPLY_MAX];

	if (mbuf->data_len > sizeof(frame))
		return;
	/* Copy the frame: link_input removes a VLAN tag in place, and the kernel needs the tag. */
	memcpy(frame, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len);
	link_input(&server->uplink.link, frame, mbuf->data_len, server->now_ns, reply);
}

static void kernel_flush(struct server *server)
{
	const uint32_t count = server->kernel.count;
	struct rte_mbuf **frames = server->kernel.frames;
	uint16_t taken;

	for (uint32_t done = 0; done < count; done++) {
		taken = port_tx_burst(&server->kernel.port, frames + done,
				      (uint16_t)(count - done));
		server->totals.kernel_rx_packets += taken;
		done += taken;
		/* The driver stops at a frame that it does not take, for example one that is too
		 * long. */
		if (done < count) {
			rte_pktmbuf_free(frames[done]);
			server->totals.kernel_dropped++;
		}
	}
	server->kernel.count = 0;
}

void kernel_give(struct server *server, struct rte_mbuf *mbuf)
{
	kernel_learn(server, mbuf);
	if (server->kernel.count == SERVER_BURST)
		kernel_flush(server);
	server->kernel.frames[server->kernel.count++] = mbuf;
}

unsigned int kernel_poll(struct server *server)
{
	struct rte_mbuf *mbufs[KERNEL_BURST];
	uint32_t room;
	uint16_t n;

	if (!server->kernel.is_open)
		return 0;
	kernel_flush(server);
	/* Frames for which the port has no room stay in the interface's queue. The kernel knows
	 * of frames that do not fit there. */
	room = SERVER_BURST - server->uplink.pending_count;
	n = port_rx_burst(&server->kernel.port, mbufs,
			  (uint16_t)RTE_MIN(room, (uint32_t)KERNEL_BURST));
	memcpy(server->uplink.pending + server->uplink.pending_count, mbufs, n * sizeof(mbufs[0]));
	server->uplink.pending_count += n;
	server->totals.kernel_tx_packets += n;
	return n;
}

void kernel_close(struct server *server)
{
	if (!server->kernel.is_open)
		return;
	kernel_flush(server);
	port_close(&server->kernel.port);
	port_destroy(&server->kernel.port);
}
