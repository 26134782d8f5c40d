/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that packets are built in, and that does what a test tells it. */
#ifndef PLACES_H
#define PLACES_H

#include <stdint.h>

#include "fake_device.h"

#define PLACES 4 /* in a row, used again and again */

struct places {
	uint8_t frames[PLACES][2048];
	uint32_t room; /* places that are free */
	uint32_t placed, pushed, burst;
	uint32_t expected;    /* the most packets that one was to be sent after */
	uint32_t offers;      /* places for short packets that may be given in a row; 0: none */
	bool suits;	      /* packets to others on this host may go there */
	uint32_t longest;     /* that fits into a place; 0: all */
	uint32_t takes;	      /* of a burst at most; 0: all */
	uint32_t drops;	      /* of the next burst, for they are too long */
	unsigned int refuses; /* how many packets the next burst drops as an interface does */
	uint32_t loses;	      /* how many it drops, as a port without a connection does */
	uint32_t waiting;     /* to be received */
	uint32_t rx_max;      /* of a burst at most */
	uint32_t rx_drops;    /* that are dropped at each */
};

extern struct places places;

#define PLACES_PAYLOAD 1024 /* less is not built in a place */

/**
 * Give the rig's engine, until places_end, this port with PLACES free places. Its queue pair sends
 * this much payload to another host.
 */
void places_begin(void);
void places_end(void);

#endif
