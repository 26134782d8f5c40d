/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives numbered objects to slots, and keeps them in quarantine afterwards: blocks of queue pair
 * numbers, and what else is given so. */
#include "share/blocks.h"

#include <errno.h>
#include <sys/random.h>

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

/* Choose a free one whose quarantine has ended; all are equally likely. If all free ones are in
 * quarantine, choose the one whose quarantine ends first; `count`: none is free. */
static uint32_t choose(const struct quarantine *quarantine, uint64_t now_ns, uint32_t random)
{
	const uint32_t none = quarantine->count, end = none - quarantine->outer;
	const uint64_t *end_ns = quarantine->quarantine_end_ns;
	uint32_t first = none, reusable = 0;

	for (uint32_t i = quarantine->outer; i < end; i++)
		reusable += quarantine->slots[i] == SLOT_NONE && end_ns[i] <= now_ns;
	random = reusable > 0 ? random % reusable : 0;
	for (uint32_t i = quarantine->outer; i < end; i++) {
		if (quarantine->slots[i] != SLOT_NONE)
			continue;
		if (end_ns[i] <= now_ns && random-- == 0)
			return i;
		if (first == none || end_ns[i] < end_ns[first])
			first = i;
	}
	return first;
}

int quarantine_give(const struct quarantine *quarantine, uint16_t slot, uint64_t now_ns,
		    user_t user, uint32_t *index)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	if (user_has_many(quarantine, now_ns, user))
		return -EAGAIN;
	*index = choose(quarantine, now_ns, random);
	if (*index == quarantine->count ||
	    (user != USER_TRUSTED && quarantine->quarantine_end_ns[*index] > now_ns))
		return -ENOSPC;
	quarantine->users[*index] = user;
	quarantine->slots[*index] = slot;
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

static struct quarantine blocks_quarantine(struct blocks *blocks)
{
	return (struct quarantine){
		.slots = blocks->slots,
		.quarantine_end_ns = blocks->quarantine_end_ns,
		.users = blocks->users,
		.count = BLOCKS,
		.outer = BLOCKS_OUTER,
		.quarantine_ns = BLOCK_QUARANTINE_NS,
		.user_max = BLOCKS_USER_MAX,
	};
}

void blocks_init(struct blocks *blocks)
{
	const struct quarantine quarantine = blocks_quarantine(blocks);

	quarantine_init(&quarantine);
	blocks->used = 0;
}

int blocks_alloc(struct blocks *blocks, uint16_t slot, uint64_t now_ns, user_t user)
{
	const struct quarantine quarantine = blocks_quarantine(blocks);
	uint32_t block;
	const int rc = quarantine_give(&quarantine, slot, now_ns, user, &block);

	if (rc != 0)
		return rc;
	blocks->used++;
	return (int)(block << BLOCK_SHIFT);
}

void blocks_free(struct blocks *blocks, uint32_t qpn_first, uint64_t now_ns)
{
	const struct quarantine quarantine = blocks_quarantine(blocks);

	if (quarantine_take_back(&quarantine, blocks_index(qpn_first), now_ns))
		blocks->used--;
}

void blocks_keep(struct blocks *blocks, uint32_t qpn_first, uint64_t until_ns, user_t user)
{
	const struct quarantine quarantine = blocks_quarantine(blocks);

	quarantine_keep(&quarantine, blocks_index(qpn_first), until_ns, user);
}

int blocks_take(struct blocks *blocks, uint32_t qpn_first, uint16_t slot, user_t user)
{
	const struct quarantine quarantine = blocks_quarantine(blocks);
	const int rc = quarantine_take(&quarantine, blocks_index(qpn_first), slot, user);

	blocks->used += rc == 0;
	return rc;
}
