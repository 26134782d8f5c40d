/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair's work under its engine: it passes packets, turns and timers to its roles. */
#include <string.h>

#include <rte_prefetch.h>

#include "internal.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "wire/vlan.h"

static void qp_receive_request(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	enum fault fault;

	if (qp->state < IBV_QPS_RTR || qp->state == IBV_QPS_ERR) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return;
	}
	if (qp->state == IBV_QPS_RTR && !qp->established) {
		qp->established = true;
		qp_raise(qp, IBV_EVENT_COMM_EST);
	}
	if (unlikely(qp->met_absent))
		qp_await_pages(qp, now_ns);
	fault = responder_receive(&qp->responder, packet);
	if (unlikely(qp->responder.gap >= GAP_NOT_READY) || unlikely(qp->met_absent))
		qp_await_pages(qp, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

static void qp_receive_response(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	enum fault fault;

	if (!qp->kind->answers || (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return;
	}
	fault = completer_receive(&qp->completer, packet, now_ns);
	if (unlikely(qp->completer.page_absent))
		qp_await_pages(qp, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

static void qp_receive_sack(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	enum fault fault;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return;
	}
	fault = completer_sack(&qp->completer, packet, now_ns);
	if (unlikely(qp->completer.page_absent))
		qp_await_pages(qp, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

static void qp_receive_datagram(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	enum fault fault;

	if (qp->state < IBV_QPS_RTR || qp->state == IBV_QPS_ERR) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return;
	}
	fault = datagram_receive(&qp->datagram, packet);
	if (unlikely(qp->datagram.ooo.count > 0))
		qp_await_pages(qp, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

/*
 * Return true if the packet is from the peer, to the address of our path (IBTA 9.6.1.1.3). The same
 * addresses in another VLAN belong to somebody else.
 */
static bool is_of_path(const struct qp *qp, const struct packet *packet)
{
	const struct path *path = &qp->peer.path;

	return path_leads_to(path, packet->sgid) &&
	       memcmp(packet->dgid, path->sgid, sizeof(packet->dgid)) == 0 &&
	       vlan_of_tci(packet->vlan_tci) == path->vlan_id;
}

/* Return true if all posted requests have completed: the requester has nothing to send, and no
 * timer. */
static bool has_no_requests(const struct qp *qp)
{
	return qp->state == IBV_QPS_RTS && qp->sq.cons == sq_prod(&qp->sq);
}

static inline __attribute__((always_inline)) bool is_quiet(const struct qp *qp)
{
	return has_no_requests(qp) && !replies_due(&qp->replies);
}

bool qp_is_quiet(const struct qp *qp)
{
	return is_quiet(qp);
}

static void prefetch(const void *from, size_t bytes)
{
	const char *line = RTE_PTR_ALIGN_FLOOR(from, RTE_CACHE_LINE_SIZE);

	for (; line < (const char *)from + bytes; line += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(line);
}

void qp_prefetch_receive(const struct qp *qp, bool request)
{
	prefetch(qp, offsetof(struct qp, loss));
	if (request) {
		prefetch(&qp->replies, offsetof(struct replies, mask));
		prefetch(&qp->responder.pd,
			 offsetof(struct responder, peer_qpn) - offsetof(struct responder, pd));
	} else {
		/* Prefetch what retransmission needs, too: the program is likely to post the next
		 * request. */
		prefetch(&qp->loss, offsetof(struct qp, receive) - offsetof(struct qp, loss));
	}
}

void qp_prefetch_run(const struct qp *qp)
{
	prefetch(qp, offsetof(struct qp, receive));
}

void qp_prefetch_work(const struct qp *qp)
{
	if (qp->sq.ring)
		prefetch(sq_at(&qp->sq, qp->sq.next), sizeof(struct send_wqe));
}

/* Take a packet whose opcode is not of the queue pair's service. It is rare, and not compiled into
 * the path of others. */
static __attribute__((noinline, cold)) void
qp_take_other(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	if (packet->opcode != OPCODE_SACK || !qp->kind->answers || !qp->kind->sends)
		counters_add(qp->init.counters, COUNTER_rx_wrong_opcode, 1);
	else if (qp->state >= IBV_QPS_RTR && !is_of_path(qp, packet))
		counters_add(qp->init.counters, COUNTER_rx_wrong_qpn, 1);
	else
		qp_receive_sack(qp, packet, now_ns);
}

static void qp_take(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	const uint8_t service = packet->opcode & OPCODE_SERVICE_MASK;

	if (service != qp->kind->service) {
		qp_take_other(qp, packet, now_ns);
		return;
	}
	if (service == OPCODE_UD) {
		qp_receive_datagram(qp, packet, now_ns);
		return;
	}
	if (qp->state >= IBV_QPS_RTR && !is_of_path(qp, packet)) {
		counters_add(qp->init.counters, COUNTER_rx_wrong_qpn, 1);
		return;
	}
	if ((packet->op->flags & OPCODE_REQUEST) && qp->kind->type != IBV_QPT_XRC_SEND)
		qp_receive_request(qp, packet, now_ns);
	else if (!(packet->op->flags & OPCODE_REQUEST) && qp->kind->sends)
		qp_receive_response(qp, packet, now_ns);
	else
		counters_add(qp->init.counters, COUNTER_rx_wrong_opcode, 1);
}

void qp_receive(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	qp_take(qp, packet, now_ns);
	qp_check(qp);
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

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return false;
	if (unlikely(qp->completer.page_absent))
		return false;
	pacer_turn(&qp->pacer, now_ns);
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
		fault = completer_executed(&qp->completer);
		loss_on_turn(&qp->loss, top, sent > 0 || more, now_ns);
		break;
	}
	*budget -= sent;
	if (unlikely(qp->requester.absent) ||
	    (qp->kind->type == IBV_QPT_UD && unlikely(qp->datagram.absent)))
		qp_await_pages(qp, now_ns);
	if (fault == FAULT_NONE && requester_fault_due(&qp->requester))
		fault = qp->requester.fault;
	if (fault != FAULT_NONE) {
		qp_fail(qp, fault);
		return false;
	}
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
	enum fault fault;
	bool more;

	*budget -= replies_send(&qp->replies, sink, *budget, &more, &fault);
	if (unlikely(qp->replies.absent))
		qp_await_pages(qp, now_ns);
	if (fault != FAULT_NONE) {
		counters_add(qp->init.counters, fault_info(fault)->counter, 1);
		if (qp->state != IBV_QPS_ERR)
			qp_fail(qp, fault);
	}
	return more;
}

bool qp_run(struct qp *qp, uint64_t now_ns, struct packet_sink *sink, unsigned int budget)
{
	/* Most queue pairs that only answer need not read their requester's cache lines, which may
	 * be in no near cache. A work request posted from here on kicks the engine again. */
	const bool answers_only = has_no_requests(qp);
	bool more_requests = false;
	bool more;

	if (unlikely(qp->met_absent))
		qp_resume(qp, now_ns);
	/*
	 * Send requests before a pending acknowledgement if the next request is a WRITE. A peer
	 * that polls its completion queue until it has the acknowledgement, and then looks in
	 * memory for our WRITE, finds it there. Otherwise send responses first, as adapters do:
	 * programs expect that their SEND completes before the peer's reply to it arrives. But send
	 * requests first in every other turn if responses used up the budget, so that a peer that
	 * READs all the time leaves half of the budget to requests.
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
	more = qp_run_replies(qp, now_ns, sink, &budget);
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
	if (unlikely(qp->met_absent))
		qp_await_pages(qp, now_ns);
	qp_check(qp);
	return more || (more_requests && (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD));
}

bool qp_owes_ack_only(const struct qp *qp)
{
	return replies_owe_ack_only(&qp->replies) &&
	       (qp->state == IBV_QPS_RTR || has_no_requests(qp) || qp->sq.next == sq_prod(&qp->sq));
}

uint64_t qp_deadline_ns(const struct qp *qp)
{
	/* A timer that is still running, as one for a peer that was not ready, applies to the next
	 * request. */
	if (has_no_requests(qp))
		return UINT64_MAX;
	return RTE_MIN(loss_deadline_ns(&qp->loss), qp->pacer.deadline_ns);
}

void qp_timeout(struct qp *qp, uint64_t now_ns)
{
	enum fault fault;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	/* While we wait for a page of our own, the peer may have nothing to answer. Packets that
	 * the pacer held back are sent in the turn that follows. */
	fault = completer_timeout(&qp->completer, qp_sends_no_page(qp), now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
	qp_check(qp);
}
