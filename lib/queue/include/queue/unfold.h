/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choices that the specification leaves to an adapter, made by a seed (uroce-run --unfold): when
 * and in which order a program finds completions of different queue pairs, when it is woken, and
 * when its receive requests are there. lib/verbs draws; this file has what queues do then.
 *
 * Without --unfold nobody calls it.
 */
#ifndef QUEUE_UNFOLD_H
#define QUEUE_UNFOLD_H

#include <stdint.h>

#include "queue/cq.h"
#include "queue/rq.h"

/** Change the order of completions of different queue pairs that wait in the queue; one queue
 * pair's own order stays. MT-safe. */
void unfold_order(struct cq *cq, uint64_t seed);

/** Let completions stay that a poll could have taken, as if they came after it: the event that the
 * queue is armed for is raised now, or when it is armed next. MT-safe. */
void unfold_leave(struct cq *cq);

/** Raise the event that the queue is armed for, though no completion came. MT-safe. */
void unfold_wake(struct cq *cq);

/** Let the queue's receive requests not be there, and let them be there again. The engine is
 * stopped, or nobody else shows or hides. While they are hidden nobody may post. */
void unfold_hide(struct rq *rq);
void unfold_show(struct rq *rq);

#endif
