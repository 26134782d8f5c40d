/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memory window of one flow. The receiver binds it in its own send queue and tells the peer its
 * key, and the flow's requests name this key instead of the region's. A window is bound and closed
 * several times; each time is an episode. For that, requests of both directions wait for each
 * other, as in applications that communicate. They wait only for requests that were generated
 * before them, so that none waits for ever.
 */
#ifndef SIM_WINDOW_H
#define SIM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "sim_memory.h"

#define EPISODES_USUAL 6
#define EPISODES_MAX   48

struct flow;
struct mw;
struct work;

/* The end of an episode. */
enum closing {
	CLOSED_NEVER,
	CLOSED_BY_SEND,	 /* SEND with invalidate, by the user */
	CLOSED_BY_OWNER, /* LOCAL_INV; with a window of type 1, a binding of length 0 */
};

struct episode {
	struct span span; /* that is bound */
	bool whole;	  /* all of the region */
	bool zero_based;
	enum closing closing;
	int32_t opens;	  /* the owner's request that binds it; -1 until that is generated */
	int32_t last_use; /* the user's newest request through it: its SEND with invalidate */
	uint32_t rkey;	  /* set when the owner has posted the bind */
	struct ibv_mr mr; /* the region, as the owner has it */
};

struct window {
	bool in_use;
	enum ibv_mw_type type;
	struct episode episodes[EPISODES_MAX];
	unsigned int most; /* limit of its episodes */
	unsigned int count;
	unsigned int planned; /* requests that the owner has for it so far: two for each episode */
	bool open;	      /* during generation: the newest episode can be used */

	struct mw *mw;
	struct ibv_mw ibv; /* the window, as the owner has it */
};

/** Let a request of the flow use the window now and then, if it can, or end an episode. */
void window_use(struct flow *flow, struct work *work);

/**
 * Return true if a SEND of the flow may end an episode now; it then becomes one with invalidate.
 */
bool window_close(struct flow *flow, struct work *work);

/**
 * Generate the owner's next request for its window, after the flow. Return false if there is none.
 */
bool window_plan(struct flow *user, struct work *work, int32_t index);

/** Create and destroy it. */
void window_start(struct flow *flow);
void window_stop(struct flow *flow);

/** Return true if everything that a request waits for is done. */
bool window_lets(const struct flow *flow, const struct work *work);

/** Return address and key of remote memory through the window. */
void window_aim(const struct flow *flow, const struct work *work, uint64_t *addr, uint32_t *key);

/** Fill in a send request that binds, closes or invalidates. */
void window_fill(struct flow *flow, const struct work *work, struct ibv_send_wr *wr);

/** Return the key that a request invalidates. */
uint32_t window_invalidates(const struct flow *flow, const struct work *work);

#endif
