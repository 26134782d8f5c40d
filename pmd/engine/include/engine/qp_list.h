/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of queue pairs, linked through their qp_sched. The macros of sys/queue.h need the
 * definition of the element's struct; here it is hidden behind qp_sched().
 */
#ifndef ENGINE_QP_LIST_H
#define ENGINE_QP_LIST_H

#include <stddef.h>
#include <sys/queue.h>

#include "qp/qp.h"

TAILQ_HEAD(qp_list, qp);

#define QP_LIST_INSERT_TAIL(list, qp, field)                \
	do {                                                \
		struct qp_sched *sched_ = qp_sched(qp);     \
                                                            \
		sched_->field.tqe_next = NULL;              \
		sched_->field.tqe_prev = (list)->tqh_last;  \
		*(list)->tqh_last = (qp);                   \
		(list)->tqh_last = &sched_->field.tqe_next; \
	} while (0)

#define QP_LIST_REMOVE(list, qp, field)                                                            \
	do {                                                                                       \
		struct qp_sched *sched_ = qp_sched(qp);                                            \
                                                                                                   \
		if (sched_->field.tqe_next)                                                        \
			qp_sched(sched_->field.tqe_next)->field.tqe_prev = sched_->field.tqe_prev; \
		else                                                                               \
			(list)->tqh_last = sched_->field.tqe_prev;                                 \
		*sched_->field.tqe_prev = sched_->field.tqe_next;                                  \
	} while (0)

#endif
