/* SPDX-License-Identifier: BSD-3-Clause */
/* The way in of an engine's turn: frames to queue pairs, or to the host's protocols. */
#ifndef RX_H
#define RX_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct rte_mbuf;

/** Take in and free a burst of frames; `looped`: they are packets of ours to ourselves, and need no
 * ICRC. Owner. */
void rx_input_burst(struct engine *engine, struct rte_mbuf **mbufs, uint16_t n, bool looped);

#endif
