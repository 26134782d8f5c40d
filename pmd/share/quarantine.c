/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives numbered objects to slots, and keeps them in quarantine afterwards. */
#include "share/quarantine.h"

#include <errno.h>

void quarantine_init(const struct quarantine *quarantine)
{
	for (uint32_t i = 0; i < quarantine->count; i++) {
		quarantine->slots[i] = SLOT_NONE;
		quarantine->quarantine_end_ns[i] = 0;
		quarantine->users[i] = USER_TRUSTED;
	}
}

/* Return true if a user has all objects that it may have, including those in quarantine. Those in
 * quarantine count, because a user could otherwise put all objects there by attaching and ending
 * again and again. */
static bool user_has_many(const struct quarantine *quarantine, uint64_t now_ns, user_t user)
{
	uint32_t count = 0;

	if (!user_is_limited(user))
		return false;
	for (uint32_t i = 0; i < quarantine->count; i++)
		count +=
			quarantine->users[i] == user && (quarantine->slots[i] != SLOT_NONE ||
							 quarantine->quarantine_end_ns[i] > now_ns);
	return count >= quarantine->user_max;
}

int quarantine_give(const struct quarantine *quarantine, uint32_t index, uint16_t slot,
		    uint64_t now_ns, user_t user)
{
	if (user_has_many(quarantine, now_ns, user))
		return -EAGAIN;
	if (index == quarantine->count ||
	    (user != USER_TRUSTED && quarantine->quarantine_end_ns[index] > now_ns))
		return -ENOSPC;
	quarantine->users[index] = user;
	quarantine->slots[index] = slot;
	return 0;
}

bool quarantine_take_back(const struct quarantine *quarantine, uint32_t index, uint64_t now_ns)
{
	if (quarantine->slots[index] == SLOT_NONE)
		return false;
	quarantine->slots[index] = SLOT_NONE;
	quarantine->quarantine_end_ns[index] = now_ns + quarantine->quarantine_ns;
	return true;
}

void quarantine_keep(const struct quarantine *quarantine, uint32_t index, uint64_t until_ns,
		     user_t user)
{
	quarantine->quarantine_end_ns[index] = until_ns;
	quarantine->users[index] = user;
}

int quarantine_take(const struct quarantine *quarantine, uint32_t index, uint16_t slot, user_t user)
{
	if (quarantine->slots[index] != SLOT_NONE)
		return -EBUSY;
	quarantine->users[index] = user;
	quarantine->slots[index] = slot;
	return 0;
}
