/* SPDX-License-Identifier: BSD-3-Clause */
/* Choices by a seed in the tables of calls (queue/unfold.h). */
#ifndef VERBS_UNFOLD_H
#define VERBS_UNFOLD_H

#include <stdbool.h>

struct face_cq;
struct ibv_cq_ex;
struct verbs_context;

/* Set with the first context, and then constant. */
extern bool unfold_wanted;

/** Put the functions that draw into a new context's or queue's table. Do nothing without --unfold.
 */
void unfold_operations(struct verbs_context *verbs);
void unfold_cq_ex(struct ibv_cq_ex *ex);

/** Choose how late the events of a new queue are, and how many completions each has. */
void unfold_cq_created(struct face_cq *cq);

/** Begin anew, in a child of fork(). */
void unfold_forget(void);

#endif
