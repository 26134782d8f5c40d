/* SPDX-License-Identifier: BSD-3-Clause */
/* One DPDK port with one receive and one transmit queue, and the pool its packets live in. */
#ifndef LINK_PORT_H
#define LINK_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "link/devargs.h"

enum port_driver {
	PORT_GENERIC,
	PORT_MEMIF,
	PORT_AF_PACKET,
};

struct port {
	/* set by port_prepare */
	struct devargs devargs;
	enum port_driver driver;
	char ifname[16]; /* of af_packet */
	bool is_client;	 /* memif: the other end has to be there first */
	bool shared;	 /* af_packet: the kernel goes on using the interface */
	uint32_t
		mtu_bytes; /* largest IP packet; 0 until port_open where the port itself must say */
	uint32_t mbuf_bytes; /* room of one packet buffer, without headroom */
	uint32_t mbufs;

	/* set by port_open */
	uint16_t id;
	struct rte_mempool *pool;
	uint8_t mac[6];
	bool mac_is_random; /* made up by the driver at each start */
	uint64_t link_mbps;
	bool checks_sums; /* the port verifies IPv4 and UDP checksums */
	int wake_fd;	  /* readable when frames wait, or -1 */
	int listen_fd;	  /* memif server: readable when a client comes, or -1 */

	/* engine's thread or lock */
	bool started; /* a memif client starts when its server is there */
	bool had_peer;
};

/**
 * Understand what the user wants for a port, and add what its driver needs. Before EAL starts. Not
 * MT-safe.
 *
 * @param text
 *   DPDK device arguments.
 * @param mtu_bytes
 *   What the user says the port carries, or 0.
 * @return
 *   0 or -errno (logged).
 */
int port_prepare(struct port *port, const char *text, uint32_t mtu_bytes);

/** Bytes of DPDK memory that the port will want. */
size_t port_memory_bytes(const struct port *port);

/** Probe, configure and start the port. After EAL's start. Not MT-safe. 0 or -errno (logged). */
int port_open(struct port *port);

/** Stop and close: driver's sockets and rings are gone afterwards. Engine's lock. */
void port_close(struct port *port);

/** Start a port that port_open made and could not start, or that was stopped. Engine's lock. 0 or
 * -errno. */
int port_start(struct port *port);

/**
 * Whether the link is up. Engine's lock. A memif wire counts as up until its first peer has come
 * and gone: programs refuse a port that is down, and the first of two to start cannot have a peer.
 */
bool port_link_up(struct port *port);

/** Whether packets given to the port now reach somebody. Engine's lock. */
bool port_connected(const struct port *port);

/** Up to `n` received packets. Engine's thread. */
static inline uint16_t port_rx_burst(const struct port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	return port->started ? rte_eth_rx_burst(port->id, 0, mbufs, n) : 0;
}

/** Send; returns how many the port took, which are then its own. Engine's thread. */
static inline uint16_t port_tx_burst(const struct port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	return port->started ? rte_eth_tx_burst(port->id, 0, mbufs, n) : 0;
}

#endif
