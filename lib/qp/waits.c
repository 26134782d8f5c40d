/* SPDX-License-Identifier: BSD-3-Clause */
/* What a queue pair waits for, as a user wants to know it. */
#include <stddef.h>

#include <rte_common.h>

#include "qp_internal.h"

/* Return true if it has requests that it may send. */
static bool has_requests(const struct qp *qp)
{
	return qp->sq.cons != sq_prod(&qp->sq) && qp_requests(qp);
}

enum qp_waits qp_waits_for(const struct qp *qp)
{
	const struct recovery *recovery = &qp->loss.recovery;

	if (qp_sends_no_page(qp) || qp->replies.absent ||
	    (qp_is_datagram(qp) && qp->datagram.absent))
		return QP_WAITS_PAGE;
	if (!has_requests(qp))
		return QP_WAITS_NOTHING;
	if (recovery->state == RECOVERY_RNR_WAIT)
		return QP_WAITS_RECEIVE;
	if (!psn_eq(qp->loss.una, qp->loss.top))
		return recovery->retries_left < recovery->retry_cnt ? QP_WAITS_ANSWER_AGAIN
								    : QP_WAITS_ANSWER;
	return qp->pacer.deadline_ns != PACER_NEVER ? QP_WAITS_RATE : QP_WAITS_POLL;
}

const char *qp_waits_name(uint32_t waits)
{
	static const char *const names[] = {
		[QP_WAITS_ANSWER] = "answer",
		[QP_WAITS_ANSWER_AGAIN] = "answer, sent again",
		[QP_WAITS_RECEIVE] = "receive request of the peer",
		[QP_WAITS_PAGE] = "page",
		[QP_WAITS_RATE] = "rate",
		[QP_WAITS_POLL] = "poll",
	};

	return waits < RTE_DIM(names) ? names[waits] : NULL;
}
