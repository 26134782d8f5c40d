/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long packets are stored in memory that another CPU reads.
 *
 * Which way is fastest depends on the processor and on the place of the two CPUs: a line that was
 * just written may be slow to fetch from the writer's cache, and fast to fetch from a cache that
 * both CPUs share; without such a cache, memory may be faster than either.
 */
#ifndef BASE_STORE_H
#define BASE_STORE_H

#include <stdbool.h>

#include "base/choice.h"

enum store_way {
	STORE_RECENT, /* ordinary stores; the buffer that came back last is used first */
	STORE_ROUND,  /* ordinary stores; all buffers are used in turn */
	STORE_PAST,   /* non-temporal stores, past the caches */
	STORE_WAYS
};

/** Make all ports store in one way where it is possible, without trials; STORE_WAYS: let them
 * choose. Before the first device exists. */
void store_force(enum store_way way);

/** Return true if ports choose: it is neither forced nor switched off. MT-safe. */
bool store_is_free(void);

/** Return the way to store the next long packet. MT-safe. */
enum store_way store_way(const struct choice *choice);

#endif
