/* SPDX-License-Identifier: BSD-3-Clause */
/* A DPDK port: any device with an ethdev driver. */
#ifndef ETHDEV_H
#define ETHDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "port/flow.h"
#include "port/port.h"

#define ETHDEV_QUEUES_MAX 16

struct ethdev;

/* A pair of a receive and a transmit queue: those with the number of the engine that uses them. */
struct ethdev_queue {
	struct ethdev *dev;
	struct port *port; /* its engine's */
	uint16_t number;
};

/* The private data of an ethdev port (port->ops_arg). */
struct ethdev {
	struct port *port;
	uint16_t id;	  /* DPDK's */
	char ifname[16];  /* the kernel's interface of net_af_packet; else "" */
	bool is_hardware; /* its rings keep buffers of the pool, and its driver may change the sizes
			     that we ask for */
	bool is_silent;	  /* net_null, which receives nothing */
	bool link_needs_peer; /* vhost, whose other end may come later */

	/* set by open */
	uint16_t queues;	   /* in each direction */
	struct ethdev_queue first; /* the port's own queues */
	/* of each receive queue: the descriptor of its interrupt or its socket; -1: none */
	int wake_fds[ETHDEV_QUEUES_MAX];
	bool arms;	  /* an interrupt must be armed before it is reported */
	struct flow flow; /* rules that bring each engine's packets to its queue */

	uint32_t further; /* further queues that are open; one thread opens and closes them */

	/* engine's thread or lock */
	bool had_peer;
	bool removed;	/* the device has gone, or the kernel wants it back; atomic */
	bool given_up;	/* no engine may use its queue; changed while all engines are stopped */
	bool connected; /* the last answer of `connected`, for the other engines; atomic */
};

/** Make `port` a DPDK port. Its device arguments have been parsed. Call before EAL starts. Not
 * MT-safe. 0 or -errno (logged). */
int ethdev_prepare(struct port *port);

/** Let a queue's port sleep on the queue's descriptor, if it has one. */
void ethdev_queue_listen(const struct ethdev_queue *queue);

/** Open the queues of a further engine (port_ops.open_queue); `arg` is a struct ethdev that has
 * started. */
int ethdev_queue_open(void *arg, uint32_t number, uint32_t count, struct port *queue);

#endif
