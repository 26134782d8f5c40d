/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of networks: a fat tree of equal switches, leaves and spines, or one switch. */
#ifndef NET_TOPOLOGY_H
#define NET_TOPOLOGY_H

#include <stdint.h>

#include "fabric.h"
#include "switch.h"

enum topology_shape {
	TOPOLOGY_STAR,	    /* one switch */
	TOPOLOGY_FAT_TREE,  /* three layers of switches with `arity` ports (Al-Fares 2008) */
	TOPOLOGY_LEAF_SPINE /* `leaves` with `leaf_hosts` hosts and a link to each of `spines` */
};

struct topology_attr {
	enum topology_shape shape;
	uint32_t hosts;	     /* of a star */
	uint32_t arity;	     /* of a fat tree; even */
	uint32_t leaves;     /* of leaves and spines */
	uint32_t spines;     /* the same */
	uint32_t leaf_hosts; /* the same */
	uint64_t mbps;	     /* of each link */
	uint64_t latency_ns; /* of each link */
	struct switch_attr switches;
	uint64_t seed;
};

struct topology {
	struct topology_attr attr;
	struct fabric *fabric;
	uint32_t hosts;
	uint32_t switches;
	struct net_switch *sw;	  /* owned */
	struct port **host_ports; /* owned; the ports of the hosts, which are owned by these */
};

/** Build the switches, and link them with each other and with the hosts' ports: host_ports has one
 * for each of topology_hosts(). Exits if there is no memory. */
void topology_init(struct topology *topology, struct fabric *fabric,
		   const struct topology_attr *attr, struct port **host_ports);
void topology_fini(struct topology *topology);

uint32_t topology_hosts(const struct topology_attr *attr);

/** Return the number of links between two hosts. */
uint32_t topology_links(const struct topology_attr *attr, uint32_t a, uint32_t b);

#endif
