/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of an application that runs DPDK itself. We are a guest on the port, with or without
 * queues of our own. */
#ifndef PORT_GUEST_H
#define PORT_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "port/flow.h"
#include "wire/build.h"

struct addresses;
struct port;
struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

#define GUEST_NO_QUEUE	 UINT16_MAX
#define GUEST_MBUF_BYTES RTE_ALIGN_CEIL((uint32_t)PACKET_FRAME_MAX, (uint32_t)RTE_CACHE_LINE_SIZE)

struct guest {
	uint16_t port_id;
	uint16_t rx_queue;	  /* or GUEST_NO_QUEUE: all frames come through guest_give */
	uint16_t tx_queue;	  /* or GUEST_NO_QUEUE: frames leave through guest_fetch */
	struct rte_mempool *pool; /* or NULL: guest_open makes one */
	bool starts_later;	  /* the application may start the port after guest_open */
	bool takes_nothing;	  /* no frames are received from this port */
	bool alone;		  /* frames come only from rx_queue, none from guest_give */

	/* set by guest_open */
	struct rte_ring *in, *out;
	struct rte_mempool *own_pool; /* NULL: the pool is somebody else's */
	struct flow flow;	      /* rules that direct RoCE to rx_queue */
	int wake_fd;
	bool in_first;	 /* the next burst looks at `in` first */
	uint32_t sleeps; /* atomic: guest_give must wake the engine */
};

/** Make an open port of it, as port_open does. Calls `port->make_pool` if that is set. Not MT-safe.
 * 0; -EINVAL: the port is not started, or has no such queue; or another -errno (logged). In any
 * case port_destroy frees what this has made. */
int guest_open(struct guest *guest, struct port *port);

/** Direct RoCE for these addresses to the guest's queue, if the port has flow rules. Not MT-safe.
 */
void guest_steer(struct guest *guest, const struct addresses *own);

/** Give received frames to the guest. Returns how many had room. MT-safe. */
uint16_t guest_give(struct guest *guest, struct rte_mbuf **mbufs, uint16_t n);

/** Fetch frames that the guest sends. One thread at a time. Returns how many. */
uint16_t guest_fetch(struct guest *guest, struct rte_mbuf **mbufs, uint16_t n);

#endif
