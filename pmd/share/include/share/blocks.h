/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process has which queue pair numbers: blocks of them, found by one look-up. */
#ifndef SHARE_BLOCKS_H
#define SHARE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "share/leases.h"
#include "share/user.h"

#define BLOCK_SHIFT 14
#define BLOCK_QPNS  (1u << BLOCK_SHIFT)
#define BLOCKS	    (1u << (24 - BLOCK_SHIFT))
#define BLOCK_NONE  LEASE_NONE

/* As long as peers may go on sending again to a process that has died, with timeouts as programs
 * have. */
#define BLOCK_REST_NS UINT64_C(4000000000)

/* Blocks of an untrusted user, with those that rest after its processes have ended. */
#define BLOCKS_USER_MAX 64

/* One thread at a time. */
struct blocks {
	uint16_t slots[BLOCKS];	    /* whose, or BLOCK_NONE */
	uint64_t rested_ns[BLOCKS]; /* of one that is free: when it will have rested */
	user_t users[BLOCKS];	    /* whose it is, and was */
	uint32_t next;		    /* where the search for a free one begins */
	uint32_t used;
};

/** All free; the first one that is given is random. 0, or -errno of getrandom(2). */
int blocks_init(struct blocks *blocks);

/**
 * Give a block. They are given in turn: one that came back is given again after all the others, and
 * when it has rested.
 *
 * @param user
 *   USER_TRUSTED: where none has rested, it may have the one that has rested the longest.
 * @return
 *   The first queue pair number of it; -ENOSPC; -EAGAIN: too many are this user's, or rest since
 *   they were.
 */
int blocks_alloc(struct blocks *blocks, uint16_t slot, uint64_t now_ns, user_t user);

/** Take back the block that begins with a number. */
void blocks_free(struct blocks *blocks, uint32_t qpn_first, uint64_t now_ns);

/** Which block a number is of. */
static inline uint32_t blocks_index(uint32_t qpn)
{
	return (qpn >> BLOCK_SHIFT) & (BLOCKS - 1);
}

/** Whose a number is, or BLOCK_NONE. */
static inline uint16_t blocks_find(const struct blocks *blocks, uint32_t qpn)
{
	return blocks->slots[blocks_index(qpn)];
}

#endif
