/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving blocks of communication ids at random. */
#include "share/ids.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/random.h>

void ids_init(struct ids *ids)
{
	for (uint32_t i = 0; i < IDS_BLOCKS; i++) {
		ids->slots[i] = IDS_NONE;
		ids->rested_ns[i] = 0;
		ids->users[i] = USER_TRUSTED;
	}
}

/* One free block out of those that have rested, each as likely as the others; else the one that
 * will have rested first. IDS_BLOCKS: none is free. */
static uint32_t ids_choose(const struct ids *ids, uint64_t now_ns, uint32_t random)
{
	uint32_t first = IDS_BLOCKS, rested = 0;

	for (uint32_t i = 0; i < IDS_BLOCKS; i++)
		rested += ids->slots[i] == IDS_NONE && ids->rested_ns[i] <= now_ns;
	random = rested > 0 ? random % rested : 0;
	for (uint32_t i = 0; i < IDS_BLOCKS; i++) {
		if (ids->slots[i] != IDS_NONE)
			continue;
		if (ids->rested_ns[i] <= now_ns && random-- == 0)
			return i;
		if (first == IDS_BLOCKS || ids->rested_ns[i] < ids->rested_ns[first])
			first = i;
	}
	return first;
}

static bool user_has_many(const struct ids *ids, uint64_t now_ns, user_t user)
{
	uint32_t count = 0;

	if (!user_is_limited(user))
		return false;
	for (uint32_t i = 0; i < IDS_BLOCKS; i++)
		count += ids->users[i] == user &&
			 (ids->slots[i] != IDS_NONE || ids->rested_ns[i] > now_ns);
	return count >= IDS_USER_MAX;
}

int ids_alloc(struct ids *ids, uint16_t slot, uint64_t now_ns, user_t user, uint32_t *value)
{
	uint32_t random, block;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	if (user_has_many(ids, now_ns, user))
		return -EAGAIN;
	block = ids_choose(ids, now_ns, random);
	if (block == IDS_BLOCKS || (user != USER_TRUSTED && ids->rested_ns[block] > now_ns))
		return -ENOSPC;
	ids->users[block] = user;
	ids->slots[block] = slot;
	*value = block << IDS_SHIFT;
	return 0;
}

void ids_free(struct ids *ids, uint32_t value, uint64_t now_ns)
{
	const uint32_t block = value >> IDS_SHIFT;

	if (ids->slots[block] == IDS_NONE)
		return;
	ids->slots[block] = IDS_NONE;
	ids->rested_ns[block] = now_ns + IDS_REST_NS;
}
