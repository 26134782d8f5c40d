/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of DPDK's: whatever an ethdev driver drives. */
#ifndef ETHDEV_H
#define ETHDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

/* The port's own state: its ops_arg. */
struct ethdev {
	struct port *port;
	uint16_t id;	     /* DPDK's */
	char ifname[16];     /* of net_af_packet; else "" */
	bool is_hardware;    /* its rings hold buffers, and its driver may change what we ask for */
	bool waits_for_peer; /* vhost, whose other end may come later */

	/* engine's thread or lock */
	bool had_peer;
	bool removed; /* the device is no more, or wanted back; atomic */
};

/** Make a port one of DPDK's, whose arguments are understood. Before EAL starts. Not MT-safe. 0 or
 * -errno (logged). */
int ethdev_prepare(struct port *port);

#endif
