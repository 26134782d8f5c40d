/* SPDX-License-Identifier: BSD-3-Clause */
/* A DPDK port: any device with an ethdev driver. */
#ifndef ETHDEV_H
#define ETHDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

/* The private data of an ethdev port (port->ops_arg). */
struct ethdev {
	struct port *port;
	uint16_t id;	  /* DPDK's */
	char ifname[16];  /* the kernel's interface of net_af_packet; else "" */
	bool is_hardware; /* its rings keep buffers of the pool, and its driver may change the sizes
			     that we ask for */
	bool link_needs_peer; /* vhost, whose other end may come later */

	/* engine's thread or lock */
	bool had_peer;
	bool removed; /* the device has gone, or the kernel wants it back; atomic */
};

/** Make `port` a DPDK port. Its device arguments have been parsed. Call before EAL starts. Not
 * MT-safe. 0 or -errno (logged). */
int ethdev_prepare(struct port *port);

#endif
