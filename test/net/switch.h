/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with output queues in a shared buffer. */
#ifndef NET_SWITCH_H
#define NET_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "../sim/rng.h"
#include "fabric.h"

struct switch_attr {
	uint32_t port_buffer_bytes; /* buffer a port; the switch has the sum of them */
	/* 0: a port's input may occupy what it brings. Else the buffer is shared, and a queue may
	 * hold this share, in percent, of what is free (dynamic threshold). */
	uint32_t alpha_percent;
	bool pfc;		 /* pause the peer before its input would be dropped */
	uint32_t headroom_bytes; /* with pfc: what may still come in after a pause */
	/* ECN marking by the length of the queue: none up to kmin, pmax at kmax, all beyond it. */
	uint32_t kmin_bytes; /* kmax_bytes 0: no marking */
	uint32_t kmax_bytes;
	uint32_t pmax_percent;
	uint32_t lose_every; /* drop every n-th packet that enters the network here; 0: none */
	uint32_t loss_ppm;   /* drop such packets at random */
};

/* The ports of equal cost towards a host: `count` ports from `first` on. */
struct route {
	uint16_t first;
	uint16_t count;
};

struct net_switch {
	const struct switch_attr *attr;
	struct fabric *fabric;
	struct rng rng;
	uint32_t number;
	uint32_t ports;
	uint32_t host_ports; /* the first ones lead to hosts */
	struct port *port;   /* owned */
	struct route *route; /* owned; by host */
	uint32_t used_bytes;
	uint64_t entered; /* packets from hosts */
	uint64_t lost;	  /* of them, by lose_every and loss_ppm */
};

/** Set up a switch with so many ports, which fabric_link then connects, and routes to all hosts. */
void switch_init(struct net_switch *sw, struct fabric *fabric, const struct switch_attr *attr,
		 uint32_t number, uint32_t ports, uint32_t hosts, uint64_t seed);
/** Call after each fabric_link of one of its ports. */
void switch_own_port(struct net_switch *sw, uint32_t port);
void switch_fini(struct net_switch *sw);

#endif
