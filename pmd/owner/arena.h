/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of all packet buffers, and the holder of each. */
#ifndef OWNER_ARENA_H
#define OWNER_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "share/ownership.h"

struct port;
struct rte_mbuf;
struct rte_mempool;
struct server;

struct arena {
	int fd;
	uint8_t *memory;
	size_t bytes;	    /* a multiple of its page size */
	uint32_t stride;    /* distance between buffers, in bytes */
	uint32_t held_max;  /* buffers that a process with a full share may hold */
	uint32_t held_back; /* packets that a bad network in front of the port holds */
	/* by buffer number; without EAL NULL for those that were never used */
	struct rte_mbuf **mbufs;
	bool without_eal;		/* set before arena_make_pool */
	struct rte_mempool *plain_pool; /* without EAL */
	struct ownership ownership;
};

/** Return the number of buffers that each process may hold at least. */
uint32_t arena_held_min(const struct server *server);

/** Return the number of buffers that the arena has or will have. */
uint32_t arena_buffers(const struct server *server);

/** Make the arena, and the port's pool from it (port.make_pool). 0 or -errno. */
int arena_make_pool(struct port *port);

void arena_destroy(struct server *server);

#endif
