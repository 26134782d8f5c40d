/* SPDX-License-Identifier: BSD-3-Clause */
/* The insides of queue pairs, for tests that must know where their PSNs are, or move them. */
#ifndef SIM_INSIDE_H
#define SIM_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

struct qp;

/** The oldest PSN that a requester has in flight, and one past the newest that it ever sent. */
struct psn inside_una(const struct qp *qp);
struct psn inside_top(const struct qp *qp);

/** The PSN that a responder expects. */
struct psn inside_expected(const struct qp *qp);

/** How many packets a requester may have in flight now. */
uint32_t inside_window(const struct qp *qp);

/** Whether they are as many as they can be. */
bool inside_window_is_whole(const struct qp *qp);

/** Whether a requester sends again what its peer told it was lost, or what its answers show. */
bool inside_repairs(const struct qp *qp);

/** Whether a requester has executed all that is posted, complete or not. */
bool inside_is_done(const struct qp *qp);

/** Whether a responder may be asked for READs. */
bool inside_is_readable(const struct qp *qp);

/** The longest READ that a responder takes, in PSNs. */
uint32_t inside_longest_read(const struct qp *qp);

/**
 * READs of so many PSNs were requested and answered. None of them is played; what the library calls
 * for them is called, in longer steps, so that whatever that keeps is as it would be: moved along,
 * or left behind. Nothing is in flight.
 */
void inside_age_requester(struct qp *qp, uint32_t psns, uint64_t now_ns);

/** The other side of it: one READ came, by this key, and its responses have gone out. Whether it
 * was taken. */
bool inside_age_responder(struct qp *qp, uint32_t psns, uint32_t rkey, uint32_t srqn);

#endif
