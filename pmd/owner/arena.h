/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of all packet buffers, and who holds which. */
#ifndef OWNER_ARENA_H
#define OWNER_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "share/ledger.h"

struct port;
struct rte_mbuf;
struct server;

struct arena {
	int fd;
	uint8_t *memory;
	size_t bytes;		 /* whole pages of its kind */
	uint32_t stride;	 /* from buffer to buffer */
	uint32_t held_max;	 /* buffers that a process may hold */
	struct rte_mbuf **mbufs; /* by number of the buffer */
	struct ledger ledger;
};

/** How many buffers there will be. */
uint32_t arena_buffers(const struct server *server);

/** Makes it, and the port's pool of it: port.make_pool. */
int arena_make_pool(struct port *port);

void arena_destroy(struct server *server);

#endif
