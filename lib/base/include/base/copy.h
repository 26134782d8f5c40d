/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying to memory whose lines are elsewhere: in no cache, or in another CPU's. */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/prefetch.h"
#include "base/tuning.h"

/* One is copied while the lines of the next are on their way. */
#define COPY_PIECE_BYTES ((size_t)1024)

/** Fetch the lines of `len` bytes that are written soon, or those of a piece of them. MT-safe. */
static inline void copy_expect(const void *to, size_t len)
{
	prefetch_write_bytes(to, RTE_MIN(len, COPY_PIECE_BYTES));
}

/**
 * memcpy that asks for the lines it writes before it comes to them: a CPU waits for a few stores at
 * a time, and each line of memory would be waited for. MT-safe.
 *
 * @param next
 *   Bytes behind these that are written next, whose first lines are asked for as well.
 */
static inline void copy_ahead(uint8_t *to, const uint8_t *from, size_t len, size_t next)
{
	while (len > COPY_PIECE_BYTES) {
		if (likely(tuning.prefetch))
			copy_expect(to + COPY_PIECE_BYTES, len - COPY_PIECE_BYTES + next);
		memcpy(to, from, COPY_PIECE_BYTES);
		to += COPY_PIECE_BYTES;
		from += COPY_PIECE_BYTES;
		len -= COPY_PIECE_BYTES;
	}
	if (next > 0 && likely(tuning.prefetch))
		copy_expect(to + len, next);
	memcpy(to, from, len);
}

#endif
