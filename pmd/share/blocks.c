/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives blocks of queue pair numbers in turn. */
#include "share/blocks.h"

#include <errno.h>
#include <sys/random.h>

#include "share/leases.h"

static struct leases blocks_leases(struct blocks *blocks)
{
	return (struct leases){
		.slots = blocks->slots,
		.quarantine_end_ns = blocks->quarantine_end_ns,
		.users = blocks->users,
		.count = BLOCKS,
		.quarantine_ns = BLOCK_QUARANTINE_NS,
		.user_max = BLOCKS_USER_MAX,
	};
}

/* Return true if a block may be given. The first block has QP 0 and QP 1, and the last one has
 * the multicast number. No process may have these. */
static bool may_be_given(uint32_t block)
{
	return block != 0 && block != BLOCKS - 1;
}

int blocks_init(struct blocks *blocks)
{
	const struct leases leases = blocks_leases(blocks);
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	leases_init(&leases);
	blocks->next = random % BLOCKS;
	blocks->used = 0;
	return 0;
}

/* Return the next free block whose quarantine has ended. If all free blocks are in quarantine,
 * return the one whose quarantine ends first. BLOCKS: none is free. */
static uint32_t blocks_choose(const struct blocks *blocks, uint64_t now_ns)
{
	uint32_t chosen = BLOCKS;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		const uint32_t block = (blocks->next + i) % BLOCKS;

		if (!may_be_given(block) || blocks->slots[block] != BLOCK_NONE)
			continue;
		if (blocks->quarantine_end_ns[block] <= now_ns)
			return block;
		if (chosen == BLOCKS ||
		    blocks->quarantine_end_ns[block] < blocks->quarantine_end_ns[chosen])
			chosen = block;
	}
	return chosen;
}

int blocks_alloc(struct blocks *blocks, uint16_t slot, uint64_t now_ns, user_t user)
{
	const struct leases leases = blocks_leases(blocks);
	const uint32_t block = blocks_choose(blocks, now_ns);
	const int rc = leases_give(&leases, block, slot, now_ns, user);

	if (rc != 0)
		return rc;
	blocks->next = block + 1;
	blocks->used++;
	return (int)(block << BLOCK_SHIFT);
}

void blocks_free(struct blocks *blocks, uint32_t qpn_first, uint64_t now_ns)
{
	const struct leases leases = blocks_leases(blocks);

	if (leases_take_back(&leases, blocks_index(qpn_first), now_ns))
		blocks->used--;
}
