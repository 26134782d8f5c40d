/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbered things that slots have for a while, and that rest before another slot gets them: what
 * blocks of queue pair numbers and of communication ids have in common. Which free one is chosen is
 * theirs to decide.
 */
#ifndef SHARE_LEASES_H
#define SHARE_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "share/user.h"

#define LEASE_NONE UINT16_MAX

/* A view of its owner's arrays. One thread at a time. */
struct leases {
	uint16_t *slots;     /* who has it, or LEASE_NONE */
	uint64_t *rested_ns; /* of one that is free: when it will have rested */
	user_t *users;	     /* whose it is, and was */
	uint32_t count;
	uint64_t rest_ns;
	uint32_t user_max; /* those of an untrusted user, with those that rest since they were */
};

/** Make all free, and rested. */
void leases_init(const struct leases *leases);

/**
 * Give one that is free.
 *
 * @param index
 *   The chosen one; `count`: none is free.
 * @param user
 *   USER_TRUSTED: it need not have rested.
 * @return
 *   0; -ENOSPC; -EAGAIN: too many are this user's, or rest since they were.
 */
int leases_give(const struct leases *leases, uint32_t index, uint16_t slot, uint64_t now_ns,
		user_t user);

/** Take one back. Returns false where it is free. */
bool leases_take_back(const struct leases *leases, uint32_t index, uint64_t now_ns);

#endif
