/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of a test by one command: two processes, connected by memif. */
#ifndef TESTROCE_PAIR_H
#define TESTROCE_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "testroce_options.h"

struct pair {
	pid_t child; /* the passive process; 0 in that process itself */
	char folder[32];
	char where[32]; /* the passive side listens there */
};

/**
 * Fork; call it before DPDK starts. The child gets the options of the passive side, the parent
 * those of the active side. Each process is pinned to CPUs of its own if at least two are allowed:
 * one for each thread of the test, but at most half of those allowed. Not MT-safe.
 *
 * @return
 *   0 in both processes, or -errno with `error`.
 */
int pair_fork(struct pair *pair, struct options *options, char *error, size_t error_size);

/**
 * Wait for the passive process and remove the memif socket. The passive process ends after the
 * active side disconnects. If `was_served` is false, the active side has failed, perhaps before it
 * connected, so the function kills the passive process.
 */
void pair_join(struct pair *pair, bool was_served);

#endif
