/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults that one work request can have on purpose, and the completions that both sides must
 * then get. */
#ifndef SIM_MISHAP_H
#define SIM_MISHAP_H

#include <stdbool.h>

#include <infiniband/verbs.h>

struct flow;
struct rng;
struct work;

enum mishap {
	MISHAP_NONE,
	MISHAP_BAD_RKEY,      /* no such key */
	MISHAP_OUT_OF_RANGE,  /* the last byte is beyond the region's end */
	MISHAP_REGION_ACCESS, /* the region does not grant the access */
	MISHAP_QP_ACCESS,     /* the peer's queue pair does not grant the operation */
	MISHAP_RECEIVE_SHORT,
	MISHAP_RECEIVE_KEY,    /* the receive request's memory has no such key */
	MISHAP_RECEIVE_ACCESS, /* the receive request's memory may not be written */
	MISHAP_SEND_KEY,       /* the gather list names no such key */
	MISHAP_SEND_RANGE,     /* the gather list reaches behind its region */
	MISHAP_LANDING_KEY,    /* READ or atomic into memory without such a key */
	MISHAP_NOT_READY,      /* no receive request for it, ever */
	MISHAP_STALE_WINDOW,   /* the key of a window that an earlier SEND has invalidated */
	MISHAP_BIND,	       /* a window is bound to no region */
	MISHAPS,
};

struct mishap_info {
	const char *name;
	enum ibv_wc_status sender;   /* status of the work request */
	enum ibv_wc_status receiver; /* of the receive request in use; IBV_WC_SUCCESS: none fails */
	int event;	 /* event at the peer if no receive request reports the fault; -1: none */
	bool peer_fails; /* the peer's queue pair goes to ERR */
	bool runs_on;	 /* later work requests may be executed before the fault is noticed */
};

const struct mishap_info *mishap_info(enum mishap mishap);

/** Return the newest work request before this one that invalidates a window, or NULL. */
const struct work *mishap_stale(const struct flow *flow, const struct work *work);

/**
 * Make one work request of a flow fail.
 *
 * @return
 *   false where the flow has no work that this can happen to.
 */
bool mishap_inflict(struct flow *flow, enum mishap mishap, struct rng *rng);

#endif
