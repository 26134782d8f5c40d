/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: keys for parts of regions, given to peers and taken back without a control call
 * (ibv_alloc_mw(3), IBTA 10.6.7.2).
 *
 * A window of type 1 may be bound again at any time, and its key serves all queue pairs of its
 * domain. One of type 2 is what IBTA calls 2B: it is bound once, serves the queue pair that bound
 * it, and is invalidated before it is bound again; at the latest when that queue pair goes.
 */
#ifndef MEM_MW_H
#define MEM_MW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "base/verbs_later.h"
#include "mem/mr.h"

struct pd;

/* Access flags that a binding may have. What they say of local access is said of the region
 * already. */
#define MW_ACCESS                                                           \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |  \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
			IBV_ACCESS_ZERO_BASED | LATER_ACCESS_FLUSH_GLOBAL))

struct mw {
	struct mr view; /* what peers reach by the key; first, as the key table holds it. No access
			   while unbound */
	enum ibv_mw_type type;
	struct mr *region; /* that it is bound to, or NULL */
	/* of type 2, while bound */
	uint32_t qpn;	     /* of the queue pair that bound it */
	LIST_ENTRY(mw) link; /* in its list */
};

/* The windows of type 2 that a queue pair has bound. Zeros are an empty list. Engine's thread. */
LIST_HEAD(mw_list, mw);

/** Create a window that is bound to nothing. MT-safe. 0, -EINVAL for an unknown type or a domain
 * that is destroyed, -ENOMEM. */
int mw_create(struct pd *pd, enum ibv_mw_type type, struct mw **mw);

/** Unbind it if need be, and free it. The engine is stopped. */
void mw_destroy(struct mw *mw);

/* Which part of which region a window is to show. */
struct mw_binding {
	uint32_t window; /* a key that the window had, has or will have: its tag does not matter */
	uint32_t rkey;	 /* that it gets; of the same upper 24 bits */
	uint32_t lkey;	 /* of the region; not looked at where length is 0 */
	uint64_t addr;	 /* in the region, as its key has it */
	uint64_t length; /* bytes; 0 unbinds a window of type 1 */
	unsigned int access; /* of MW_ACCESS */
};

/**
 * Bind a window. Engine's thread.
 *
 * @param pd
 *   Of the queue pair, as `qpn`.
 * @param bound
 *   Of the queue pair: it gets the window if that is of type 2. NULL where no requests come to the
 *   queue pair, so that such a window could serve nobody.
 * @return
 *   0; -EINVAL where there is no such window or region, one is of another domain, the window is of
 *   type 2 and bound or nobody's, the region does not allow windows or this access, or the part is
 * not in it.
 */
int mw_bind(const struct pd *pd, uint32_t qpn, struct mw_list *bound,
	    const struct mw_binding *binding);

/** Unbind a window of type 2 by its key. Engine's thread. 0, or -EINVAL where it is not one that
 * this queue pair has bound. */
int mw_invalidate(const struct pd *pd, uint32_t qpn, uint32_t rkey);

/** Unbind all windows of type 2 that a queue pair has bound, since nobody else could. Engine's
 * thread, or it is stopped. */
void mw_unbind_all(struct mw_list *bound);

/** The window that a region found by its key stands for. Only of MR_WINDOW. */
static inline struct mw *mw_of_view(const struct mr *view)
{
	return (struct mw *)(uintptr_t)view;
}

#endif
