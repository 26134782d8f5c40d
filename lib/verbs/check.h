/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds mistakes of the program that do no harm here (check/finding.h). While nobody wants it, each
 * call that creates or ends an object reads one variable. */
#ifndef VERBS_CHECK_H
#define VERBS_CHECK_H

#include <infiniband/verbs.h>

#include "base/origin.h"
#include "check/finding.h"

struct face_context;
struct face_cq;
struct face_mr;
struct face_qp;
struct ibv_comp_channel;
struct ibv_context_ops;
struct ibv_cq_ex;
struct ibv_qp_ex;
struct ibv_wc;
struct verbs_context;

/* check_leaks.c */

/** Tell which objects the contexts of one file still have, which ends now. No lock. */
void check_closing(struct face_context *root) __attribute__((cold));

/** Keep where the program has created an object of a context, or the context. MT-safe. */
static inline void check_keep_origin(const void *object)
{
	if (unlikely(check_wanted))
		origin_keep(object);
}

/** Forget it. MT-safe. */
static inline void check_drop_origin(const void *object)
{
	if (unlikely(check_wanted))
		origin_drop(object);
}

/* check_poll.c */

/** Let the fields of a completion that have no meaning have no likely value (ibv_poll_cq(3), IBTA
 * 11.4.2.1). */
void check_poison(struct ibv_wc *wc, enum ibv_qp_type type) __attribute__((cold));

/** Put the function that watches arming into a context's table. `ops` has it already, or ours. */
void check_notify(struct ibv_context_ops *ops);

/** Note that the program polls a queue. */
void check_polled(struct face_cq *cq);

/** Look if a thread may sleep on the channel for ever. No lock. */
void check_sleep(struct ibv_comp_channel *channel) __attribute__((cold));

/* check_work.c: without checks these do nothing. */

/** Put the functions that watch into a new context's, queue's or queue pair's table. */
void check_operations(struct verbs_context *verbs);
void check_cq_ex(struct ibv_cq_ex *ex);
void check_qp_ex(struct ibv_qp_ex *ex);

/** Begin to watch a queue pair; forget what is posted to one with `check`, and end it. MT-safe; no
 * lock. */
void check_qp_created(struct face_qp *qp);
void check_qp_reset(struct face_qp *qp);
void check_qp_ended(struct face_qp *qp);

/** Begin and end to know a region. `moves`: posted work cannot use it any more. MT-safe; no lock.
 */
void check_mr_created(const struct face_mr *mr);
void check_mr_ended(const struct face_mr *mr, bool moves);

/** Forget all, in a child of fork(). While it has one thread. */
void check_forget_work(void);

#endif
