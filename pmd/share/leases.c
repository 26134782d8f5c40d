/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives numbered objects to slots, and keeps them in quarantine afterwards. */
#include "share/leases.h"

#include <errno.h>

void leases_init(const struct leases *leases)
{
	for (uint32_t i = 0; i < leases->count; i++) {
		leases->slots[i] = LEASE_NONE;
		leases->quarantine_end_ns[i] = 0;
		leases->users[i] = USER_TRUSTED;
	}
}

/* Return true if a user has all leases that it may have, including those in quarantine. Leases in
 * quarantine count, because a user could otherwise put all leases there by attaching and ending
 * again and again. */
static bool user_has_many(const struct leases *leases, uint64_t now_ns, user_t user)
{
	uint32_t count = 0;

	if (!user_is_limited(user))
		return false;
	for (uint32_t i = 0; i < leases->count; i++)
		count += leases->users[i] == user &&
			 (leases->slots[i] != LEASE_NONE || leases->quarantine_end_ns[i] > now_ns);
	return count >= leases->user_max;
}

int leases_give(const struct leases *leases, uint32_t index, uint16_t slot, uint64_t now_ns,
		user_t user)
{
	if (user_has_many(leases, now_ns, user))
		return -EAGAIN;
	if (index == leases->count ||
	    (user != USER_TRUSTED && leases->quarantine_end_ns[index] > now_ns))
		return -ENOSPC;
	leases->users[index] = user;
	leases->slots[index] = slot;
	return 0;
}

bool leases_take_back(const struct leases *leases, uint32_t index, uint64_t now_ns)
{
	if (leases->slots[index] == LEASE_NONE)
		return false;
	leases->slots[index] = LEASE_NONE;
	leases->quarantine_end_ns[index] = now_ns + leases->quarantine_ns;
	return true;
}
