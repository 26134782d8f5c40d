/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells that a queue pair waits in vain, to a user who wants to know why nothing happens. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "qp_internal.h"

/* Two more things that a queue pair may wait for, behind those of enum qp_waits. */
enum {
	WATCH_DRAINED = QP_WAITS_KINDS, /* it is in SQD */
	WATCH_UNSIGNALED,		/* nothing, but no request has a completion */
};

/* Since when a queue pair makes no progress. */
struct qp_watch {
	uint64_t since_ns;
	uint32_t cons, prod;
	struct psn una;
	uint32_t seen; /* bits of what it has waited for since then */
	uint32_t told; /* bits of what was told */
};

/* Return true if no request of a whole queue had a completion. Other adapters free no request
 * before a later one completes, so that the queue would be full now. */
static bool is_unsignaled(const struct qp *qp)
{
	const uint32_t prod = sq_prod(&qp->sq);

	if (qp->sq.attr.max_wr == 0 || prod < qp->sq.attr.max_wr || qp->sq.cons != prod)
		return false;
	for (uint32_t i = 0; i < qp->sq.attr.max_wr; i++) {
		if (sq_at(&qp->sq, i)->flags & IBV_SEND_SIGNALED)
			return false;
	}
	return true;
}

static uint32_t now_waits(const struct qp *qp)
{
	if (qp->state == IBV_QPS_SQD && qp->sq.next != sq_prod(&qp->sq) &&
	    requester_drained(&qp->requester))
		return WATCH_DRAINED;
	if (qp->state == IBV_QPS_RTS && is_unsignaled(qp))
		return WATCH_UNSIGNALED;
	return qp_waits_for(qp);
}

/* A peer that is not ready is asked again and again, so between two answers it is waited for. */
static uint32_t worst(uint32_t waits, uint32_t seen)
{
	if ((seen & (1u << QP_WAITS_RECEIVE)) && waits != QP_WAITS_PAGE)
		return QP_WAITS_RECEIVE;
	return waits == QP_WAITS_ANSWER_AGAIN ? QP_WAITS_ANSWER : waits;
}

static void write_timers(const struct qp *qp, char *text, size_t size)
{
	if (qp->attr.timeout == 0)
		snprintf(text, size, "timeout is 0: it is never sent again");
	else
		snprintf(text, size, "it is sent again after %.1f ms (timeout), at most %u times",
			 (double)qp->loss.recovery.timeout_ns / 1e6, qp->attr.retry_cnt);
}

static void tell(const struct qp *qp, uint32_t waits, double seconds)
{
	char what[QP_EXPLAIN_REQUEST_MAX], timers[96];

	qp_explain_oldest(qp, what);
	switch (waits) {
	case QP_WAITS_ANSWER:
		write_timers(qp, timers, sizeof(timers));
		log_error("%s waits for %.1f s: the peer does not answer; %s", what, seconds,
			  timers);
		break;
	case QP_WAITS_RECEIVE:
		log_error("%s waits for %.1f s: the peer has no receive request for it (RNR NAK), "
			  "or a page of its memory is absent; rnr_retry is %u%s",
			  what, seconds, qp->attr.rnr_retry,
			  qp->attr.rnr_retry == RECOVERY_RNR_FOREVER ? ": without end" : "");
		break;
	case QP_WAITS_PAGE:
		log_error(
			"%s waits for %.1f s: a page of a region of this process that is on demand "
			"is not in memory",
			what, seconds);
		break;
	case QP_WAITS_RATE:
		log_error("%s waits for %.1f s: its rate does not let it leave (rate_limit %u "
			  "kbps, or congestion control)",
			  what, seconds, qp->attr.rate_limit);
		break;
	case QP_WAITS_POLL:
		log_error("%s waits for %.1f s: it has not left: no thread runs the queue pair, or "
			  "the port takes no packets",
			  what, seconds);
		break;
	case WATCH_DRAINED:
		log_error("%s waits for %.1f s: the queue pair is in SQD; it sends again in RTS",
			  what, seconds);
		break;
	case WATCH_UNSIGNALED:
		log_error("queue pair 0x%x: none of its last %u send requests has "
			  "IBV_SEND_SIGNALED, so none has a completion: a program that waits "
			  "for one waits for ever, and "
			  "other adapters' queues are full now",
			  qp->init.qpn, qp->sq.attr.max_wr);
		break;
	default:
		break;
	}
}

static void begin(const struct qp *qp, struct qp_watch *watch, uint64_t now_ns)
{
	watch->since_ns = now_ns;
	watch->cons = qp->sq.cons;
	watch->prod = sq_prod(&qp->sq);
	watch->una = qp->loss.una;
	watch->seen = 0;
}

static bool has_advanced(const struct qp *qp, const struct qp_watch *watch)
{
	return watch->cons != qp->sq.cons || watch->prod != sq_prod(&qp->sq) ||
	       !psn_eq(watch->una, qp->loss.una);
}

void qp_watch(struct qp *qp, uint64_t now_ns)
{
	struct qp_watch *watch = qp->watch;
	uint32_t waits = now_waits(qp);

	if (!watch) {
		watch = calloc(1, sizeof(*watch));
		if (!watch)
			return;
		qp->watch = watch;
	}
	/* Also the first time: a queue pair with work has advanced from 0. */
	if (has_advanced(qp, watch) || waits == QP_WAITS_NOTHING)
		begin(qp, watch, now_ns);
	watch->seen |= 1u << waits;
	waits = worst(waits, watch->seen);
	if (waits == QP_WAITS_NOTHING || now_ns - watch->since_ns < QP_WATCH_NS ||
	    (watch->told & (1u << waits)))
		return;
	watch->told |= 1u << waits;
	tell(qp, waits, (double)(now_ns - watch->since_ns) / 1e9);
}
