/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quarantine: numbered objects that a slot has for a while. An object that comes back is in
 * quarantine before another slot gets it. Blocks of queue pair numbers and of communication ids are
 * such objects. Each kind of block chooses the free object itself.
 */
#ifndef SHARE_QUARANTINE_H
#define SHARE_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "share/user.h"

#define SLOT_NONE UINT16_MAX

/* The objects of one kind, in the arrays of their user. Only one thread at a time may use this
 * struct. */
struct quarantine {
	uint16_t *slots;	     /* the slot that has it, or SLOT_NONE */
	uint64_t *quarantine_end_ns; /* of a free one: end of its quarantine */
	user_t *users;		     /* the user that has it, or had it last */
	uint32_t count;
	uint64_t quarantine_ns;
	uint32_t user_max; /* objects of an untrusted user, including those in quarantine */
};

/** Make all free, without a quarantine. */
void quarantine_init(const struct quarantine *quarantine);

/**
 * Give a free one to a slot.
 *
 * @param index
 *   The chosen index; `count`: none is free.
 * @param user
 *   USER_TRUSTED: the quarantine need not have ended.
 * @return
 *   0; -ENOSPC; -EAGAIN: the user has too many objects, with those in quarantine.
 */
int quarantine_give(const struct quarantine *quarantine, uint32_t index, uint16_t slot,
		    uint64_t now_ns, user_t user);

/** Keep a free one for the slot that will take it: no other gets it until then. */
void quarantine_keep(const struct quarantine *quarantine, uint32_t index, uint64_t until_ns,
		     user_t user);

/** Give a certain one, also one in quarantine. 0; -EBUSY: another slot has it. */
int quarantine_take(const struct quarantine *quarantine, uint32_t index, uint16_t slot,
		    user_t user);

/** Take one back. Return false if it is free. */
bool quarantine_take_back(const struct quarantine *quarantine, uint32_t index, uint64_t now_ns);

#endif
