/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several pairs of rings in one connection. Both ends may have several engines. Each engine of one
 * end has a pair of rings with each engine of the other end, so each ring has one thread that fills
 * it and one that empties it. A sender chooses the pair by the engine of the destination queue
 * pair.
 *
 * Pair number i belongs to engine (i % server's engines) of the server and to engine (i / server's
 * engines) of the client. In the first pair are all packets that are for no engine in particular.
 *
 * Each end tells the number of its engines in its name (`memif_hello.name`, `memif_init.name`),
 * which other programs only display. The client chooses the number of pairs. A client that is not
 * uroce may make a ring for each engine of ours, and its packets may be for any of them.
 */
#ifndef MEMIF_PAIRS_H
#define MEMIF_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "memif/protocol.h"

#define MEMIF_QUEUES_MAX 8				       /* engines of one end */
#define MEMIF_PAIRS_MAX	 (MEMIF_QUEUES_MAX * MEMIF_QUEUES_MAX) /* of a connection */

/** Write our name. `queues`: our engines; 0: we want one pair of rings, whoever the other end is.
 */
void memif_pairs_write_name(char name[MEMIF_NAME_LEN], uint32_t queues);

/** Return the number of engines that a name tells, at most MEMIF_QUEUES_MAX; 0: it tells none,
 * because the other end is another program, an older uroce, or wants one pair of rings. The name is
 * not trusted. */
uint32_t memif_pairs_read_name(const char name[MEMIF_NAME_LEN]);

/** Return the client's engine of a pair. `server_queues` is the number of the server's engines. */
static inline uint32_t memif_pairs_client(uint32_t pair, uint32_t server_queues)
{
	return pair / server_queues;
}

/** Return the server's engine of a pair. */
static inline uint32_t memif_pairs_server(uint32_t pair, uint32_t server_queues)
{
	return pair % server_queues;
}

#endif
