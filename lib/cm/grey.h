/* SPDX-License-Identifier: BSD-3-Clause */
/* Which requests have come before, in a fixed amount of memory. Private to the room. */
#ifndef CM_GREY_H
#define CM_GREY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GREY_BITS      (1u << 20)	     /* of a filter; 100,000 requests set a third */
#define GREY_PERIOD_NS UINT64_C(20000000000) /* longer than a peer waits before it asks again */
#define GREY_PROBES    4

/*
 * Two Bloom filters, of the present period and the one before. Made at the first need. A request
 * that has come is always found for a period at least; some that have not come are found, too.
 */
struct grey {
	uint64_t *bits[2];
	uint64_t since_ns;
};

/**
 * Note a request. Not MT-safe.
 *
 * @param hash
 *   Of all that tells it from others, keyed with what nobody can guess.
 * @return
 *   Whether it has come before; false without memory, too.
 */
bool grey_seen(struct grey *grey, uint64_t hash, uint64_t now_ns);

void grey_fini(struct grey *grey);

#endif
