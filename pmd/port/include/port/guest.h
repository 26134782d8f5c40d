/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that is the application's, who runs DPDK itself: we are a guest on it, with queues of our
 * own or without. */
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
	uint16_t rx_queue;	  /* or GUEST_NO_QUEUE: all frames come by guest_give */
	uint16_t tx_queue;	  /* or GUEST_NO_QUEUE: frames are fetched by guest_fetch */
	struct rte_mempool *pool; /* or NULL: one is made */
	bool takes_nothing;	  /* frames do not come this way at all */
	bool alone;		  /* nobody gives frames beside those of rx_queue */

	/* set by guest_open */
	struct rte_ring *in, *out;
	struct flow flow; /* that bring RoCE to rx_queue */
	int wake_fd;
	bool in_first;	 /* whose turn it is to be looked at first */
	uint32_t sleeps; /* atomic: who gives must wake it */
};

/** Make a port of it that is as after port_open; `port->make_pool` is called where it is set. Not
 * MT-safe. 0 or -errno (logged). */
int guest_open(struct guest *guest, struct port *port);

/** Have the port bring RoCE for these addresses to the guest's queue, as far as it has flow rules.
 * Not MT-safe. */
void guest_steer(struct guest *guest, const struct addresses *own);

/** Give received frames; returns how many there was room for. MT-safe. */
uint16_t guest_give(struct guest *guest, struct rte_mbuf **mbufs, uint16_t n);

/** Fetch frames to be sent. One thread at a time. Returns how many. */
uint16_t guest_fetch(struct guest *guest, struct rte_mbuf **mbufs, uint16_t n);

/** Let go of what guest_open made, but for the pool. Nobody calls any of these any more. */
void guest_close_rings(struct guest *guest);

#endif
