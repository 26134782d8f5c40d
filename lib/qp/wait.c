/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair that waits for pages: only this queue pair waits. */
#include "internal.h"

static bool responder_waits(const struct qp *qp)
{
	return !qp_is_datagram(qp) && qp->responder.gap == GAP_PAGE;
}

static bool qp_waits(const struct qp *qp)
{
	return qp_sends_no_page(qp) || qp->replies.absent || responder_waits(qp) ||
	       (qp_is_datagram(qp) && qp->datagram.absent);
}

void qp_stop_waiting(struct qp *qp)
{
	if (qp->is_waiting)
		LIST_REMOVE(qp, wait_link);
	qp->is_waiting = false;
}

static void qp_begin_waiting(struct qp *qp)
{
	if (qp->is_waiting || qp->waiting == NULL)
		return;
	LIST_INSERT_HEAD(qp->waiting, qp, wait_link);
	qp->is_waiting = true;
}

/* Return true if the responder refused a request that the peer will repeat. It does not wait for a
 * page then, but the time since the first refusal still counts. */
static bool responder_remembers(const struct qp *qp)
{
	return !qp_is_datagram(qp) && qp->responder.page_wait.since_ns != PAGE_WAIT_NONE &&
	       psn_eq(qp->responder.page_psn, qp->responder.epsn);
}

void qp_await_pages(struct qp *qp, uint64_t now_ns)
{
	page_wait_tell(&qp->replies.page_wait, now_ns);
	if (!qp_is_datagram(qp))
		page_wait_tell(&qp->responder.page_wait, now_ns);
	if (qp_waits(qp))
		qp_begin_waiting(qp);
	else
		qp_stop_waiting(qp);
	qp->met_absent = qp->is_waiting || responder_remembers(qp);
}

void qp_resume(struct qp *qp, uint64_t now_ns)
{
	enum fault fault = FAULT_NONE;

	if (!qp->woken)
		return;
	qp->woken = false;
	completer_resume(&qp->completer, now_ns);
	if (responder_waits(qp) && qp->state >= IBV_QPS_RTR && qp->state != IBV_QPS_ERR)
		fault = responder_resume(&qp->responder);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

void qp_wake_waiting(struct qp_waiting *waiting, void (*each)(struct qp *qp, void *arg), void *arg)
{
	struct qp *qp;

	while ((qp = LIST_FIRST(waiting)) != NULL) {
		qp_stop_waiting(qp);
		qp->woken = true;
		each(qp, arg);
	}
}
