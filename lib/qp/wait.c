/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair that waits for pages: only this queue pair waits. */
#include "qp_internal.h"

/* Return true if the receiving role keeps packets until a page is in memory. */
static bool qp_keeps(const struct qp *qp)
{
	if (!qp_receives(qp))
		return false;
	return qp_is_datagram(qp) ? qp->datagram.ooo.count > 0 : qp->responder.gap == GAP_PAGE;
}

static bool qp_waits(const struct qp *qp)
{
	return qp_sends_no_page(qp) || qp->replies.absent || qp_keeps(qp) ||
	       (qp_is_datagram(qp) && qp->datagram.absent);
}

void qp_stop_waiting(struct qp *qp)
{
	if (qp->is_waiting)
		TAILQ_REMOVE(qp->waiting, qp, wait_link);
	qp->is_waiting = false;
}

/* Let the queue pair that began to wait first look again first: the pager brings in only some pages
 * at a time. */
static void qp_begin_waiting(struct qp *qp)
{
	if (qp->is_waiting || qp->waiting == NULL)
		return;
	TAILQ_INSERT_TAIL(qp->waiting, qp, wait_link);
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
	if (qp->is_waiting || responder_remembers(qp))
		qp->unusual |= QP_MET_ABSENT;
	else
		qp->unusual &= (uint8_t)~QP_MET_ABSENT;
}

void qp_resume(struct qp *qp, uint64_t now_ns)
{
	enum fault fault = FAULT_NONE;

	qp->woken = false;
	completer_resume(&qp->completer, now_ns);
	if (qp_keeps(qp))
		fault = qp_is_datagram(qp) ? datagram_resume(&qp->datagram)
					   : responder_resume(&qp->responder);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

void qp_wake_waiting(struct qp_waiting *waiting, void (*each)(struct qp *qp, void *arg), void *arg)
{
	struct qp *qp;

	while ((qp = TAILQ_FIRST(waiting)) != NULL) {
		qp_stop_waiting(qp);
		qp->woken = true;
		each(qp, arg);
	}
}
