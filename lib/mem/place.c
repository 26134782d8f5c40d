/* SPDX-License-Identifier: BSD-3-Clause */
/* Placing of received bytes in memory that may not be mapped. */
#include "mem/place.h"

#include <rte_branch_prediction.h>

#include "base/guard.h"

struct placement {
	uint8_t *dst;
	const uint8_t *src;
	uint32_t len;
	uint32_t next;
};

static void place(void *arg)
{
	const struct placement *placement = arg;

	place_strict(placement->dst, placement->src, placement->len, placement->next);
}

static __rte_noinline int place_bytes(uint8_t *dst, const uint8_t *src, uint32_t len, uint32_t next)
{
	struct placement placement = {.dst = dst, .src = src, .len = len, .next = next};

	return guard_run(place, &placement);
}

int place_guarded(uint8_t *dst, const uint8_t *src, uint32_t len, uint32_t next)
{
	/* Do what place_strict does with an aligned word. */
	if (len == sizeof(uint64_t) && likely((uintptr_t)dst % sizeof(uint64_t) == 0)) {
		__atomic_thread_fence(__ATOMIC_RELEASE);
		return guard_copy_word(dst, src);
	}
	return place_bytes(dst, src, len, next);
}
