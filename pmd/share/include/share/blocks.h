/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair numbers of each process: blocks of numbers, found by one look-up. */
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

/* Time for which peers may retransmit to a process that has died, with the usual timeouts. */
#define BLOCK_REST_NS UINT64_C(4000000000)

/* Blocks that an untrusted user may have, including those that rest after its processes ended. */
#define BLOCKS_USER_MAX 64

/* One thread at a time. */
struct blocks {
	uint16_t slots[BLOCKS];	    /* the slot that has the block, or BLOCK_NONE */
	uint64_t rested_ns[BLOCKS]; /* of a free block: when its rest ends */
	user_t users[BLOCKS];	    /* the user that has it, or had it last */
	uint32_t next;		    /* index where the search for a free block begins */
	uint32_t used;
};

/** Make all blocks free. The first block given is random. 0, or -errno of getrandom(2). */
int blocks_init(struct blocks *blocks);

/**
 * Give a block. Blocks are given in turn: a block that came back is given again after all others,
 * when its rest has ended.
 *
 * @param user
 *   USER_TRUSTED: if all free blocks rest, it may have the one that has rested the longest.
 * @return
 *   Its first queue pair number; -ENOSPC; -EAGAIN: the user's blocks, with those that rest, are too
 *   many.
 */
int blocks_alloc(struct blocks *blocks, uint16_t slot, uint64_t now_ns, user_t user);

/** Take back the block that begins with a number. */
void blocks_free(struct blocks *blocks, uint32_t qpn_first, uint64_t now_ns);

/** Return the index of the block of a number. */
static inline uint32_t blocks_index(uint32_t qpn)
{
	return (qpn >> BLOCK_SHIFT) & (BLOCKS - 1);
}

/** Return the slot that has a number, or BLOCK_NONE. */
static inline uint16_t blocks_find(const struct blocks *blocks, uint32_t qpn)
{
	return blocks->slots[blocks_index(qpn)];
}

#endif
