/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving blocks of queue pair numbers in turn. */
#include "share/blocks.h"

#include <errno.h>
#include <stdbool.h>
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
	for (uint32_t i = 0; i < BLOCKS; i++)
		blocks->slots[i] = BLOCK_NONE;
	blocks->next = random % BLOCKS;
	blocks->used = 0;
	return 0;
}

int blocks_alloc(struct blocks *blocks, uint16_t slot)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		const uint32_t block = (blocks->next + i) % BLOCKS;

		if (!is_given(block) || blocks->slots[block] != BLOCK_NONE)
			continue;
		blocks->slots[block] = slot;
		blocks->next = block + 1;
		blocks->used++;
		return (int)(block << BLOCK_SHIFT);
	}
	return -ENOSPC;
}

void blocks_free(struct blocks *blocks, uint32_t qpn_first)
{
	uint16_t *slot = &blocks->slots[(qpn_first >> BLOCK_SHIFT) & (BLOCKS - 1)];

	if (*slot == BLOCK_NONE)
		return;
	*slot = BLOCK_NONE;
	blocks->used--;
}
