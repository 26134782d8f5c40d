/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation from roles and queues, queries, and posting. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cachelines.h"
#include "base/reason.h"
#include "qp_internal.h"
#include "mem/pd.h"
#include "queue/cq.h"
#include "queue/sq_build.h"
#include "queue/srq.h"
#include "queue/unfold.h"
#include "wire/headers.h"
#include "wire/opcode.h"
#include "wire/qpn_block.h"

/* A link between an XRC target and a stand-in takes at least as long: a program reads its owner's
 * messages every 10 ms (doc/developer/sharing.md). */
#define LINK_NS UINT64_C(10000000)

/* The rows of a type: without congestion control, and with it. */
#define KIND(type, service, sends, receives, answers)                        \
	{                                                                    \
		{type, service, service, sends, receives, answers},          \
			{type, service, QP_LOOKS, sends, receives, answers}, \
	}

const struct qp_kind *qp_kind(enum ibv_qp_type type, enum cc_kind cc)
{
	static const struct qp_kind kinds[][2] = {
		KIND(IBV_QPT_RC, OPCODE_RC, true, true, true),
		KIND(IBV_QPT_UC, OPCODE_UC, true, true, false),
		KIND(IBV_QPT_UD, OPCODE_UD, true, true, false),
		KIND(IBV_QPT_XRC_SEND, OPCODE_XRC, true, false, true),
		{
			{IBV_QPT_XRC_RECV, OPCODE_XRC, QP_LOOKS, false, false, true},
			{IBV_QPT_XRC_RECV, OPCODE_XRC, QP_LOOKS, false, false, true},
		},
	};

	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		if (kinds[i][0].type == type)
			return &kinds[i][cc != CC_NONE];
	}
	return NULL;
}

static enum cc_kind qp_cc(const struct qp_init *init)
{
	return qp_may_have_cc(init->type, &init->cc) ? init->cc.kind : CC_NONE;
}

/* A responder that keeps nothing has nothing to report; neither side of such a queue pair takes
 * part. */
static enum sack_use qp_sack(const struct qp *qp, const struct qp_init *init)
{
	const uint8_t service = qp->kind->service;

	return init->ooo != NULL && (service == OPCODE_RC || service == OPCODE_XRC) ? init->sack
										    : SACK_NEVER;
}

static void qp_connect_roles(struct qp *qp, const struct qp_init *init)
{
	const uint8_t service = qp->kind->service;

	const enum sack_use sack = qp_sack(qp, init);

	qp->loss.window_max = init->window_max;
	qp->loss.sack_use = sack;
	qp->requester = (struct requester){.sq = &qp->sq,
					   .pd = init->pd,
					   .peer = &qp->peer,
					   .loss = &qp->loss,
					   .pacer = &qp->pacer,
					   .counters = init->counters,
					   .windows = service == OPCODE_XRC ? NULL : &qp->windows,
					   .qpn = init->qpn,
					   .service = service};
	qp->completer = (struct completer){.sq = &qp->sq,
					   .cq = init->send_cq,
					   .pd = init->pd,
					   .loss = &qp->loss,
					   .counters = init->counters,
					   .ooo.pool = init->ooo,
					   .qpn = init->qpn};
	qp->replies.service = service;
	qp->replies.qpn = init->qpn;
	qp->replies.peer = &qp->peer;
	qp->replies.counters = init->counters;
	qp->replies.kept = sack != SACK_NEVER ? &qp->responder.ooo : NULL;
	if (qp_is_datagram(qp)) {
		qp->datagram = (struct datagram){.sq = &qp->sq,
						 .rq = qp->rq,
						 .srq = init->srq,
						 .recv_cq = init->recv_cq,
						 .receive = &qp->receive,
						 .completer = &qp->completer,
						 .pacer = &qp->pacer,
						 .pd = init->pd,
						 .counters = init->counters,
						 .ooo.pool = init->ooo,
						 .qpn = init->qpn,
						 .mtu = 128u << init->port_mtu,
						 .pkey = WIRE_PKEY_DEFAULT};
		return;
	}
	qp->responder =
		(struct responder){.pd = init->pd,
				   .rq = qp->rq,
				   .srq = init->srq,
				   .find_srq = init->find_srq,
				   .domain = init->domain,
				   .pass = qp->responder.pass,
				   .stand_in = init->target_qpn != 0 ? init->pd : NULL,
				   .cq = init->recv_cq,
				   .receive = &qp->receive,
				   .replies = &qp->replies,
				   .counters = init->counters,
				   .ooo.pool = init->ooo,
				   .qpn = init->target_qpn != 0 ? init->target_qpn : init->qpn,
				   .service = service};
}

/* Let an XRC target pass requests on to other processes. 0 or -ENOMEM. */
static int qp_create_pass(struct qp *qp, const struct qp_init *init)
{
	struct pass *pass;

	if (init->find_link == NULL)
		return 0;
	pass = calloc(1, sizeof(*pass));
	if (pass == NULL)
		return -ENOMEM;
	pass->find = init->find_link;
	pass->user = init->user;
	pass->counters = init->counters;
	qp->responder.pass = pass;
	return 0;
}

void qp_reset(struct qp *qp)
{
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->established = false;
	sq_clear(&qp->sq);
	if (qp->rq == &qp->own_rq)
		rq_clear(&qp->own_rq);
	replies_clear(&qp->replies);
	mw_unbind_all(&qp->windows);
	loss_fini(&qp->loss);
	loss_init(&qp->loss, psn_make(0));
	pacer_set(&qp->pacer, 0, 0, 0);
	qp->unusual &= QP_MET_ABSENT;
	qp->responses_ns = UINT64_MAX;
	if (qp->pacer.cc != NULL)
		cc_reset(qp->pacer.cc);
	completer_reset(&qp->completer);
	requester_reset(&qp->requester, REQUESTER_STOPPED);
	qp->receive.taken = false;
	qp->sched.acks_at_once = false;
	if (qp_is_datagram(qp))
		datagram_reset(&qp->datagram);
	else
		responder_reset(&qp->responder, psn_make(0));
}

void qp_count(struct qp *qp, const struct comp_cntrs *cntrs)
{
	qp->completer.cntrs = cntrs;
	qp->completer.counts = true;
	qp->receive.cntrs = cntrs;
	if (!qp_is_datagram(qp))
		qp->responder.counts = cntrs->of[COMP_CNTR_REMOTE_RDMA_WRITE] != NULL;
}

void qp_set_state(struct qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->state, state, __ATOMIC_RELEASE);
}

static int qp_init_queues(struct qp *qp, const struct qp_init *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	const struct sq_attr sq_attr = {.max_wr = qp->kind->sends ? cap->max_send_wr : 0,
					.max_sge = cap->max_send_sge,
					.max_inline = cap->max_inline_data,
					.sig_all = init->sig_all,
					.type = (uint8_t)init->type};
	int err = sq_init_in(init->queues, &qp->sq, &sq_attr);

	if (err != 0)
		return err;
	if (init->srq != NULL) {
		qp->rq = &init->srq->rq;
		return 0;
	}
	qp->rq = &qp->own_rq;
	err = rq_init_in(init->queues, RING_RECV, &qp->own_rq,
			 qp->kind->receives ? cap->max_recv_wr : 0, cap->max_recv_sge);
	if (err != 0)
		sq_fini(&qp->sq);
	return err;
}

/* Return the length of the longest list of receive buffers. An XRC target takes receive requests
 * from any shared queue of its domain. */
static uint32_t receive_sges(const struct qp_init *init)
{
	if (init->type == IBV_QPT_XRC_RECV)
		return PACKET_FRAGS_MAX;
	return init->srq != NULL ? init->srq->rq.max_sge : init->cap.max_recv_sge;
}

static size_t qp_bytes(uint32_t sges)
{
	/* Let the list begin in the struct's padding. */
	return RTE_MAX(sizeof(struct qp), offsetof(struct qp, sge) + sges * sizeof(struct ibv_sge));
}

static void qp_fini_queues(struct qp *qp)
{
	sq_fini(&qp->sq);
	if (qp->rq == &qp->own_rq)
		rq_fini(&qp->own_rq);
}

/* Add `step` to the users of each queue that must not be destroyed before the queue pair. An XRC
 * queue pair lacks some of them. pd_get counts the user of the domain. */
static void qp_count_users(const struct qp *qp, int step)
{
	const struct qp_made *init = &qp->init;

	if (qp->completer.cq != NULL)
		__atomic_fetch_add(&qp->completer.cq->users, (uint32_t)step, __ATOMIC_RELEASE);
	if (init->recv_cq != NULL)
		__atomic_fetch_add(&init->recv_cq->users, (uint32_t)step, __ATOMIC_RELEASE);
	if (init->srq != NULL)
		__atomic_fetch_add(&init->srq->users, (uint32_t)step, __ATOMIC_RELEASE);
}

static void qp_keep(struct qp *qp, const struct qp_init *init)
{
	qp->kind = qp_kind(init->type, qp_cc(init));
	qp->init = (struct qp_made){.pd = init->pd,
				    .recv_cq = init->recv_cq,
				    .srq = init->srq,
				    .home = init->home,
				    .counters = init->counters,
				    .event = init->event,
				    .user = init->user,
				    .qpn = init->qpn,
				    .max_rate_kbps = init->max_rate_kbps,
				    .type = (uint8_t)init->type,
				    .port_mtu = (uint8_t)init->port_mtu,
				    .sig_all = init->sig_all,
				    .max_rd_atomic = init->max_rd_atomic,
				    .max_dest_rd_atomic = init->max_dest_rd_atomic};
}

/* Return the granted capabilities. */
static struct ibv_qp_cap qp_cap(const struct qp *qp)
{
	const bool own = qp->rq == &qp->own_rq;

	return (struct ibv_qp_cap){.max_send_wr = qp->sq.attr.max_wr,
				   .max_send_sge = qp->sq.attr.max_sge,
				   .max_inline_data = qp->sq.attr.max_inline,
				   .max_recv_wr = own ? qp->own_rq.max_wr : 0,
				   .max_recv_sge = own ? qp->own_rq.max_sge : 0};
}

int qp_create(const struct qp_init *init, struct ibv_qp_cap *cap, struct qp **out)
{
	const uint32_t sges = receive_sges(init);
	struct cc_attr cc = init->cc;
	struct qp *qp;
	int err;

	if (qp_kind(init->type, CC_NONE) == NULL)
		return -EOPNOTSUPP;
	if (init->cap.max_send_sge > PACKET_FRAGS_MAX ||
	    (init->srq == NULL && init->cap.max_recv_sge > PACKET_FRAGS_MAX) ||
	    init->window_max > LOSS_WINDOW_LIMIT)
		return -EINVAL;
	/* Use whole cache lines: fields that the engine writes and fields that posters write are on
	 * different lines. */
	qp = cachelines_alloc(qp_bytes(sges));
	if (qp == NULL)
		return -ENOMEM;
	memset(qp, 0, qp_bytes(sges));
	qp_keep(qp, init);
	qp->receive.sge = qp->sge;
	qp->waiting = init->waiting;
	qp->sges = sges;
	err = pd_get(init->pd);
	if (err != 0)
		goto free_qp;
	err = qp_init_queues(qp, init);
	if (err != 0)
		goto put_pd;
	cc.kind = qp_cc(init);
	err = cc_create(&cc, &qp->pacer, &qp->loss, &qp->pacer.cc);
	if (err != 0)
		goto fini_queues;
	err = qp_create_pass(qp, init);
	if (err != 0)
		goto destroy_cc;
	qp_connect_roles(qp, init);
	qp_reset(qp);
	*cap = qp_cap(qp);
	qp_count_users(qp, 1);
	*out = qp;
	return 0;
destroy_cc:
	cc_destroy(qp->pacer.cc);
fini_queues:
	qp_fini_queues(qp);
put_pd:
	pd_put(init->pd);
free_qp:
	cachelines_free(qp, qp_bytes(sges));
	return err;
}

void qp_retire(struct qp *qp)
{
	qp_forget_completions(qp);
	qp_stop_waiting(qp);
	mw_unbind_all(&qp->windows);
	ooo_clear(&qp->completer.ooo);
	ooo_clear(qp_is_datagram(qp) ? &qp->datagram.ooo : &qp->responder.ooo);
}

void qp_destroy(struct qp *qp)
{
	/* qp_retire has removed it from the lists of the pool and the pager, and has unbound its
	 * windows. */
	assert(LIST_EMPTY(&qp->windows));
	assert(!qp->is_waiting);
	assert(qp->completer.ooo.count == 0);
	assert((qp_is_datagram(qp) ? &qp->datagram.ooo : &qp->responder.ooo)->count == 0);
	qp_count_users(qp, -1);
	pd_put(qp->init.pd);
	cc_destroy(qp->pacer.cc);
	if (!qp_is_datagram(qp))
		free(qp->responder.pass);
	free(qp->watch);
	replies_fini(&qp->replies);
	loss_fini(&qp->loss);
	qp_fini_queues(qp);
	cachelines_free(qp, qp_bytes(qp->sges));
}

void qp_forget_srq(struct qp *qp, const struct srq *srq, bool pd_too)
{
	if (!qp_is_datagram(qp))
		responder_forget_srq(&qp->responder, srq, qp->init.pd);
	if (pd_too)
		replies_forget_pd(&qp->replies, srq->pd, qp->init.pd);
}

void qp_look_again(struct qp *qp)
{
	qp->unusual |= QP_PASSES;
}

void qp_forget_link(struct qp *qp, const struct pass_link *link)
{
	pass_forget_link(qp->responder.pass, link);
	if (qp->responder.pass->srqn >> WIRE_QPN_BLOCK_SHIFT == link->block)
		page_wait_restart(&qp->responder.page_wait, LINK_NS);
	qp_look_again(qp);
}

uint32_t qp_epoch(const struct qp *qp)
{
	return qp->responder.pass->epoch;
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

void *qp_user(const struct qp *qp)
{
	return qp->init.user;
}

struct device_engine *qp_home(const struct qp *qp)
{
	return qp->init.home;
}

static struct psn next_send_psn(const struct qp *qp)
{
	return qp_is_datagram(qp) ? qp->datagram.psn : qp->loss.top;
}

/* Return true in states that have a send PSN; in others a query returns 0. */
static bool has_send_psn(const struct qp *qp)
{
	return qp->state >= IBV_QPS_RTS;
}

/* The same for the expected PSN, which datagrams do not have. */
static bool has_expected_psn(const struct qp *qp)
{
	return qp->state >= IBV_QPS_RTR && !qp_is_datagram(qp);
}

void qp_query(struct qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	attr_tell(&qp->attr, attr);
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = qp_cap(qp);
	attr->sq_draining = qp->state == IBV_QPS_SQD && !requester_drained(&qp->requester);
	if (has_expected_psn(qp))
		attr->rq_psn = qp->responder.epsn.v;
	if (has_send_psn(qp))
		attr->sq_psn = next_send_psn(qp).v;
	init->cap = attr->cap;
	init->qp_type = qp->init.type;
	init->sq_sig_all = qp->init.sig_all;
}

void qp_look(const struct qp *qp, struct qp_view *view)
{
	const struct qp_made *init = &qp->init;
	const bool has_peer = qp->state >= IBV_QPS_RTR && init->type != IBV_QPT_UD;

	*view = (struct qp_view){
		.qpn = init->qpn,
		.dest_qpn = has_peer ? qp->attr.dest_qp_num : 0,
		.type = init->type,
		.state = qp->state,
		.path_mtu = has_peer ? qp->attr.path_mtu : (enum ibv_mtu)0,
		.sends = sq_prod(&qp->sq) - qp->sq.cons,
		.receives = qp->rq == &qp->own_rq ? rq_waiting(&qp->own_rq) : 0,
		.pd = init->pd->number,
		.send_cq = qp->completer.cq ? qp->completer.cq->number : 0,
		.recv_cq = init->recv_cq ? init->recv_cq->number : 0,
		.cc = qp->pacer.cc ? qp->pacer.cc->kind : CC_NONE,
		.waits = qp_waits_for(qp),
	};
	if (has_expected_psn(qp))
		view->rq_psn = qp->responder.epsn.v;
	if (has_send_psn(qp))
		view->sq_psn = next_send_psn(qp).v;
	if (has_peer)
		memcpy(view->dgid, &qp->attr.ah_attr.grh.dgid, sizeof(view->dgid));
}

static bool qp_takes_sends(const struct qp *qp)
{
	const enum ibv_qp_state state = qp_state(qp);

	return state != IBV_QPS_RESET && state != IBV_QPS_INIT && state != IBV_QPS_RTR;
}

static int refuse_state(const struct qp *qp)
{
	return CALL_REASON(EINVAL, "the queue pair is in %s; it sends in RTS",
			   attr_state_name(qp_state(qp)));
}

int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (!qp_takes_sends(qp)) {
		*bad = wr;
		return refuse_state(qp);
	}
	return sq_post(&qp->sq, (enum ibv_qp_type)qp->sq.attr.type, wr, bad);
}

int qp_post_failure(struct qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	const enum fault fault = fault_of_status(status);

	if (fault == FAULT_NONE)
		return EINVAL;
	if (!qp_takes_sends(qp))
		return refuse_state(qp);
	return sq_post_failure(&qp->sq, wr, fault);
}

void qp_fail_built(struct send_wqe *wqe, enum ibv_wc_status status)
{
	sq_fail(wqe, fault_of_status(status));
}

struct sq *qp_sq(struct qp *qp)
{
	return &qp->sq;
}

const struct rq *qp_rq(const struct qp *qp)
{
	return qp->rq == &qp->own_rq ? qp->rq : NULL;
}

uint8_t qp_min_rnr_timer(const struct qp *qp)
{
	return qp->attr.min_rnr_timer;
}

bool qp_hides_receives(const struct qp *qp)
{
	return qp->own_rq.hidden > 0;
}

void qp_show_receives(struct qp *qp, bool show)
{
	if (qp->rq != &qp->own_rq)
		return;
	if (show)
		unfold_show(qp->rq);
	else
		unfold_hide(qp->rq);
}

int qp_post_built(struct qp *qp)
{
	if (!qp_takes_sends(qp)) {
		sq_build_abort(&qp->sq);
		return refuse_state(qp);
	}
	return sq_build_complete(&qp->sq);
}

int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (qp_state(qp) == IBV_QPS_RESET || qp->rq != &qp->own_rq) {
		*bad = wr;
		return EINVAL;
	}
	return rq_post(&qp->own_rq, wr, bad);
}
