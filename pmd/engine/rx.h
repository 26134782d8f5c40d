/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive path of an engine's turn: frames go to queue pairs or to the host's protocols. */
#ifndef RX_H
#define RX_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct rte_mbuf;

/** Process and free a burst of frames. `looped`: they are our own packets to ourselves, and need no
 * ICRC check. Owner. */
void rx_input_burst(struct engine *engine, struct rte_mbuf **mbufs, uint16_t n, bool looped);

#endif
