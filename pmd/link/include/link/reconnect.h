/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a memif wire while the program runs: waiting for a server, losing a peer, meeting the
 * next. */
#ifndef LINK_RECONNECT_H
#define LINK_RECONNECT_H

#include <stdint.h>

#include "link/footprint.h"
#include "link/port.h"

/* Interrupt thread, engine's lock. */
struct reconnect {
	struct port *port;
	struct fd_list before; /* descriptors as they were when the round began */
	uint64_t retry_at_ns;
	int probe_fd; /* of a client: asks the server whether it is awake; -1: not now */
	uint64_t making_until_ns; /* a connection is being made: several rounds, each a message
				     further */
};

void reconnect_init(struct reconnect *reconnect, struct port *port);

/** Before EAL's interrupt thread goes its round. */
void reconnect_round_begin(struct reconnect *reconnect, uint64_t now_ns);

/**
 * After it: what the driver opened is closed on exec; a client without server tries again.
 *
 * @return
 *   Nanoseconds until the next round is due.
 */
uint64_t reconnect_round_end(struct reconnect *reconnect, uint64_t now_ns);

#endif
