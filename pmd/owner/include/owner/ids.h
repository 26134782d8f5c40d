/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which slot has which communication ids: blocks of them, found by the upper bits. Blocks are given
 * at random, and the process draws the lower bits at random: nobody can guess the id of another's
 * connection.
 */
#ifndef OWNER_IDS_H
#define OWNER_IDS_H

#include <stdint.h>

#include "share/leases.h"
#include "share/user.h"

#define IDS_BITS   12
#define IDS_BLOCKS (1u << IDS_BITS)
#define IDS_SHIFT  (32 - IDS_BITS)
#define IDS_MASK   ((IDS_BLOCKS - 1) << IDS_SHIFT)
#define IDS_NONE   LEASE_NONE

/* Longer than peers with Linux's timeouts wait before they send a message again. */
#define IDS_REST_NS UINT64_C(16000000000)

/* Blocks of an untrusted user, with those that rest after its processes have ended. */
#define IDS_USER_MAX 256

/* One thread at a time. */
struct ids {
	uint16_t slots[IDS_BLOCKS];	/* whose, or IDS_NONE */
	uint64_t rested_ns[IDS_BLOCKS]; /* of one that is free: when it will have rested */
	user_t users[IDS_BLOCKS];	/* whose it is, and was */
};

/** All free. */
void ids_init(struct ids *ids);

/**
 * Give a block.
 *
 * @param user
 *   USER_TRUSTED: where none has rested, it may have the one that has rested the longest.
 * @param value
 *   Set to the bits in IDS_MASK of its ids.
 * @return
 *   0; -ENOSPC; -EAGAIN: too many are this user's, or rest since they were; -EIO where there are no
 *   random numbers.
 */
int ids_alloc(struct ids *ids, uint16_t slot, uint64_t now_ns, user_t user, uint32_t *value);

/** Take back a block; nothing where it is free. */
void ids_free(struct ids *ids, uint32_t value, uint64_t now_ns);

/** Whose a communication id is, or IDS_NONE. */
static inline uint16_t ids_find(const struct ids *ids, uint32_t id)
{
	return ids->slots[id >> IDS_SHIFT];
}

#endif
