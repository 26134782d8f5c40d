/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving blocks of queue pair numbers in turn. */
#include "share/blocks.h"

#include <errno.h>
#include <sys/random.h>

/* The first has QP0 and QP1, the last the number of multicast: nobody's. */
static bool is_given(uint32_t block)
{
	return block != 0 && block != BLOCKS - 1;
}

int blocks_init(struct blocks *blocks)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		blocks->slots[i] = BLOCK_NONE;
		blocks->rested_ns[i] = 0;
		blocks->users[i] = USER_TRUSTED;
	}
	blocks->next = random % BLOCKS;
	blocks->used = 0;
	return 0;
}

/* The next free one that has rested, else the one that will have first; BLOCKS: none is free. */
static uint32_t blocks_choose(const struct blocks *blocks, uint64_t now_ns)
{
	uint32_t chosen = BLOCKS;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		const uint32_t block = (blocks->next + i) % BLOCKS;

		if (!is_given(block) || blocks->slots[block] != BLOCK_NONE)
			continue;
		if (blocks->rested_ns[block] <= now_ns)
			return block;
		if (chosen == BLOCKS || blocks->rested_ns[block] < blocks->rested_ns[chosen])
			chosen = block;
	}
	return chosen;
}

/* Whoever attaches and ends over and over shall not have all blocks rest. */
static bool user_has_many(const struct blocks *blocks, uint64_t now_ns, user_t user)
{
	uint32_t count = 0;

	if (!user_is_limited(user))
		return false;
	for (uint32_t i = 0; i < BLOCKS; i++)
		count += blocks->users[i] == user &&
			 (blocks->slots[i] != BLOCK_NONE || blocks->rested_ns[i] > now_ns);
	return count >= BLOCKS_USER_MAX;
}

int blocks_alloc(struct blocks *blocks, uint16_t slot, uint64_t now_ns, user_t user)
{
	const uint32_t block = blocks_choose(blocks, now_ns);

	if (user_has_many(blocks, now_ns, user))
		return -EAGAIN;
	if (block == BLOCKS || (user != USER_TRUSTED && blocks->rested_ns[block] > now_ns))
		return -ENOSPC;
	blocks->users[block] = user;
	blocks->slots[block] = slot;
	blocks->next = block + 1;
	blocks->used++;
	return (int)(block << BLOCK_SHIFT);
}

void blocks_free(struct blocks *blocks, uint32_t qpn_first, uint64_t now_ns)
{
	const uint32_t block = blocks_index(qpn_first);

	if (blocks->slots[block] == BLOCK_NONE)
		return;
	blocks->slots[block] = BLOCK_NONE;
	blocks->rested_ns[block] = now_ns + BLOCK_REST_NS;
	blocks->used--;
}
