/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication ids of each slot. Ids are given out in blocks; the upper bits of an id tell its
 * block. The owner chooses blocks at random, and a process chooses the lower bits at random, so
 * that nobody can guess another's id.
 */
#ifndef OWNER_IDS_H
#define OWNER_IDS_H

#include <stdint.h>

#include "share/blocks.h"
#include "share/user.h"

#define IDS_BITS   12
#define IDS_BLOCKS (1u << IDS_BITS)
#define IDS_SHIFT  (32 - IDS_BITS)
#define IDS_MASK   ((IDS_BLOCKS - 1) << IDS_SHIFT)
#define IDS_NONE   SLOT_NONE

/* Quarantine of a block whose process has ended: longer than a peer with Linux's timeouts waits
 * before it retransmits a message. */
#define IDS_QUARANTINE_NS UINT64_C(16000000000)

/* Blocks that an untrusted user may have, including those in quarantine after its processes have
 * ended. */
#define IDS_USER_MAX 256

/* The blocks of ids of a device. Only one thread at a time may use this struct. */
struct ids {
	uint16_t slots[IDS_BLOCKS];		/* the slot that has the block, or IDS_NONE */
	uint64_t quarantine_end_ns[IDS_BLOCKS]; /* of a free block: end of its quarantine */
	user_t users[IDS_BLOCKS];		/* the user that has it, or had it last */
};

/** Make all blocks free. */
void ids_init(struct ids *ids);

/**
 * Give a block.
 *
 * @param user
 *   USER_TRUSTED: if all free blocks are in quarantine, it may have the one whose quarantine ends
 *   first.
 * @param value
 *   Set to the bits in IDS_MASK of its ids.
 * @return
 *   0; -ENOSPC; -EAGAIN: the user has too many blocks, with those in quarantine; -EIO: there are no
 *   random numbers.
 */
int ids_alloc(struct ids *ids, uint16_t slot, uint64_t now_ns, user_t user, uint32_t *value);

/** Keep a block of ids for the process that had it: nobody else gets it until then. */
void ids_keep(struct ids *ids, uint32_t value, uint64_t until_ns, user_t user);

/** Give a certain block. 0; -EBUSY: another slot has it. */
int ids_take(struct ids *ids, uint32_t value, uint16_t slot, user_t user);

/** Take back a block. Does nothing if the block is free. */
void ids_free(struct ids *ids, uint32_t value, uint64_t now_ns);

/** Return the slot that has a communication id, or IDS_NONE. */
static inline uint16_t ids_find(const struct ids *ids, uint32_t id)
{
	return ids->slots[id >> IDS_SHIFT];
}

#endif
