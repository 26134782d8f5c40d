/* SPDX-License-Identifier: BSD-3-Clause */
/* The own part of a DPDK application that forwards between ports 0 and 1, before uroce comes
 * into it. What fails ends the program with one line. */
#ifndef EXAMPLES_FORWARD_H
#define EXAMPLES_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

/** Buffers for what it receives; both ports have to be there. It ends by SIGTERM from here on. */
struct rte_mempool *forward_prepare(void);

/** So many queues each way, started, for frames to any address. */
void forward_start_port(uint16_t id, uint16_t queues, struct rte_mempool *pool);

/** Until it shall end. */
bool forward_goes_on(void);

/** Send frames, and drop what the port does not take. */
void forward_send(uint16_t id, struct rte_mbuf **mbufs, uint16_t n);

#endif
