/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair numbers of each process: blocks of numbers, found by one look-up. */
#ifndef SHARE_BLOCKS_H
#define SHARE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "share/user.h"
#include "wire/qpn_block.h"

#define BLOCK_SHIFT WIRE_QPN_BLOCK_SHIFT
#define BLOCK_QPNS  (1u << BLOCK_SHIFT)
#define BLOCKS	    (1u << (24 - BLOCK_SHIFT))
#define BLOCK_NONE  SLOT_NONE

/* The first block has QP 0 and QP 1, and the last one has the multicast number. */
#define BLOCKS_OUTER 1

/* Quarantine of a block whose process has ended: the time for which peers with usual timeouts
 * retransmit to that process. */
#define BLOCK_QUARANTINE_NS UINT64_C(4000000000)

/* Blocks that an untrusted user may have, including those in quarantine after its processes have
 * ended. */
#define BLOCKS_USER_MAX 128

/* The blocks of a port. Only one thread at a time may use this struct. */
struct blocks {
	uint16_t slots[BLOCKS];		    /* the slot that has the block, or BLOCK_NONE */
	uint64_t quarantine_end_ns[BLOCKS]; /* of a free block: end of its quarantine */
	user_t users[BLOCKS];		    /* the user that has it, or had it last */
	uint32_t used;
};

/** Make all blocks free. */
void blocks_init(struct blocks *blocks);

/**
 * Give a block: a random one, so that no process can tell from its own number those of others. A
 * block that came back is not given again before the end of its quarantine.
 *
 * @param user
 *   USER_TRUSTED: if all free blocks are in quarantine, it may have the one whose quarantine ends
 *   first.
 * @return
 *   Its first queue pair number; -ENOSPC; -EAGAIN: the user has too many blocks, with those in
 *   quarantine; -EIO: there are no random numbers.
 */
int blocks_alloc(struct blocks *blocks, uint16_t slot, uint64_t now_ns, user_t user);

/** Keep a free block for the process that had it: nobody else gets it until then. */
void blocks_keep(struct blocks *blocks, uint32_t qpn_first, uint64_t until_ns, user_t user);

/** Give the block that begins with a number. 0; -EBUSY: another slot has it. */
int blocks_take(struct blocks *blocks, uint32_t qpn_first, uint16_t slot, user_t user);

/** Take back the block that begins with a number. */
void blocks_free(struct blocks *blocks, uint32_t qpn_first, uint64_t now_ns);

/** Return true if a process may have a block. */
static inline bool blocks_may_give(uint32_t block)
{
	return block >= BLOCKS_OUTER && block < BLOCKS - BLOCKS_OUTER;
}

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

#define SLOT_NONE UINT16_MAX

/* The objects of one kind, in the arrays of their user. Only one thread at a time may use this
 * struct. */
struct quarantine {
	uint16_t *slots;	     /* the slot that has it, or SLOT_NONE */
	uint64_t *quarantine_end_ns; /* of a free one: end of its quarantine */
	user_t *users;		     /* the user that has it, or had it last */
	uint32_t count;
	uint32_t outer; /* so many of the first and of the last ones are never given */
	uint64_t quarantine_ns;
	uint32_t user_max; /* objects of an untrusted user, including those in quarantine */
};

/** Make all free, without a quarantine. */
void quarantine_init(const struct quarantine *quarantine);

/**
 * Give a slot a free one, chosen at random, so that nobody can tell from its own those of others.
 *
 * @param user
 *   USER_TRUSTED: if all free ones are in quarantine, it may have the one whose quarantine ends
 *   first.
 * @param index
 *   Set to the chosen one.
 * @return
 *   0; -ENOSPC; -EAGAIN: the user has too many objects, with those in quarantine; -EIO: there are
 *   no random numbers.
 */
int quarantine_give(const struct quarantine *quarantine, uint16_t slot, uint64_t now_ns,
		    user_t user, uint32_t *index);

/** Keep a free one for the slot that will take it: no other gets it until then. */
void quarantine_keep(const struct quarantine *quarantine, uint32_t index, uint64_t until_ns,
		     user_t user);

/** Give a certain one, also one in quarantine. 0; -EBUSY: another slot has it. */
int quarantine_take(const struct quarantine *quarantine, uint32_t index, uint16_t slot,
		    user_t user);

/** Take one back. Return false if it is free. */
bool quarantine_take_back(const struct quarantine *quarantine, uint32_t index, uint64_t now_ns);

#endif
