/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: joins the transport roles with their queues and memory, and gives each packet and
 * turn to its role. */
#include "qp/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem/pd.h"
#include "qp/attr.h"
#include "queue/cq.h"
#include "queue/rq.h"
#include "queue/sq.h"
#include "telemetry/counters.h"
#include "transport/completer.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "wire/headers.h"
#include "wire/packet.h"

struct qp {
	struct qp_sched sched; /* the engine's */
	struct qp_init init;
	enum ibv_qp_state state; /* written by engine and control, read by posters */
	bool established;	 /* the event that tells of the first packet was raised */
	bool drained_told;	 /* the event that tells of SQD being drained was raised */
	struct ibv_qp_attr attr; /* as last set */

	struct sq sq;
	struct rq own_rq;
	struct rq *rq; /* own_rq or the shared one */

	struct peer peer;
	struct flight flight;
	struct recovery recovery;
	struct requester requester;
	struct completer completer;
	struct replies replies;
	struct responder responder;
};

static void qp_connect_roles(struct qp *qp)
{
	const struct qp_init *init = &qp->init;
	const uint8_t service = init->type == IBV_QPT_UC ? OPCODE_UC : OPCODE_RC;

	qp->requester = (struct requester){.sq = &qp->sq,
					   .pd = init->pd,
					   .peer = &qp->peer,
					   .flight = &qp->flight,
					   .counters = init->counters,
					   .service = service};
	qp->completer = (struct completer){.sq = &qp->sq,
					   .cq = init->send_cq,
					   .pd = init->pd,
					   .flight = &qp->flight,
					   .recovery = &qp->recovery,
					   .counters = init->counters,
					   .qpn = init->qpn};
	qp->replies.pd = init->pd;
	qp->replies.peer = &qp->peer;
	qp->replies.counters = init->counters;
	qp->responder = (struct responder){.pd = init->pd,
					   .rq = qp->rq,
					   .cq = init->recv_cq,
					   .replies = &qp->replies,
					   .counters = init->counters,
					   .qpn = init->qpn,
					   .service = service};
}

/* As created: nothing posted, no peer, no timer. */
static void qp_reset(struct qp *qp)
{
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->established = false;
	qp->drained_told = false;
	sq_clear(&qp->sq);
	if (qp->rq == &qp->own_rq)
		rq_clear(&qp->own_rq);
	replies_clear(&qp->replies);
	flight_init(&qp->flight, psn_make(0));
	recovery_reset(&qp->recovery);
	requester_reset(&qp->requester, REQUESTER_STOPPED);
	responder_reset(&qp->responder, psn_make(0));
}

static void qp_set_state(struct qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->state, state, __ATOMIC_RELEASE);
}

static int qp_init_queues(struct qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
	const struct sq_attr sq_attr = {.max_wr = cap->max_send_wr,
					.max_sge = cap->max_send_sge,
					.max_inline = cap->max_inline_data,
					.sig_all = qp->init.sig_all};
	int err = sq_init(&qp->sq, &sq_attr);

	if (err != 0)
		return err;
	if (qp->init.srq != NULL) {
		qp->rq = qp->init.srq;
		return 0;
	}
	qp->rq = &qp->own_rq;
	err = rq_init(&qp->own_rq, cap->max_recv_wr, cap->max_recv_sge);
	if (err != 0)
		sq_fini(&qp->sq);
	return err;
}

int qp_create(const struct qp_init *init, struct ibv_qp_cap *cap, struct qp **out)
{
	struct qp *qp;
	int err;

	if (init->type != IBV_QPT_RC && init->type != IBV_QPT_UC)
		return -EOPNOTSUPP;
	if (init->cap.max_send_sge > PACKET_FRAGS_MAX || init->cap.max_recv_sge > PACKET_FRAGS_MAX)
		return -EINVAL;
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return -ENOMEM;
	qp->init = *init;
	err = qp_init_queues(qp);
	if (err != 0) {
		free(qp);
		return err;
	}
	qp_connect_roles(qp);
	qp_reset(qp);
	qp->state = IBV_QPS_RESET;
	cap->max_send_wr = qp->sq.attr.max_wr;
	cap->max_send_sge = qp->sq.attr.max_sge;
	cap->max_inline_data = qp->sq.attr.max_inline;
	cap->max_recv_wr = init->srq == NULL ? qp->own_rq.max_wr : 0;
	cap->max_recv_sge = init->srq == NULL ? qp->own_rq.max_sge : 0;
	qp->init.cap = *cap;
	pd_get(init->pd);
	__atomic_fetch_add(&init->send_cq->users, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&init->recv_cq->users, 1, __ATOMIC_RELAXED);
	*out = qp;
	return 0;
}

void qp_destroy(struct qp *qp)
{
	__atomic_fetch_sub(&qp->init.send_cq->users, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&qp->init.recv_cq->users, 1, __ATOMIC_RELAXED);
	pd_put(qp->init.pd);
	replies_fini(&qp->replies);
	sq_fini(&qp->sq);
	if (qp->rq == &qp->own_rq)
		rq_fini(&qp->own_rq);
	free(qp);
}

enum ibv_qp_state qp_state(const struct qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
}

uint32_t qp_number(const struct qp *qp)
{
	return qp->init.qpn;
}

enum ibv_qp_type qp_type(const struct qp *qp)
{
	return qp->init.type;
}

struct qp_sched *qp_sched(struct qp *qp)
{
	return &qp->sched;
}

void *qp_user(const struct qp *qp)
{
	return qp->init.user;
}

static void qp_raise(struct qp *qp, enum ibv_event_type type)
{
	if (qp->init.event != NULL)
		qp->init.event(qp->init.user, type);
}

/* To ERR: everything posted is flushed, in order; what is posted later is flushed by qp_run. */
static void qp_enter_error(struct qp *qp)
{
	qp_set_state(qp, IBV_QPS_ERR);
	requester_reset(&qp->requester, REQUESTER_STOPPED);
	recovery_reset(&qp->recovery);
	completer_flush(&qp->completer);
	responder_flush(&qp->responder, qp->rq != &qp->own_rq);
}

/* To SQE: an unreliable queue pair fails in its sending half only (IBTA 10.3.1.7). */
static void qp_enter_send_error(struct qp *qp)
{
	qp_set_state(qp, IBV_QPS_SQE);
	requester_reset(&qp->requester, REQUESTER_STOPPED);
	completer_flush(&qp->completer);
}

static void qp_fail(struct qp *qp, enum fault fault)
{
	const struct fault_info *info = fault_info(fault);

	/* A fault of our requests is told by the oldest one's completion; one of the peer's by the
	 * responder's. */
	if (info->nak == FAULT_NO_NAK)
		counters_add(qp->init.counters, info->counter, 1);
	if (info->nak == FAULT_NO_NAK && fault != FAULT_CQ_OVERRUN)
		completer_fail(&qp->completer, fault);
	if (fault == FAULT_SEND_PROTECTION && qp->init.type != IBV_QPT_RC) {
		qp_enter_send_error(qp);
		return;
	}
	qp_enter_error(qp);
	if (info->event != FAULT_NO_EVENT)
		qp_raise(qp, (enum ibv_event_type)info->event);
}

/* Attributes that the roles keep a copy of. */
static int qp_apply(struct qp *qp, const struct ibv_qp_attr *attr, int mask,
		    const struct path *path)
{
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
		const int err = replies_init(&qp->replies, attr->max_dest_rd_atomic);

		if (err != 0)
			return err;
	}
	attr_apply(&qp->attr, attr, mask);
	if (mask & IBV_QP_AV)
		qp->peer.path = *path;
	qp->peer.qpn = qp->attr.dest_qp_num;
	qp->peer.pkey = WIRE_PKEY_DEFAULT;
	qp->peer.mtu = qp->attr.path_mtu == 0 ? 0 : 128u << qp->attr.path_mtu;
	qp->completer.mtu = qp->peer.mtu;
	qp->responder.mtu = qp->peer.mtu;
	qp->responder.peer_qpn = qp->peer.qpn;
	qp->responder.access = qp->attr.qp_access_flags;
	qp->responder.min_rnr_timer = qp->attr.min_rnr_timer;
	qp->flight.max_responses = qp->attr.max_rd_atomic;
	qp->recovery.timeout_ns = ack_timeout_ns(qp->attr.timeout);
	qp->recovery.retry_cnt = qp->attr.retry_cnt;
	qp->recovery.rnr_retry = qp->attr.rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		responder_reset(&qp->responder, psn_make(attr->rq_psn));
	if (mask & IBV_QP_SQ_PSN) {
		flight_init(&qp->flight, psn_make(attr->sq_psn));
		recovery_reset(&qp->recovery);
	}
	return 0;
}

static void qp_enter(struct qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_RESET:
		qp_reset(qp);
		break;
	case IBV_QPS_RTS:
		if (from == IBV_QPS_RTR || from == IBV_QPS_SQE)
			requester_reset(&qp->requester, REQUESTER_RUNNING);
		else if (from == IBV_QPS_SQD && qp->requester.state == REQUESTER_DRAINING)
			qp->requester.state = REQUESTER_RUNNING;
		break;
	case IBV_QPS_SQD:
		if (from == IBV_QPS_RTS) {
			qp->drained_told = false;
			if (qp->requester.state == REQUESTER_RUNNING)
				qp->requester.state = REQUESTER_DRAINING;
		}
		break;
	case IBV_QPS_ERR:
		replies_clear(&qp->replies);
		qp_enter_error(qp);
		break;
	default:
		break;
	}
	qp_set_state(qp, to);
}

int qp_modify(struct qp *qp, const struct ibv_qp_attr *attr, int mask, const struct path *path)
{
	const struct attr_limits limits = {.max_rd_atomic = qp->init.max_rd_atomic,
					   .max_dest_rd_atomic = qp->init.max_dest_rd_atomic,
					   .port_mtu = qp->init.port_mtu};
	const enum ibv_qp_state from = qp->state;
	const enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	int err;

	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return -EINVAL;
	err = attr_check_mask(qp->init.type, from, to, mask);
	if (err == 0)
		err = attr_check_values(attr, mask, &limits);
	if (err == 0 && to != IBV_QPS_RESET && to != IBV_QPS_ERR)
		err = qp_apply(qp, attr, mask, path);
	if (err == 0)
		qp_enter(qp, from, to);
	return err;
}

void qp_query(struct qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = qp->init.cap;
	attr->sq_draining = qp->state == IBV_QPS_SQD && !requester_drained(&qp->requester);
	if (qp->state >= IBV_QPS_RTR)
		attr->rq_psn = qp->responder.epsn.v;
	if (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD)
		attr->sq_psn = qp->flight.next.v;
	init->cap = qp->init.cap;
	init->qp_type = qp->init.type;
	init->sq_sig_all = qp->init.sig_all;
}

int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const enum ibv_qp_state state = qp_state(qp);

	if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR) {
		*bad = wr;
		return EINVAL;
	}
	return sq_post(&qp->sq, qp->init.type, wr, bad);
}

int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (qp_state(qp) == IBV_QPS_RESET || qp->rq != &qp->own_rq) {
		*bad = wr;
		return EINVAL;
	}
	return rq_post(&qp->own_rq, wr, bad);
}

static void qp_receive_request(struct qp *qp, const struct packet *packet)
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
	fault = responder_receive(&qp->responder, packet);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

static void qp_receive_response(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	enum fault fault;

	if (qp->init.type != IBV_QPT_RC || (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return;
	}
	fault = completer_receive(&qp->completer, packet, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

void qp_receive(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	if ((packet->opcode & OPCODE_SERVICE_MASK) != qp->responder.service) {
		counters_add(qp->init.counters, COUNTER_rx_wrong_opcode, 1);
		return;
	}
	/* A connected queue pair hears its peer only (IBTA 9.6.1.1.3). */
	if (qp->state >= IBV_QPS_RTR &&
	    memcmp(packet->sgid, qp->attr.ah_attr.grh.dgid.raw, sizeof(packet->sgid)) != 0) {
		counters_add(qp->init.counters, COUNTER_rx_wrong_qpn, 1);
		return;
	}
	if (packet->op->flags & OPCODE_REQUEST)
		qp_receive_request(qp, packet);
	else
		qp_receive_response(qp, packet, now_ns);
}

/* Send requests, where the state and the peer let us. Returns whether there is more to send. */
static bool qp_run_requester(struct qp *qp, uint64_t now_ns, struct packet_sink *sink,
			     unsigned int budget)
{
	enum fault fault = FAULT_NONE;
	bool more = false;

	if (qp->recovery.state != RECOVERY_RNR_WAIT) {
		const unsigned int sent = requester_send(&qp->requester, sink, budget, &more);

		if (qp->init.type != IBV_QPT_RC)
			fault = completer_sent(&qp->completer, now_ns);
		else if (sent > 0 || more)
			/* A stuck port runs into the same timer as a peer that does not answer. */
			recovery_sent(&qp->recovery, now_ns);
	}
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

bool qp_run(struct qp *qp, uint64_t now_ns, struct packet_sink *sink, unsigned int budget)
{
	enum fault fault;
	unsigned int sent;
	bool more;

	/* Also in ERR: the NAK that explains the error to the peer is owed. */
	sent = replies_send(&qp->replies, sink, budget, &more, &fault);
	if (fault != FAULT_NONE) {
		counters_add(qp->init.counters, fault_info(fault)->counter, 1);
		qp_fail(qp, fault);
	}
	switch (qp->state) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
		if (!more)
			more = qp_run_requester(qp, now_ns, sink, budget - sent);
		break;
	case IBV_QPS_SQE:
		completer_flush(&qp->completer);
		break;
	case IBV_QPS_ERR:
		completer_flush(&qp->completer);
		responder_flush(&qp->responder, qp->rq != &qp->own_rq);
		break;
	default:
		break;
	}
	return more;
}

uint64_t qp_deadline_ns(const struct qp *qp)
{
	return qp->recovery.deadline_ns;
}

void qp_timeout(struct qp *qp, uint64_t now_ns)
{
	enum fault fault;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	fault = completer_timeout(&qp->completer, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}
