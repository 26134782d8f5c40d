/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leases: numbered objects that a slot has for a while. An object that comes back is in quarantine
 * before another slot gets it. Blocks of queue pair numbers and of communication ids are leases.
 * Each kind of block chooses the free object itself.
 */
#ifndef SHARE_LEASES_H
#define SHARE_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "share/user.h"

#define LEASE_NONE UINT16_MAX

/* Leases of one kind, in the arrays of their user. Only one thread at a time may use this
 * struct. */
struct leases {
	uint16_t *slots;	     /* the slot that has it, or LEASE_NONE */
	uint64_t *quarantine_end_ns; /* of a free one: end of its quarantine */
	user_t *users;		     /* the user that has it, or had it last */
	uint32_t count;
	uint64_t quarantine_ns;
	uint32_t user_max; /* leases of an untrusted user, including those in quarantine */
};

/** Make all free, without a quarantine. */
void leases_init(const struct leases *leases);

/**
 * Give a free one to a slot.
 *
 * @param index
 *   The chosen index; `count`: none is free.
 * @param user
 *   USER_TRUSTED: the quarantine need not have ended.
 * @return
 *   0; -ENOSPC; -EAGAIN: the user has too many leases, with those in quarantine.
 */
int leases_give(const struct leases *leases, uint32_t index, uint16_t slot, uint64_t now_ns,
		user_t user);

/** Take one back. Return false if it is free. */
bool leases_take_back(const struct leases *leases, uint32_t index, uint64_t now_ns);

#endif
