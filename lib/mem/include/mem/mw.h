/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: keys for parts of regions, which are given to peers and taken back without a
 * control call (ibv_alloc_mw(3), IBTA 10.6.7.2).
 *
 * A window of type 1 can be bound again at any time, and its key is valid on all queue pairs of its
 * domain. A window of type 2 is IBTA's type 2B: it is bound once, its key is valid on the queue
 * pair that bound it, and it must be invalidated before it is bound again. It is invalidated at the
 * latest when that queue pair is destroyed.
 */
#ifndef MEM_MW_H
#define MEM_MW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>
#include <rte_spinlock.h>

#include "base/verbs_later.h"
#include "mem/mr.h"

struct pd;

/* Access flags that a binding may have. The region decides on local access. */
#define MW_ACCESS                                                           \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |  \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
			IBV_ACCESS_ZERO_BASED | LATER_ACCESS_FLUSH_GLOBAL))

struct mw {
	struct mr view; /* the part that peers access by the key; first, as the key table holds it.
			   No access while unbound. What a binding changes is atomic: engines read
			   it without the lock */
	enum ibv_mw_type type;
	rte_spinlock_t lock; /* of the engines that bind it */
	uint32_t changes;  /* odd while it changes; written under lock, read by all engines; atomic
			    */
	struct mr *region; /* the region that it is bound to, or NULL */
	/* only in a bound window of type 2 */
	uint32_t qpn;	     /* the queue pair that bound it; atomic, as the view is */
	LIST_ENTRY(mw) link; /* in the list of that queue pair */
};

/* The windows of type 2 that a queue pair has bound. All zeros is an empty list. Engine's
 * thread. */
LIST_HEAD(mw_list, mw);

/** Create an unbound window. MT-safe. 0, -EINVAL for an unknown type or a destroyed domain,
 * -ENOMEM. */
int mw_create(struct pd *pd, enum ibv_mw_type type, struct mw **mw);

/** Unbind the window if it is bound, and free it. The engine is stopped. */
void mw_destroy(struct mw *mw);

/* A binding: the part of a region that a window shows. */
struct mw_binding {
	uint32_t window;     /* a key that the window had, has or will have: the tag is ignored */
	uint32_t rkey;	     /* the window's new key; with the same upper 24 bits */
	uint32_t lkey;	     /* the region's key; ignored if length is 0 */
	uint64_t addr;	     /* address in the region's address space */
	uint64_t length;     /* bytes; 0 unbinds a window of type 1 */
	unsigned int access; /* of MW_ACCESS */
};

/**
 * Bind a window. Engine's thread.
 *
 * @param pd
 *   The queue pair's domain; `qpn` is the queue pair's number.
 * @param bound
 *   The queue pair's list, to which a window of type 2 is added. NULL for a queue pair that
 *   receives no requests: a window of type 2 would be of no use there.
 * @return
 *   0; -EINVAL if the window or the region does not exist or is of another domain, the window is of
 *   type 2 and already bound or `bound` is NULL, the region does not allow windows or this access,
 *   or the part is not in the region.
 */
int mw_bind(const struct pd *pd, uint32_t qpn, struct mw_list *bound,
	    const struct mw_binding *binding);

/** Unbind a window of type 2 by its key. Engine's thread. 0, or -EINVAL if this queue pair has not
 * bound such a window. */
int mw_invalidate(const struct pd *pd, uint32_t qpn, uint32_t rkey);

/** Unbind all windows of type 2 that a queue pair has bound: after its end nobody else could.
 * Engine's thread, or the engine is stopped. */
void mw_unbind_all(struct mw_list *bound);

/** Return the window of a region that was found by key. Only for MR_WINDOW. */
static inline struct mw *mw_of_view(const struct mr *view)
{
	return (struct mw *)(uintptr_t)view;
}

#endif
