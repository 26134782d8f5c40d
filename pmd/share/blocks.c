/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives blocks of queue pair numbers at random. */
#include "share/blocks.h"

#include <errno.h>
#include <sys/random.h>

#include "share/quarantine.h"

static struct quarantine blocks_quarantine(struct blocks *blocks)
{
	return (struct quarantine){
		.slots = blocks->slots,
		.quarantine_end_ns = blocks->quarantine_end_ns,
		.users = blocks->users,
		.count = BLOCKS,
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

/* Return a free block whose quarantine has ended, chosen at random; all are equally likely. If all
 * free blocks are in quarantine, return the one whose quarantine ends first. BLOCKS: none is
 * free. */
static uint32_t blocks_choose(const struct blocks *blocks, uint64_t now_ns, uint32_t random)
{
	uint32_t first = BLOCKS, reusable = 0;

	for (uint32_t i = 0; i < BLOCKS; i++)
		reusable += blocks_may_give(i) && blocks->slots[i] == BLOCK_NONE &&
			    blocks->quarantine_end_ns[i] <= now_ns;
	random = reusable > 0 ? random % reusable : 0;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		if (!blocks_may_give(i) || blocks->slots[i] != BLOCK_NONE)
			continue;
		if (blocks->quarantine_end_ns[i] <= now_ns && random-- == 0)
			return i;
		if (first == BLOCKS ||
		    blocks->quarantine_end_ns[i] < blocks->quarantine_end_ns[first])
			first = i;
	}
	return first;
}

int blocks_alloc(struct blocks *blocks, uint16_t slot, uint64_t now_ns, user_t user)
{
	const struct quarantine quarantine = blocks_quarantine(blocks);
	uint32_t random, block;
	int rc;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	block = blocks_choose(blocks, now_ns, random);
	rc = quarantine_give(&quarantine, block, slot, now_ns, user);
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
