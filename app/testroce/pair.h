/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of a test by one command: two processes, connected by memif. */
#ifndef TESTROCE_PAIR_H
#define TESTROCE_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "testroce_options.h"

struct pair {
	pid_t child; /* the passive side; 0 in itself */
	char folder[32];
	char where[32]; /* the passive side listens there */
};

/**
 * Fork, before DPDK is started: the child's options are those of a passive side, the parent's those
 * of the active one, and each keeps to a CPU of its own where there are two. Not MT-safe.
 *
 * @return
 *   0 in both, or -errno with `error`.
 */
int pair_fork(struct pair *pair, struct options *options, char *error, size_t error_size);

/** Wait for the passive side, which ends when the active one has gone; remove the memif socket.
 * Where it was not served, the active side has failed, and may not have been there at all: it is
 * ended. */
void pair_join(struct pair *pair, bool was_served);

#endif
