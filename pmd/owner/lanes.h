/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes between attached processes: the owner makes and ends them. */
#ifndef OWNER_LANES_H
#define OWNER_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "owner/serve.h"

struct server;

#define LANES_MAX 128 /* their memory is not charged to the processes that use it */

struct lanes {
	LIST_HEAD(, server_lane) list;
	uint32_t count;
	uint32_t number;  /* the last number that a lane got */
	bool spares_icrc; /* packets between processes need no ICRC */
	bool passes_all;  /* no lanes: all packets pass through the owner */
	/* packets counted by lanes_note, from process (first index) to process; wraps */
	uint16_t handed[SERVE_SLOTS_MAX][SERVE_SLOTS_MAX];
};

/** Note a packet from a process to another, and make a lane between them if they have none.
 * Isolated processes get a direct memif instead (direct.h). */
void lanes_note(struct server *server, uint16_t from, uint16_t to);

/** Forget the packets from and to a process that the owner stops serving. */
void lanes_forget(struct server *server, uint16_t number);

/** Close the lanes of a process that the owner stops serving. */
void lanes_close(struct server *server, uint16_t number);

/** Return the number of packets that went through all open lanes. It comes from indices that
 * processes write, and is not checked. */
uint64_t lanes_packets(const struct server *server);

void lanes_destroy(struct server *server);

#endif
