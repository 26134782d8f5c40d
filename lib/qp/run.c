/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair under its engine: its roles send when the engine runs it, and when timers expire. */
#include <string.h>

#include <rte_prefetch.h>

#include "base/reason.h"
#include "qp_internal.h"

bool qp_is_quiet(const struct qp *qp)
{
	return qp_has_nothing_to_do(qp);
}

static void prefetch(const void *from, size_t bytes)
{
	const char *line = RTE_PTR_ALIGN_FLOOR(from, RTE_CACHE_LINE_SIZE);

	for (; line < (const char *)from + bytes; line += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(line);
}

/* Prefetch the lines from one field to another one. */
#define PREFETCH(qp, first, last) \
	prefetch(&(qp)->first,    \
		 offsetof(struct qp, last) + sizeof((qp)->last) - offsetof(struct qp, first))

void qp_prefetch_receive(const struct qp *qp, bool request)
{
	PREFETCH(qp, sched, pacer.rate_kbps);
	PREFETCH(qp, peer, replies.tail);
	if (request)
		PREFETCH(qp, responder.pd, responder.ooo.count);
	else
		/* Prefetch what retransmission needs, too: the program is likely to post the next
		 * request. */
		PREFETCH(qp, loss.una, completer.page_absent);
}

void qp_prefetch_run(const struct qp *qp)
{
	PREFETCH(qp, sched, replies.tail);
	PREFETCH(qp, loss.una, completer.page_absent);
}

void qp_prefetch_work(const struct qp *qp)
{
	if (qp->sq.ring)
		prefetch(sq_at(&qp->sq, qp->sq.next),
			 sizeof(struct send_wqe) + sizeof(struct ibv_sge));
}

/*
 * Send requests if the state and the peer allow it, and reduce the budget. Return true if there is
 * more to send.
 */
static bool qp_run_requester(struct qp *qp, uint64_t now_ns, struct packet_sink *sink,
			     unsigned int *budget)
{
	const struct psn top = qp->loss.top;
	enum fault fault = FAULT_NONE;
	unsigned int sent = 0;
	bool more = false;

	if (!qp_requests(qp))
		return false;
	if (unlikely(qp->completer.page_absent))
		return false;
	pacer_poll(&qp->pacer, now_ns);
	switch (qp->kind->type) {
	case IBV_QPT_UD:
		if (qp->requester.state == REQUESTER_RUNNING)
			fault = datagram_send(&qp->datagram, sink, *budget, &more);
		break;
	case IBV_QPT_UC:
		sent = requester_send(&qp->requester, sink, *budget, &more);
		fault = completer_sent(&qp->completer, now_ns);
		break;
	default:
		if (loss_waits_for_peer(&qp->loss))
			break;
		sent = requester_send(&qp->requester, sink, *budget, &more);
		if (unlikely(qp->requester.executed))
			fault = completer_executed(&qp->completer);
		qp->requester.executed = false;
		loss_on_poll(&qp->loss, top, sent > 0 || more, now_ns);
		break;
	}
	*budget -= sent;
	if (unlikely(qp->requester.absent) ||
	    (qp->kind->type == IBV_QPT_UD && unlikely(qp->datagram.absent)))
		qp_await_pages(qp, now_ns);
	if (fault == FAULT_NONE && unlikely(qp->requester.fault != FAULT_NONE)) {
		if (requester_fault_due(&qp->requester))
			fault = qp->requester.fault;
		else
			reason_drop(); /* it is found again when it is due */
	}
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
	if (qp->state == IBV_QPS_SQD && !qp->drained_told && requester_drained(&qp->requester)) {
		qp->drained_told = true;
		if (qp->attr.en_sqd_async_notify)
			qp_raise(qp, IBV_EVENT_SQ_DRAINED);
	}
	return more;
}

/* Send owed answers, and reduce the budget. Return true if there is more to send. */
static bool qp_run_replies(struct qp *qp, uint64_t now_ns, struct packet_sink *sink,
			   unsigned int *budget)
{
	enum fault fault = FAULT_NONE;
	bool more = false;

	if (replies_due(&qp->replies))
		*budget -= replies_send(&qp->replies, sink, *budget, &more, &fault);
	if (unlikely(qp->replies.absent)) {
		qp_await_pages(qp, now_ns);
		more |= qp_owes_pass(qp);
	}
	if (fault != FAULT_NONE) {
		counters_add(qp->init.counters, fault_info(fault)->counter, 1);
		if (qp->state != IBV_QPS_ERR)
			qp_fail(qp, fault);
	}
	return more;
}

/* Note a response that the pacer let pass. Its length is not known here: take the longest. */
static void qp_pace_response(struct qp *qp)
{
	const uint32_t bytes = PACKET_HDR_MAX + qp->peer.mtu;

	pacer_sent(&qp->pacer, bytes);
	cc_responded(qp->pacer.cc, bytes, qp->pacer.now_ns);
}

/* Do what qp_run_replies does, with responses no faster than congestion control allows. */
static bool qp_run_slow_replies(struct qp *qp, uint64_t now_ns, struct packet_sink *sink,
				unsigned int *budget)
{
	bool more = replies_due(&qp->replies);

	pacer_poll(&qp->pacer, now_ns);
	while (more && *budget > 0) {
		const bool responds =
			replies_owe_response(&qp->replies) && !replies_owe_sack(&qp->replies);
		unsigned int one = 1;

		if (responds && pacer_holds(&qp->pacer)) {
			qp->responses_ns = qp->pacer.deadline_ns;
			return false;
		}
		more = qp_run_replies(qp, now_ns, sink, &one);
		if (one > 0)
			break;
		--*budget;
		if (responds)
			qp_pace_response(qp);
	}
	return more;
}

/* Run an engine poll. Usually `slowed` is false, and the compiler leaves its branches out. */
static __rte_always_inline bool qp_poll(struct qp *qp, uint64_t now_ns, struct packet_sink *sink,
					unsigned int budget, const bool slowed)
{
	/* Most queue pairs that only answer need not read their requester's cache lines, which may
	 * be in no near cache. A work request posted from here on kicks the engine again. */
	const bool answers_only = qp_has_no_requests(qp);
	bool more_requests = false;
	bool more;

	/*
	 * Send requests before a pending acknowledgement if the next request is a WRITE. A peer
	 * that polls its completion queue until it has the acknowledgement, and then looks in
	 * memory for our WRITE, finds it there. Otherwise send responses first, as adapters do:
	 * programs expect that their SEND completes before the peer's reply to it arrives. But send
	 * requests first in every other engine poll if responses used up the budget, so that a peer
	 * that READs all the time leaves half of the budget to requests.
	 */
	if (answers_only) {
		qp->requests_waited = false;
	} else if ((replies_owe_ack_only(&qp->replies) && requester_writes_next(&qp->requester)) ||
		   qp->requests_waited) {
		unsigned int share = budget / 2;

		budget -= share;
		more_requests = qp_run_requester(qp, now_ns, sink, &share);
		budget += share;
		qp->requests_waited = false;
	} else {
		more_requests = true;
	}
	/* Do this also in ERR: the peer must get the NAK that reports its error. */
	more = slowed ? qp_run_slow_replies(qp, now_ns, sink, &budget)
		      : qp_run_replies(qp, now_ns, sink, &budget);
	switch (qp->state) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
		if (answers_only)
			break;
		if (!more)
			more_requests = qp_run_requester(qp, now_ns, sink, &budget);
		else
			qp->requests_waited = more_requests;
		break;
	case IBV_QPS_SQE:
		completer_flush(&qp->completer);
		break;
	case IBV_QPS_ERR:
		completer_flush(&qp->completer);
		qp_flush_receives(qp);
		break;
	default:
		break;
	}
	if (unlikely(qp->unusual & QP_MET_ABSENT))
		qp_await_pages(qp, now_ns);
	return more || (more_requests && qp_requests(qp));
}

/* Send the congestion notification that is due. Return false if the port has no room. */
static bool qp_notify(struct qp *qp, struct packet_sink *sink)
{
	const uint32_t dscp = qp->pacer.cc->params->cnp_dscp;
	struct packet_out *out = sink->get(sink);

	if (out == NULL)
		return false;
	packet_notify(out, &qp->peer.path, dscp == CC_DSCP_SAME ? -1 : (int)dscp, qp->peer.pkey,
		      qp->peer.qpn);
	/* Without payload this cannot fail. */
	sink->put(sink, out);
	counters_add(qp->init.counters, COUNTER_np_cnp_sent, 1);
	qp->unusual &= (uint8_t)~QP_OWES_CNP;
	return true;
}

/* Process the answers of other processes. The rest of the engine poll finds out whether the queue
 * pair still waits for a page. */
static void qp_take_answers(struct qp *qp)
{
	enum fault fault;

	if (qp->responder.pass->state == PASS_SENT)
		return;
	fault = responder_resume(&qp->responder);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

static bool qp_run_unusual(struct qp *qp, uint64_t now_ns, struct packet_sink *sink,
			   unsigned int budget)
{
	const bool slowed = qp->unusual & QP_SLOWED;
	bool more, owes = false;

	if (qp->unusual & QP_OWES_CNP) {
		if (!qp_notify(qp, sink))
			return true;
		budget -= budget > 1;
	}
	/* Only in an engine poll that runs to its end: there a role that lacks a page again is put
	 * back among those that wait. */
	if (qp->woken) {
		qp_resume(qp, now_ns);
		/* A request for another process was behind the one that waited for its page. */
		owes = qp_owes_pass(qp);
	}
	if (!slowed)
		return qp_poll(qp, now_ns, sink, budget, false) || owes;
	qp->responses_ns = UINT64_MAX;
	more = qp_poll(qp, now_ns, sink, budget, true) || owes;
	/* The requester's poll has begun anew. */
	if (qp->responses_ns < qp->pacer.deadline_ns)
		qp->pacer.deadline_ns = qp->responses_ns;
	/* Responses that are held are sent in an engine poll that forgets their timer. */
	if (qp->pacer.cc->rate_kbps == 0 && qp->responses_ns == UINT64_MAX)
		qp->unusual &= (uint8_t)~QP_SLOWED;
	return more;
}

static __rte_noinline bool qp_run_passing(struct qp *qp, uint64_t now_ns, struct packet_sink *sink,
					  unsigned int budget)
{
	const bool owed = replies_owe_passed(&qp->replies);
	bool more, owes;

	if (qp_receives(qp))
		qp_take_answers(qp);
	more = qp_run_unusual(qp, now_ns, sink, budget);
	owes = replies_owe_passed(&qp->replies);
	/* A request may wait for the end of the READs before it. */
	if (!pass_send(qp->responder.pass, sink) || (owed && !owes))
		more = true;
	if (!more && !owes)
		qp->unusual &= (uint8_t)~QP_PASSES;
	return more;
}

bool qp_run(struct qp *qp, uint64_t now_ns, struct packet_sink *sink, unsigned int budget)
{
	bool more;

	if (likely(qp->unusual == 0))
		more = qp_poll(qp, now_ns, sink, budget, false);
	else if (unlikely(qp->unusual & QP_PASSES))
		more = qp_run_passing(qp, now_ns, sink, budget);
	else
		more = qp_run_unusual(qp, now_ns, sink, budget);
	qp_check(qp);
	return more;
}

bool qp_owes_ack_only(const struct qp *qp)
{
	return replies_owe_ack_only(&qp->replies) && likely(!(qp->unusual & QP_PASSES)) &&
	       (qp->state == IBV_QPS_RTR || qp_has_no_requests(qp) ||
		qp->sq.next == sq_prod(&qp->sq));
}

bool qp_sends_to(const struct qp *qp, const uint8_t mac[6])
{
	return memcmp(qp->peer.path.hdr, mac, 6) == 0;
}

uint32_t qp_peer_qpn(const struct qp *qp)
{
	return qp->peer.qpn;
}

uint64_t qp_deadline_ns(const struct qp *qp)
{
	/* A timer that is still running, as one for a peer that was not ready, applies to the next
	 * request. */
	if (qp_has_no_requests(qp))
		return qp->responses_ns;
	return RTE_MIN(loss_deadline_ns(&qp->loss), qp->pacer.deadline_ns);
}

/* Restart an expired acknowledgement timer if the packets that it waits for are not lost. Return
 * true if they were lost only because the peer's process takes none. */
static bool qp_restart_timer(struct qp *qp, uint64_t now_ns, struct packet_sink *sink)
{
	struct recovery *recovery = &qp->loss.recovery;
	struct sink_taken taken = {0};
	enum backlog_verdict verdict;
	enum sink_knows knows;

	if (sink->ask == NULL || !recovery_is_over(recovery, now_ns))
		return false;
	knows = sink->ask(sink, &qp->peer.path, qp->peer.qpn, &taken);
	verdict = backlog_judge(&qp->backlog, qp->loss.una, loss_owes_oldest(&qp->loss), knows,
				&taken, recovery->timeout_ns, now_ns);
	if (verdict == BACKLOG_COUNTS)
		return false;
	counters_add(qp->init.counters, COUNTER_ack_timer_restarts, 1);
	if (verdict == BACKLOG_RESTART)
		recovery_defer(recovery, now_ns);
	return verdict == BACKLOG_RESEND;
}

void qp_hasten(struct qp *qp, uint64_t now_ns)
{
	if (qp_requests(qp))
		recovery_hasten(&qp->loss.recovery, now_ns);
	if (qp_receives(qp))
		responder_tell(&qp->responder);
	qp_check(qp);
}

void qp_timeout(struct qp *qp, uint64_t now_ns, struct packet_sink *sink)
{
	const uint8_t retries = qp->loss.recovery.retries_left;
	enum fault fault;
	bool excused;

	if (!qp_requests(qp))
		return;
	excused = qp_restart_timer(qp, now_ns, sink);
	/* While we wait for a page of our own, the peer may have nothing to answer. Packets that
	 * the pacer held back are sent in the engine poll that follows. */
	fault = completer_timeout(&qp->completer, excused || qp_sends_no_page(qp), now_ns);
	if (unlikely(qp->pacer.cc != NULL) && qp->loss.recovery.retries_left != retries)
		cc_expired(qp->pacer.cc);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
	qp_check(qp);
}
