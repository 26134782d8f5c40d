/* SPDX-License-Identifier: BSD-3-Clause */
/* Placing inbound bytes so that who polls the last of them finds all the others already there. */
#ifndef MEM_PLACE_H
#define MEM_PLACE_H

#include <stdint.h>
#include <string.h>

/*
 * Copy with the last eight bytes (or as many as there are) stored last. memcpy alone may store the
 * end first. Programs poll the last byte of an RDMA WRITE (perftest's latency test does); the
 * release fence orders the bulk before the tail, and pairs with the poller's own load.
 */
static inline void place_strict(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	uint64_t tail;

	if (len > sizeof(tail)) {
		memcpy(dst, src, len - sizeof(tail));
		dst += len - sizeof(tail);
		src += len - sizeof(tail);
		len = sizeof(tail);
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	if (len == sizeof(tail)) {
		memcpy(&tail, src, sizeof(tail));
		*(volatile uint64_t __attribute__((aligned(1), may_alias)) *)dst = tail;
		return;
	}
	for (uint32_t i = 0; i < len; i++)
		((volatile uint8_t *)dst)[i] = src[i];
}

#endif
