/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to the internals of a queue pair, for tests that read its PSNs or move them. */
#ifndef SIM_INSIDE_H
#define SIM_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

struct qp;

/** Return the oldest PSN that is not acknowledged, and one past the newest that was ever sent. */
struct psn inside_una(const struct qp *qp);
struct psn inside_top(const struct qp *qp);

/** Return the PSN that the responder expects. */
struct psn inside_expected(const struct qp *qp);

/** Return how far ahead of the expected one the responder keeps a packet, in PSNs. */
uint32_t inside_reach(const struct qp *qp);

/** Return how many packets the requester may have in flight now. */
uint32_t inside_window(const struct qp *qp);

/** Return true if that is the number that the queue pair was created with, and losses reduce it. */
bool inside_window_is_whole(const struct qp *qp);

/** Return true if its peer is known to be SACK-capable: losses do not reduce the window. */
bool inside_reports_gaps(const struct qp *qp);

/** Return true if the requester retransmits packets that were reported lost, or seem to be. */
bool inside_retransmits(const struct qp *qp);

/** Return true if every request that is posted was executed. */
bool inside_is_done(const struct qp *qp);

/** Return true if the queue pair grants READs. */
bool inside_is_readable(const struct qp *qp);

/** Return the PSNs of the longest READ that the responder takes. */
uint32_t inside_longest_read(const struct qp *qp);

/**
 * Leave the requester as READs of so many PSNs, all answered, would leave it: make the calls that
 * they would have made to the rooms below, once instead of once a packet. Nothing may be in flight.
 */
void inside_age_requester(struct qp *qp, uint32_t psns, uint64_t now_ns);

/** Let the responder receive one READ of so many PSNs by this key, as if its responses had been
 * sent. Return false if it does not accept the READ. */
bool inside_age_responder(struct qp *qp, uint32_t psns, uint32_t rkey, uint32_t srqn);

#endif
