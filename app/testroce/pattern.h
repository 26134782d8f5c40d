/* SPDX-License-Identifier: BSD-3-Clause */
/* Message contents that identify the message, so that the receiver can check every byte. */
#ifndef TESTROCE_PATTERN_H
#define TESTROCE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_MIN_BYTES 8 /* the tag itself */

/* A message's tag: its queue pair and its count there. */
#define PATTERN_COUNT_BITS 40

static inline uint64_t pattern_tag(uint64_t qp, uint64_t count)
{
	return qp << PATTERN_COUNT_BITS | (count & ((UINT64_C(1) << PATTERN_COUNT_BITS) - 1));
}

/** Write a tag, then bytes computed from the tag and the seed; `bytes` is at least
 * PATTERN_MIN_BYTES. MT-safe. */
void pattern_fill(void *memory, size_t bytes, uint64_t seed, uint64_t tag);

/** Return true if every byte matches the leading tag. Sets `tag` in any case. MT-safe. */
bool pattern_check(const void *memory, size_t bytes, uint64_t seed, uint64_t *tag);

#endif
