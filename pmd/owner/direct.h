/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct memifs between isolated processes: the owner makes their sockets, and ends them. */
#ifndef OWNER_DIRECT_H
#define OWNER_DIRECT_H

#include <stdint.h>
#include <sys/queue.h>

struct server;

#define DIRECTS_MAX 128 /* each costs the owner a descriptor */

struct directs {
	LIST_HEAD(, direct) list;
	uint32_t count;
};

/** Offer a direct memif to two live isolated processes that talk to each other, if they have had
 * none, and have fewer than they may. */
void direct_make(struct server *server, uint16_t a, uint16_t b);

/** End the direct memifs of a process that the owner stops serving. Does nothing if it has none. */
void direct_close(struct server *server, uint16_t number);

#endif
