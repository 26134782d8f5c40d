/* SPDX-License-Identifier: BSD-3-Clause */
/* A filter that recognises requests that came before. */
#include "grey.h"

#include <stdlib.h>
#include <string.h>

#define GREY_BYTES (GREY_BITS / 8)

static bool make(struct grey *grey)
{
	if (grey->bits[0])
		return true;
	grey->bits[0] = calloc(1, 2 * GREY_BYTES);
	if (!grey->bits[0])
		return false;
	grey->bits[1] = grey->bits[0] + GREY_BYTES / sizeof(uint64_t);
	return true;
}

static void forget(struct grey *grey, uint64_t now_ns)
{
	uint64_t *oldest = grey->bits[1];

	if (now_ns - grey->since_ns < GREY_PERIOD_NS)
		return;
	if (now_ns - grey->since_ns >= 2 * GREY_PERIOD_NS)
		memset(grey->bits[0], 0, GREY_BYTES);
	grey->bits[1] = grey->bits[0];
	grey->bits[0] = oldest;
	memset(oldest, 0, GREY_BYTES);
	grey->since_ns = now_ns;
}

bool grey_seen(struct grey *grey, uint64_t hash, uint64_t now_ns)
{
	bool seen[2] = {true, true};

	if (!make(grey))
		return false;
	forget(grey, now_ns);
	/* Compute all positions from the two halves of one hash (Kirsch and Mitzenmacher). */
	for (uint32_t i = 0; i < GREY_PROBES; i++) {
		const uint32_t bit = ((uint32_t)hash + i * (uint32_t)(hash >> 32 | 1)) % GREY_BITS;
		const uint64_t mask = UINT64_C(1) << bit % 64;

		for (int j = 0; j < 2; j++)
			seen[j] &= (grey->bits[j][bit / 64] & mask) != 0;
		grey->bits[0][bit / 64] |= mask;
	}
	return seen[0] || seen[1];
}

void grey_fini(struct grey *grey)
{
	/* Both filters are one allocation, but they swap places: free the lower address. */
	free(grey->bits[0] < grey->bits[1] ? grey->bits[0] : grey->bits[1]);
}
