/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Populate memif memory with pages before the first packets need them. Without this, each packet of
 * a ring's first round is written to a page that is not present yet. The page fault takes some 20
 * us in a virtual machine, at either end, and delays an idle program's first answer.
 */
#include "memory.h"

#include <sys/mman.h>

#include <rte_common.h>

#define POPULATE_BYTES_MAX ((size_t)16 << 20) /* limit per connection: the engine waits */

#ifndef MADV_POPULATE_WRITE /* since Linux 5.14; before it, pages come one by one */
#define MADV_POPULATE_WRITE 23
#endif

void memory_populate(void *memory, size_t bytes, size_t before)
{
	const size_t left = POPULATE_BYTES_MAX - RTE_MIN(before, POPULATE_BYTES_MAX);
	const size_t now = RTE_MIN(bytes, left);

	/* Ignore errors: both calls only make the first packets faster. */
	madvise(memory, bytes, MADV_HUGEPAGE);
	madvise(memory, now, MADV_POPULATE_WRITE);
}
