/* SPDX-License-Identifier: BSD-3-Clause */
/* An ethdev that stands in for a port which is not an ethdev, so that DPDK's tools (pdump) see the
 * port's packets. */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <rte_ethdev.h>

/**
 * Make the ethdev. After EAL's start. Not MT-safe.
 *
 * @param id
 *   Set to its DPDK number.
 * @return
 *   0 or -errno.
 */
int stand_in_make(const char *ifname, struct rte_mempool *pool, uint16_t *id);

/** Show received packets of a burst of `max` to pdump. Returns how many remain. Engine's thread. */
uint16_t stand_in_received(uint16_t id, struct rte_mbuf **mbufs, uint16_t n, uint16_t max);

/** Show packets to be sent to pdump. Returns how many remain. Engine's thread. */
uint16_t stand_in_sends(uint16_t id, struct rte_mbuf **mbufs, uint16_t n);

#endif
