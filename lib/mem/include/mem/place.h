/* SPDX-License-Identifier: BSD-3-Clause */
/* Placing of received bytes in memory: a program that polls the last byte finds all others in
 * place. */
#ifndef MEM_PLACE_H
#define MEM_PLACE_H

#include <stdint.h>
#include <string.h>

#include <rte_atomic.h>

#include "base/copy.h"

/* Eight bytes at any address, written by one store. */
struct place_tail {
	uint64_t v;
} __attribute__((packed, may_alias));

/*
 * Copy, and store the last eight bytes last (or as many as there are). memcpy alone may store the
 * end first. Programs poll the last byte of an RDMA WRITE (perftest's latency test does). The
 * barrier orders the other bytes before the last eight; it pairs with the poller's own load. `next`
 * is the number of bytes that will be written directly behind these; their cache lines are fetched.
 */
static inline void place_strict(uint8_t *dst, const uint8_t *src, uint32_t len, uint32_t next)
{
	uint64_t tail;

	if (len > sizeof(tail)) {
		copy_ahead(dst, src, len - sizeof(tail), next > 0 ? sizeof(tail) + next : 0);
		dst += len - sizeof(tail);
		src += len - sizeof(tail);
		len = sizeof(tail);
		rte_smp_wmb();
	}
	if (len == sizeof(tail)) {
		memcpy(&tail, src, sizeof(tail));
		((volatile struct place_tail *)dst)->v = tail;
		return;
	}
	for (uint32_t i = 0; i < len; i++)
		((volatile uint8_t *)dst)[i] = src[i];
}

/** Do place_strict to memory that may not be mapped; the `next` bytes may not be mapped either.
 * MT-safe. 0, or -EFAULT: some of the bytes may have been stored. */
int place_guarded(uint8_t *dst, const uint8_t *src, uint32_t len, uint32_t next);

#endif
