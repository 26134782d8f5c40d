/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a forwarding DPDK application that does not depend on uroce; it forwards between
 * ports 0 and 1. A failure ends the program with one line. */
#ifndef EXAMPLES_TWO_PORTS_H
#define EXAMPLES_TWO_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

/** Create the buffers for received frames. So many ports must exist. From now on SIGTERM ends the
 * program. */
struct rte_mempool *forward_prepare(uint16_t ports);

/** Start a port in promiscuous mode with `queues` queues in each direction. */
void forward_start_port(uint16_t id, uint16_t queues, struct rte_mempool *pool);

/** Return false after SIGTERM. */
bool forward_goes_on(void);

/** Send frames, and drop what the port does not take. */
void forward_send(uint16_t id, struct rte_mbuf **mbufs, uint16_t n);

#endif
