/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of each kind of damage. */
#ifndef IMPAIR_COUNTS_H
#define IMPAIR_COUNTS_H

#include <stdint.h>

enum impair_kind {
	IMPAIR_LOST,
	IMPAIR_CORRUPTED,
	IMPAIR_DUPLICATED,
	IMPAIR_REORDERED,
	IMPAIR_MARKED,
	IMPAIR_OVERFLOWED, /* dropped, because `limit` packets were waiting */
	IMPAIR_KINDS,
};

struct impair_counts {
	uint64_t of[IMPAIR_KINDS];
};

/** Return the name of a count: "impair_lost" and so on. MT-safe. */
const char *impair_count_name(enum impair_kind kind);

#endif
