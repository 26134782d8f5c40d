/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Having the pages of a wire's memory there before its first packets need them. Each packet of the
 * first round of a ring is in a page that nobody has touched yet, and waits for it at either end:
 * some 20 us in a virtual machine, which an idle program's first answer is late by.
 */
#include "memory.h"

#include <sys/mman.h>

#include <rte_common.h>

#define HAVE_BYTES_MAX ((size_t)16 << 20) /* of a wire that has more: the engine waits for it */

#ifndef MADV_POPULATE_WRITE /* since Linux 5.14; before it, pages come one by one */
#define MADV_POPULATE_WRITE 23
#endif

void memory_have(void *memory, size_t bytes, size_t had)
{
	const size_t now = RTE_MIN(bytes, HAVE_BYTES_MAX - RTE_MIN(had, HAVE_BYTES_MAX));

	/* Neither is more than a wish. */
	madvise(memory, bytes, MADV_HUGEPAGE);
	madvise(memory, now, MADV_POPULATE_WRITE);
}
