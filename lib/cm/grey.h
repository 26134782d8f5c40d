/* SPDX-License-Identifier: BSD-3-Clause */
/* A filter that recognises requests that came before, in a fixed amount of memory. Private to the
 * room. */
#ifndef CM_GREY_H
#define CM_GREY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GREY_BITS (1u << 20) /* bits of a filter; 100,000 requests set a third of them */
#define GREY_PERIOD_NS \
	UINT64_C(20000000000) /* longer than a peer waits before it repeats a request */
#define GREY_PROBES 4

/*
 * Two Bloom filters, for the present period and the one before; allocated on first need. A request
 * that came before is always found for at least one period. Some requests that never came are
 * found, too.
 */
struct grey {
	uint64_t *bits[2];
	uint64_t since_ns;
};

/**
 * Note a request. Not MT-safe.
 *
 * @param hash
 *   Hash of all that distinguishes it from other requests, with a secret key.
 * @return
 *   True if it came before. Always false if there is no memory.
 */
bool grey_seen(struct grey *grey, uint64_t hash, uint64_t now_ns);

void grey_fini(struct grey *grey);

#endif
