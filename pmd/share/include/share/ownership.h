/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffer ownership: which slot holds each packet buffer. It is in the owner's private memory,
 * so the owner can take back all buffers of a process that died, whatever that process wrote to
 * shared memory.
 */
#ifndef SHARE_OWNERSHIP_H
#define SHARE_OWNERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "share/layout.h"

/* Held by the owner: in its pool or port, or being forwarded. */
#define OWNERSHIP_OWNER UINT16_MAX

/* The buffer ownership of a port. Only one thread at a time may use this struct. */
struct ownership {
	uint16_t *holders; /* by buffer: the slot that holds it, or OWNERSHIP_OWNER */
	uint32_t *held;	   /* by slot: how many it holds */
	uint32_t *quotas;  /* by slot: how many it may hold, at most SHARE_HELD_MAX */
	uint32_t buffers;
	uint32_t buffer_bytes;
	uint32_t slots;
};

/** Give all buffers to the owner. Each slot's quota is `quota`. 0 or -ENOMEM. */
int ownership_init(struct ownership *ownership, uint32_t buffers, uint32_t buffer_bytes,
		   uint32_t slots, uint32_t quota);

/** Free the memory. */
void ownership_fini(struct ownership *ownership);

/** Move a buffer from the owner to a slot. Return false if the slot holds as many as its quota. */
bool ownership_give(struct ownership *ownership, uint32_t buffer, uint16_t slot);

/** Move a buffer from a slot to the owner. Return false, and change nothing, if the slot does not
 * hold it. */
bool ownership_take(struct ownership *ownership, uint32_t buffer, uint16_t slot);

/** Return true if a slot may send a packet: it holds the buffer, and the frame lies inside it. */
bool ownership_may_send(const struct ownership *ownership, const struct share_packet *packet,
			uint16_t slot);

/** Take back all buffers of a slot, and call `each` with their numbers. */
void ownership_reclaim(struct ownership *ownership, uint16_t slot,
		       void (*each)(uint32_t buffer, void *arg), void *arg);

#endif
