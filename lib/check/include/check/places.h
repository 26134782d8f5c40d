/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the device or a peer may write: regions with such rights, and the buffers of posted
 * receive requests, READs and atomics. If a buffer has changed, this tells if somebody else than
 * the program may have done it. When in doubt somebody may have.
 *
 * The caller has a lock.
 */
#ifndef CHECK_PLACES_H
#define CHECK_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct places_seen {
	bool open;	   /* somebody may write a part of it now */
	uint64_t openings; /* of all time; the sum over its parts */
};

/** Begin or end the time in which somebody may write the range. */
void places_open(uint64_t begin, uint64_t length);
void places_close(uint64_t begin, uint64_t length);

/** Add what is known of a range. Nobody has written it between two looks if it was not open at the
 * first one, and the number of openings is the same at the second one. */
void places_look(uint64_t begin, uint64_t length, struct places_seen *seen);

/** Forget all places, and do not look at them: the thread that changed them may be gone. */
void places_forget(void);

#endif
