/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine of a queue pair: modifications by the application, and faults. */
#include <errno.h>

#include "base/reason.h"
#include "qp_internal.h"
#include "qp/attr.h"
#include "queue/cq.h"
#include "wire/headers.h"

void qp_raise(struct qp *qp, enum ibv_event_type type)
{
	if (qp->init.event != NULL)
		qp->init.event(qp->init.user, type);
}

void qp_flush_receives(struct qp *qp)
{
	if (qp->init.type == IBV_QPT_UD)
		datagram_flush(&qp->datagram);
	else
		responder_flush(&qp->responder);
}

/* Go to ERR: flush all that is posted, in order. qp_run flushes what is posted later. */
static void qp_enter_error(struct qp *qp)
{
	qp_set_state(qp, IBV_QPS_ERR);
	/* Pairs with post_recv_op: either the posting thread sees the state, or we see its
	 * request. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	requester_reset(&qp->requester, REQUESTER_STOPPED);
	loss_stop(&qp->loss);
	pacer_stop(&qp->pacer);
	/* A poll that is in progress would take it for a deadline at its end. */
	qp->responses_ns = UINT64_MAX;
	qp->unusual &= (uint8_t) ~(QP_OWES_CNP | QP_SLOWED);
	if (qp_is_datagram(qp))
		datagram_reset(&qp->datagram);
	completer_flush(&qp->completer);
	qp_flush_receives(qp);
	/* Report that it takes nothing more from the shared queue (ibv_get_async_event(3)). */
	if (qp->init.srq != NULL)
		qp_raise(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

/* Go to SQE: only the sending half of an unreliable queue pair fails (IBTA 10.3.1.7). It has no
 * timer. */
static void qp_enter_send_error(struct qp *qp)
{
	qp_set_state(qp, IBV_QPS_SQE);
	requester_reset(&qp->requester, REQUESTER_STOPPED);
	completer_flush(&qp->completer);
}

/* Return true for a fault of our own send request. */
static bool is_of_sender(enum fault fault)
{
	return fault == FAULT_SEND_PROTECTION || fault == FAULT_SEND_LENGTH ||
	       fault == FAULT_SEND_WINDOW || fault == FAULT_SEND_OPERATION;
}

void qp_fail(struct qp *qp, enum fault fault)
{
	const struct fault_info *info = fault_info(fault);

	if (unlikely(reason_wanted))
		qp_explain(qp, fault);
	/* Count a fault of our own requests here: the completion of the oldest request reports it.
	 * The responder counts faults of the peer's requests. */
	if (info->nak == FAULT_NO_NAK)
		counters_add(qp->init.counters, info->counter, 1);
	if (info->nak == FAULT_NO_NAK && fault != FAULT_CQ_OVERRUN)
		completer_fail(&qp->completer, fault);
	/* For a fault of its own, the peer is sent nothing more. For a fault of the peer, it still
	 * gets the NAK. */
	if (info->nak == FAULT_NO_NAK)
		replies_clear(&qp->replies);
	if (is_of_sender(fault) && !qp->kind->answers) {
		qp_enter_send_error(qp);
		return;
	}
	qp_enter_error(qp);
	if (info->event != FAULT_NO_EVENT)
		qp_raise(qp, (enum ibv_event_type)info->event);
}

bool qp_break(struct qp *qp, enum ibv_event_type event)
{
	if (!qp_receives(qp))
		return false;
	qp_enter_error(qp);
	qp_raise(qp, event);
	return true;
}

/* Set how fast the queue pair sends, in kbps; 0 stands for values that the application does not
 * give. */
static void qp_pace(struct qp *qp, uint32_t rate, uint32_t burst_bytes, uint32_t typical_bytes)
{
	if (typical_bytes == 0)
		typical_bytes = PACKET_HDR_MAX + (128u << qp->init.port_mtu);
	pacer_set(&qp->pacer, rate, burst_bytes, typical_bytes);
}

static void qp_apply_responder(struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	qp->responder.mtu = qp->peer.mtu;
	qp->responder.peer_qpn = qp->peer.qpn;
	qp->responder.access = qp->attr.qp_access_flags;
	qp->responder.min_rnr_timer = qp->attr.min_rnr_timer;
	if (mask & IBV_QP_RQ_PSN)
		responder_reset(&qp->responder, psn_make(attr->rq_psn));
}

static void qp_apply_datagram(struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	qp->datagram.qkey = qp->attr.qkey;
	if (mask & IBV_QP_SQ_PSN)
		qp->datagram.psn = psn_make(attr->sq_psn);
}

/* Copy attributes to the roles that use them. */
static int qp_apply(struct qp *qp, const struct ibv_qp_attr *attr, int mask,
		    const struct path *path)
{
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
		const int err = replies_init(&qp->replies, attr->max_dest_rd_atomic);

		if (err != 0)
			return err;
	}
	/* Without a timeout nothing would try again to remember a loss for which there was no
	 * memory. */
	if ((mask & IBV_QP_TIMEOUT) && attr->timeout == 0 && !loss_reserve(&qp->loss))
		return -ENOMEM;
	/* The application requests the event with each transition (IBTA 11.2.5.2). */
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_SQD)
		qp->attr.en_sqd_async_notify = 0;
	attr_apply(&qp->attr, attr, mask);
	if (mask & IBV_QP_AV) {
		qp->peer.path = *path;
		qp_connect_cc(qp);
	}
	qp->peer.qpn = qp->attr.dest_qp_num;
	qp->peer.pkey = WIRE_PKEY_DEFAULT;
	qp->peer.mtu = 128u << qp->attr.path_mtu; /* not used before the attribute is set */
	qp->completer.mtu = qp->peer.mtu;
	loss_set_attr(&qp->loss, &(struct loss_attr){.timeout_ns = ack_timeout_ns(qp->attr.timeout),
						     .max_responses = qp->attr.max_rd_atomic,
						     .retry_cnt = qp->attr.retry_cnt,
						     .rnr_retry = qp->attr.rnr_retry});
	if (mask & IBV_QP_RATE_LIMIT)
		qp_pace(qp, attr->rate_limit, 0, 0);
	if (mask & IBV_QP_SQ_PSN) {
		loss_init(&qp->loss, psn_make(attr->sq_psn));
		backlog_reset(&qp->backlog);
	}
	if (qp_is_datagram(qp))
		qp_apply_datagram(qp, attr, mask);
	else
		qp_apply_responder(qp, attr, mask);
	return 0;
}

void qp_forget_completions(struct qp *qp)
{
	if (qp->completer.cq != NULL)
		cq_forget_qp(qp->completer.cq, qp->init.qpn);
	if (qp->init.recv_cq != NULL && qp->init.recv_cq != qp->completer.cq)
		cq_forget_qp(qp->init.recv_cq, qp->init.qpn);
}

static void qp_enter(struct qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_RESET:
		qp_reset(qp);
		qp_forget_completions(qp);
		break;
	case IBV_QPS_RTS:
		/* RESET or SQE has reset the requester. */
		qp->requester.state = REQUESTER_RUNNING;
		break;
	case IBV_QPS_SQD:
		if (from == IBV_QPS_RTS) {
			qp->drained_told = false;
			qp->requester.state = REQUESTER_DRAINING;
		}
		break;
	case IBV_QPS_ERR:
		replies_clear(&qp->replies);
		if (from != IBV_QPS_ERR)
			qp_enter_error(qp);
		break;
	default:
		break;
	}
	qp_set_state(qp, to);
}

int qp_limit_rate(struct qp *qp, const struct ibv_qp_rate_limit_attr *attr)
{
	const bool shaped = attr->max_burst_sz != 0 || attr->typical_pkt_sz != 0;

	if (!qp->kind->sends || qp->state != IBV_QPS_RTS)
		return CALL_REASON(-EINVAL,
				   "only a queue pair that sends, and is in RTS, has a rate");
	if (attr->rate_limit > qp->init.max_rate_kbps || (attr->rate_limit == 0 && shaped))
		return CALL_REASON(
			-EINVAL, "rate_limit is %u; it must be at most %u, and not 0 with a burst",
			attr->rate_limit, qp->init.max_rate_kbps);
	qp->attr.rate_limit = attr->rate_limit;
	qp_pace(qp, attr->rate_limit, attr->max_burst_sz, attr->typical_pkt_sz);
	return 0;
}

/* Return the state that a modification leads to. */
static enum ibv_qp_state state_after(const struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	return mask & IBV_QP_STATE ? attr->qp_state : qp->state;
}

int qp_check_modify(const struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const struct attr_limits limits = {.max_rd_atomic = qp->init.max_rd_atomic,
					   .max_dest_rd_atomic = qp->init.max_dest_rd_atomic,
					   .max_rate_kbps = qp->init.max_rate_kbps,
					   .port_mtu = qp->init.port_mtu};
	int err;

	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != qp->state)
		return CALL_REASON(-EINVAL, "cur_qp_state is %s, and the queue pair is in %s",
				   attr_state_name(attr->cur_qp_state), attr_state_name(qp->state));
	mask = attr_own(qp->init.type, mask);
	err = attr_check_mask(qp->init.type, qp->state, state_after(qp, attr, mask), mask);
	return err == 0 ? attr_check_values(attr, mask, &limits) : err;
}

int qp_modify(struct qp *qp, const struct ibv_qp_attr *attr, int mask, const struct path *path)
{
	const enum ibv_qp_state from = qp->state;
	const enum ibv_qp_state to = state_after(qp, attr, mask);
	int err = qp_check_modify(qp, attr, mask);

	mask = attr_own(qp->init.type, mask);
	if (err == 0)
		err = qp_apply(qp, attr, mask, path);
	if (err == 0)
		qp_enter(qp, from, to);
	return err;
}
