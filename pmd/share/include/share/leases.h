/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leases: numbered objects that a slot has for a while, and that rest before another slot gets
 * them. Blocks of queue pair numbers and of communication ids are leases. They choose the free
 * object themselves.
 */
#ifndef SHARE_LEASES_H
#define SHARE_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "share/user.h"

#define LEASE_NONE UINT16_MAX

/* Points to the arrays of its user. One thread at a time. */
struct leases {
	uint16_t *slots;     /* the slot that has it, or LEASE_NONE */
	uint64_t *rested_ns; /* of a free one: when its rest ends */
	user_t *users;	     /* the user that has it, or had it last */
	uint32_t count;
	uint64_t rest_ns;
	uint32_t user_max; /* leases of an untrusted user, including those that rest */
};

/** Make all free, without a rest. */
void leases_init(const struct leases *leases);

/**
 * Give a free one to a slot.
 *
 * @param index
 *   The chosen index; `count`: none is free.
 * @param user
 *   USER_TRUSTED: the rest need not have ended.
 * @return
 *   0; -ENOSPC; -EAGAIN: the user's leases, with those that rest, are too many.
 */
int leases_give(const struct leases *leases, uint32_t index, uint16_t slot, uint64_t now_ns,
		user_t user);

/** Take one back. Return false if it is free. */
bool leases_take_back(const struct leases *leases, uint32_t index, uint64_t now_ns);

#endif
