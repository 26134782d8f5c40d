/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memory window of one flow: who receives binds it in his own send queue, tells its key, and the
 * flow's requests then name that instead of the region's. It is bound and closed again some times;
 * each time is an episode. Works of both directions wait for one another for that, as applications
 * do that talk; always for works that were made up before, so that nobody waits for ever.
 */
#ifndef SIM_WINDOW_H
#define SIM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "memory.h"

#define EPISODES_USUAL 6
#define EPISODES_MAX   48

struct flow;
struct mw;
struct work;

/* How an episode ends. */
enum closing {
	CLOSED_NEVER,
	CLOSED_BY_SEND,	 /* SEND with invalidate, by who used it */
	CLOSED_BY_OWNER, /* LOCAL_INV; of a window of type 1, by binding it to nothing */
};

struct episode {
	struct span span; /* that is bound */
	bool whole;	  /* all of the region */
	bool zero_based;
	enum closing closing;
	int32_t opens;	  /* the owner's work that binds it, -1 until that is made up */
	int32_t last_use; /* the user's newest work through it; its SEND with invalidate */
	uint32_t rkey;	  /* known when the owner has posted that */
	struct ibv_mr mr; /* the region, as the owner holds it */
};

struct window {
	bool in_use;
	enum ibv_mw_type type;
	struct episode episodes[EPISODES_MAX];
	unsigned int most; /* episodes that it may have */
	unsigned int count;
	unsigned int planned; /* works that the owner has for it so far: two an episode */
	bool open;	      /* while it is made up: the newest episode can be used */

	struct mw *mw;
	struct ibv_mw ibv; /* as the owner holds it */
};

/** Have a work of the flow use the window, if it can, now and then; or end an episode. */
void window_use(struct flow *flow, struct work *work);

/** Whether a SEND of the flow may end an episode now; then it is made one with invalidate. */
bool window_close(struct flow *flow, struct work *work);

/** The flow is made up: the owner's next work for its window. false where there is none. */
bool window_plan(struct flow *user, struct work *work, int32_t index);

/** Create and destroy it. */
void window_start(struct flow *flow);
void window_stop(struct flow *flow);

/** Whether what a work waits for is done. */
bool window_lets(const struct flow *flow, const struct work *work);

/** Address and key of remote memory through the window. */
void window_aim(const struct flow *flow, const struct work *work, uint64_t *addr, uint32_t *key);

/** Fill in a send request that binds, closes or invalidates. */
void window_fill(struct flow *flow, const struct work *work, struct ibv_send_wr *wr);

/** The key that a work invalidates. */
uint32_t window_invalidates(const struct flow *flow, const struct work *work);

#endif
