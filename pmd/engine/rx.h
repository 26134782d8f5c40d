/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive path of an engine's poll: frames go to queue pairs or to the host's protocols. */
#ifndef RX_H
#define RX_H

#include <stdint.h>

struct engine;
struct rte_mbuf;

/* Where frames come from. */
enum rx_source {
	RX_PORT,    /* the engine's port */
	RX_CROSSED, /* other engines: they have sent them, or received them in place of this one */
	RX_LOOPED,  /* the engine has sent them to itself: they need no ICRC check */
};

/** Process and free a burst of frames. Owner. */
void rx_input_burst(struct engine *engine, struct rte_mbuf **mbufs, uint16_t n,
		    enum rx_source source);

#endif
