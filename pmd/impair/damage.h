/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes in a packet: a flipped bit, a congestion mark. */
#ifndef IMPAIR_DAMAGE_H
#define IMPAIR_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "psock/udp_frame.h"

struct rte_mbuf;

/** Find the headers of a RoCE packet. Return false if the frame is not one. MT-safe. */
bool damage_find(const struct rte_mbuf *mbuf, struct udp_frame *headers);

/**
 * Flip one bit that the ICRC protects, or one of the ICRC itself. MT-safe.
 *
 * @param random
 *   Returns a random number below `n`.
 * @return
 *   False if the packet has no such bit in its first buffer.
 */
bool damage_flip(struct rte_mbuf *mbuf, const struct udp_frame *headers,
		 uint32_t (*random)(void *arg, uint32_t n), void *arg);

/** Set "congestion experienced" in the IP header. The ICRC does not cover it. MT-safe. */
void damage_mark(struct rte_mbuf *mbuf, const struct udp_frame *headers);

#endif
