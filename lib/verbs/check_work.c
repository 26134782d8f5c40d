/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches what the program posts and polls, and its regions, for mistakes that do no harm here. */
#include "check/work.h"

#include <stdio.h>

#include "check.h"
#include "device/limits.h"
#include "mem/mr.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/rq.h"
#include "queue/sq.h"
#include "queue/srq.h"
#include "verbs_internal.h"

#define BUCKETS	      1024
#define CAUSE_MAX     (ORIGIN_TEXT_MAX + 16)
#define OVERWRITE_MAX 64 /* messages behind one that are looked at */

/* The part of a queue pair that a finding is about: each has a cause of its own. */
enum which {
	QUEUE = 1,
	SENDS = 2,
	RECEIVES = 4,
};

struct check_qp {
	LIST_ENTRY(check_qp) link;
	struct face_qp *face;
	struct work_queue sends, receives;
	uint32_t told[CHECK_RULES]; /* bits of enum which */
	/* Held while a list is built: the send queue is locked for so long, and otherwise locked
	 * under `lock`. */
	pthread_mutex_t order;
};

/* Protects what is posted, regions, and the lists below. No function of the program and no lock
 * that its calls hold is waited for under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(check_qps, check_qp) qps[BUCKETS];

/* The functions behind ours; the same in every context, queue pair and queue. */
static struct ibv_context_ops plain;
static void (*plain_start)(struct ibv_qp_ex *ex), (*plain_abort)(struct ibv_qp_ex *ex);
static int (*plain_complete)(struct ibv_qp_ex *ex);
static int (*plain_start_poll)(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr);
static int (*plain_next_poll)(struct ibv_cq_ex *ex);

static struct sq *face_sq(const struct face_qp *face)
{
	return qp_sq(face->qp);
}

static struct check_qp *find(const struct device *device, uint32_t qpn)
{
	struct check_qp *qp;

	LIST_FOREACH (qp, &qps[qpn % BUCKETS], link) {
		if (qp->face->ibv.qp_num == qpn && qp->face->device == device)
			return qp;
	}
	return NULL;
}

/* Tell of a queue pair, once for each rule. `text` continues the sentence that it begins. */
static void tell(struct check_qp *qp, enum check_rule rule, enum which which, const char *text)
{
	char origin[ORIGIN_TEXT_MAX], cause[CAUSE_MAX];

	if (qp->told[rule] & which)
		return;
	qp->told[rule] |= which;
	origin_write(&qp->face->object, "the queue pair", origin);
	snprintf(cause, sizeof(cause), "%d%s", which, origin);
	check_finding(rule, cause, "queue pair 0x%x: %s%s", qp->face->ibv.qp_num, text, origin);
}

/* Stop to watch a queue until the queue pair is reset. */
static void lose(struct work_queue *queue, struct ibv_cq *cq)
{
	if (cq)
		face_cq(cq)->due -= queue->signaled;
	work_lose(queue);
}

static void lose_sends(struct check_qp *qp)
{
	lose(&qp->sends, qp->face->ibv.send_cq);
}

static void lose_receives(struct check_qp *qp)
{
	lose(&qp->receives, qp->face->ibv.recv_cq);
}

static void give_up(struct check_qp *qp)
{
	lose_sends(qp);
	lose_receives(qp);
}

/* A program need not poll a queue that ignores overruns, so nobody knows when a request is over. */
static bool need_not_poll(struct ibv_cq *cq)
{
	return face_cq(cq)->cq->ignores_overrun;
}

void check_qp_created(struct face_qp *face)
{
	struct check_qp *qp;

	if (likely(!check_wanted) || face->ibv.qp_type == IBV_QPT_XRC_RECV)
		return;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return;
	qp->face = face;
	work_init(&qp->sends);
	work_init(&qp->receives);
	pthread_mutex_init(&qp->order, NULL);
	pthread_mutex_lock(&lock);
	face->check = qp;
	LIST_INSERT_HEAD(&qps[face->ibv.qp_num % BUCKETS], qp, link);
	pthread_mutex_unlock(&lock);
}

void check_qp_ended(struct face_qp *face)
{
	struct check_qp *qp = face->check;

	pthread_mutex_lock(&lock);
	give_up(qp);
	LIST_REMOVE(qp, link);
	face->check = NULL;
	pthread_mutex_unlock(&lock);
	pthread_mutex_destroy(&qp->order);
	free(qp);
}

void check_qp_reset(struct face_qp *face)
{
	pthread_mutex_lock(&lock);
	give_up(face->check);
	work_init(&face->check->sends);
	work_init(&face->check->receives);
	pthread_mutex_unlock(&lock);
}

static enum work_use use_of(const struct send_wqe *wqe)
{
	const enum ibv_wr_opcode opcode = sq_posted_opcode(wqe);

	if ((wqe->flags & IBV_SEND_INLINE) || wqe->num_sge == 0)
		return WORK_IGNORES;
	if (opcode == IBV_WR_RDMA_READ || sq_is_atomic(opcode))
		return WORK_WRITES;
	return sq_has_payload(opcode) ? WORK_READS : WORK_IGNORES;
}

static void look_at_cq(struct check_qp *qp, struct ibv_cq *ibv)
{
	const struct face_cq *cq = face_cq(ibv);
	char text[160];

	if (cq->due <= (uint32_t)ibv->cqe || (qp->told[CHECK_SMALL_CQ] & QUEUE))
		return;
	snprintf(text, sizeof(text),
		 "its completion queue has %d entries (cqe), and %u requests are posted whose "
		 "completions the program has not polled: the queue can overrun",
		 ibv->cqe, cq->due);
	tell(qp, CHECK_SMALL_CQ, QUEUE, text);
}

static void note_send(struct check_qp *qp, uint32_t index)
{
	const struct sq *sq = face_sq(qp->face);
	const struct send_wqe *wqe = sq_at(sq, index);
	const struct work work = {.wr_id = wqe->wr_id,
				  .index = index,
				  .use = use_of(wqe),
				  .signaled = wqe->flags & IBV_SEND_SIGNALED,
				  .num_sge = wqe->num_sge};
	const uint32_t before = qp->sends.signaled;
	char text[192];

	work_add(&qp->sends, qp->face->device, &work, wqe->sge);
	face_cq(qp->face->ibv.send_cq)->due += qp->sends.signaled - before;
	if (qp->sends.unsignaled <= sq->attr.max_wr)
		return;
	snprintf(text, sizeof(text),
		 "none of its last %u send requests has IBV_SEND_SIGNALED, and the send queue has "
		 "room for %u (max_send_wr): only a completion frees room there",
		 qp->sends.unsignaled, sq->attr.max_wr);
	tell(qp, CHECK_UNSIGNALED, SENDS, text);
	/* A program that never signals would add requests for ever. The device may not have done
	 * the last ones. */
	work_keep_open(&qp->sends);
	lose_sends(qp);
}

static void note_receive(struct check_qp *qp, const struct rq *rq, uint32_t index)
{
	const struct recv_wqe *wqe =
		(const void *)(rq->ring + (uint64_t)(index & (rq->max_wr - 1)) * rq->stride);
	const struct work work = {.wr_id = wqe->wr_id,
				  .index = index,
				  .use = WORK_WRITES,
				  .signaled = true,
				  .num_sge = wqe->num_sge};
	const uint32_t before = qp->receives.signaled;

	work_add(&qp->receives, qp->face->device, &work, wqe->sge);
	face_cq(qp->face->ibv.recv_cq)->due += qp->receives.signaled - before;
}

/* Note what has been posted to the send queue since `prod` was `before`. */
static void note_sends(struct check_qp *qp, uint32_t before)
{
	const struct sq *sq = face_sq(qp->face);
	const uint32_t prod = sq_prod(sq);

	/* Completion counters tell a program more than its completions; and after an overrun or a
	 * reset meanwhile nobody knows what is posted. */
	if (qp->face->cntrs || prod - before > sq->attr.max_wr)
		give_up(qp);
	else if (need_not_poll(qp->face->ibv.send_cq))
		lose_sends(qp);
	for (; before != prod && prod - before <= sq->attr.max_wr; before++)
		note_send(qp, before);
	if (!qp->sends.is_lost)
		look_at_cq(qp, qp->face->ibv.send_cq);
}

/* ibv_bind_mw calls it, too. */
static int operation_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct check_qp *qp = face_qp(ibv)->check;
	uint32_t before;
	int rc;

	if (!qp)
		return plain.post_send(ibv, wr, bad);
	pthread_mutex_lock(&qp->order);
	pthread_mutex_lock(&lock);
	before = sq_prod(face_sq(qp->face));
	rc = plain.post_send(ibv, wr, bad);
	note_sends(qp, before);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&qp->order);
	return rc;
}

static void start(struct ibv_qp_ex *ex)
{
	struct check_qp *qp = face_qp(&ex->qp_base)->check;

	if (qp)
		pthread_mutex_lock(&qp->order);
	plain_start(ex);
}

static int complete(struct ibv_qp_ex *ex)
{
	struct check_qp *qp = face_qp(&ex->qp_base)->check;
	uint32_t before;
	int rc;

	if (!qp)
		return plain_complete(ex);
	pthread_mutex_lock(&lock);
	before = sq_prod(face_sq(qp->face));
	rc = plain_complete(ex);
	note_sends(qp, before);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&qp->order);
	return rc;
}

static void abort_list(struct ibv_qp_ex *ex)
{
	struct check_qp *qp = face_qp(&ex->qp_base)->check;

	plain_abort(ex);
	if (qp)
		pthread_mutex_unlock(&qp->order);
}

static int operation_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct check_qp *qp = face_qp(ibv)->check;
	const struct rq *rq = qp ? qp_rq(qp->face->qp) : NULL;
	uint32_t at, prod;
	int rc;

	/* XRC_SEND has no queue of completions for it, and takes nothing. */
	if (!rq || !ibv->recv_cq)
		return plain.post_recv(ibv, wr, bad);
	pthread_mutex_lock(&lock);
	at = __atomic_load_n(&rq->prod, __ATOMIC_ACQUIRE);
	rc = plain.post_recv(ibv, wr, bad);
	prod = __atomic_load_n(&rq->prod, __ATOMIC_ACQUIRE);
	if (qp->face->cntrs || prod - at > rq->max_wr)
		give_up(qp);
	else if (need_not_poll(ibv->recv_cq))
		lose_receives(qp);
	for (; at != prod && prod - at <= rq->max_wr; at++)
		note_receive(qp, rq, at);
	if (!qp->receives.is_lost)
		look_at_cq(qp, ibv->recv_cq);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Let the buffers of a list be written, up to the request that is refused (rq_post). */
static void write_list(const struct face_srq *srq, const struct ibv_recv_wr *wr)
{
	const uint32_t max_sge = srq->srq->rq.max_sge;

	for (uint32_t n = 0; wr && n < DEVICE_MAX_QP_WR; wr = wr->next, n++) {
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge ||
		    (wr->num_sge > 0 && !wr->sg_list))
			return;
		for (int i = 0; i < wr->num_sge; i++)
			work_write(srq->device, &wr->sg_list[i]);
	}
}

/* Which queue pair takes a request of a shared queue is not known before it is complete, so its
 * buffers may be written for ever. */
static int operation_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
				   struct ibv_recv_wr **bad)
{
	pthread_mutex_lock(&lock);
	write_list(face_srq(ibv), wr);
	pthread_mutex_unlock(&lock);
	return plain.post_srq_recv(ibv, wr, bad);
}

/* Look if the program has changed the buffers of a request that is complete now. */
static void look_at_buffers(struct check_qp *qp, const struct work *work, bool receives,
			    uint64_t written)
{
	const int64_t at = work->kept > 0 ? work_changed(work, written) : -1;
	char text[256];

	if (at < 0)
		return;
	snprintf(text, sizeof(text),
		 "the program has changed byte %lld of the buffers of a %s request (wr_id %llu) "
		 "after it was posted, and before its completion was polled: the device uses them "
		 "until then (%s(3))",
		 (long long)at, receives ? "receive" : "send", (unsigned long long)work->wr_id,
		 receives ? "ibv_post_recv" : "ibv_post_send");
	tell(qp, CHECK_CHANGED, receives ? RECEIVES : SENDS, text);
}

/* Remove the requests up to the first signaled one, which is complete. */
static void sent(struct check_qp *qp, uint64_t wr_id)
{
	bool signaled = false;

	while (!signaled) {
		const struct work *work = STAILQ_FIRST(&qp->sends.posted);

		if (!work || (work->signaled && work->wr_id != wr_id)) {
			give_up(qp);
			return;
		}
		signaled = work->signaled;
		if (work->use == WORK_READS)
			look_at_buffers(qp, work, false, 0);
		work_drop(&qp->sends);
	}
	face_cq(qp->face->ibv.send_cq)->due--;
}

static uint64_t first_bytes(const struct work *work, uint64_t written)
{
	return work->num_sge == 0 ? 0 : RTE_MIN(work->sge[0].length, written);
}

/* Mark later messages that the device has taken already, and that overwrite this one. Only the
 * first entries are looked at. */
static void mark_lost(const struct work *work, const struct rq *rq, uint64_t written)
{
	const uint32_t cons = __atomic_load_n(&rq->cons, __ATOMIC_ACQUIRE);
	struct work *later = STAILQ_NEXT(work, link);

	for (int i = 0; i < OVERWRITE_MAX && later && (int32_t)(cons - later->index) > 0; i++) {
		later->lost_begin = work->sge[0].addr;
		later->lost_end = work->sge[0].addr + first_bytes(work, written);
		later->lost_wr_id = work->wr_id;
		later = STAILQ_NEXT(later, link);
	}
}

static void look_at_overwritten(struct check_qp *qp, const struct work *work, uint64_t written)
{
	const uint64_t bytes = first_bytes(work, written);
	char text[224];

	if (bytes == 0 || !work->is_translated || work->sge[0].addr >= work->lost_end ||
	    work->lost_begin >= work->sge[0].addr + bytes)
		return;
	snprintf(text, sizeof(text),
		 "the message of the receive request with wr_id %llu was overwritten before the "
		 "program polled its completion: the next one (wr_id %llu) has the same buffer",
		 (unsigned long long)work->lost_wr_id, (unsigned long long)work->wr_id);
	tell(qp, CHECK_OVERWRITTEN, RECEIVES, text);
}

static void received(struct check_qp *qp, const struct ibv_wc *wc)
{
	const uint64_t written = wc->opcode == IBV_WC_RECV ? wc->byte_len : 0;
	struct work *work = STAILQ_FIRST(&qp->receives.posted);

	if (!work || work->wr_id != wc->wr_id) {
		give_up(qp);
		return;
	}
	/* A message of UC that lost its end may have been longer. */
	if (qp->face->ibv.qp_type != IBV_QPT_UC)
		look_at_buffers(qp, work, true, written);
	look_at_overwritten(qp, work, written);
	if (written > 0 && work->num_sge > 0 && work->is_translated)
		mark_lost(work, qp_rq(qp->face->qp), written);
	work_drop(&qp->receives);
	face_cq(qp->face->ibv.recv_cq)->due--;
}

static void look_at_completion(struct check_qp *qp, const struct ibv_wc *wc)
{
	/* Which requests have failed is not told exactly if wr_ids are equal. */
	if (wc->status != IBV_WC_SUCCESS || qp->face->cntrs)
		give_up(qp);
	else if (!(wc->opcode & IBV_WC_RECV) && !qp->sends.is_lost)
		sent(qp, wc->wr_id);
	else if ((wc->opcode & IBV_WC_RECV) && !qp->receives.is_lost && qp_rq(qp->face->qp))
		received(qp, wc);
}

/* A completion that the program gets now. `lock`. */
static void polled(const struct face_cq *cq, struct ibv_wc *wc)
{
	struct check_qp *qp = find(cq->device, wc->qp_num);

	if (!qp)
		return;
	look_at_completion(qp, wc);
	check_poison(wc, qp->face->ibv.qp_type);
}

/* Let no thread that polls an empty queue keep others from the lock. */
static int operation_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct face_cq *cq = face_cq(ibv);
	int got;

	check_polled(cq);
	if (n > 0 && cq_empty(cq->cq)) {
		device_engine_poll(face_home(cq));
		if (cq_empty(cq->cq))
			return 0;
	}
	pthread_mutex_lock(&lock);
	got = plain.poll_cq(ibv, n, wc);
	for (int i = 0; i < got; i++)
		polled(cq, &wc[i]);
	pthread_mutex_unlock(&lock);
	return got;
}

/* The thread holds the iterator's lock, so completions are looked at in their order. */
static int iterated(struct ibv_cq_ex *ex, int rc)
{
	struct face_cq *cq = (struct face_cq *)ex;

	check_polled(cq);
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&lock);
	polled(cq, &cq->wc);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	return iterated(ex, plain_start_poll(ex, attr));
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return iterated(ex, plain_next_poll(ex));
}

void check_operations(struct verbs_context *verbs)
{
	struct ibv_context_ops *ops = &verbs->context.ops;

	if (likely(!check_wanted))
		return;
	pthread_mutex_lock(&lock);
	if (!plain.post_send)
		plain = *ops;
	pthread_mutex_unlock(&lock);
	check_notify(ops);
	ops->post_send = operation_post_send;
	ops->post_recv = operation_post_recv;
	ops->post_srq_recv = operation_post_srq_recv;
	ops->poll_cq = operation_poll_cq;
}

void check_cq_ex(struct ibv_cq_ex *ex)
{
	if (likely(!check_wanted))
		return;
	plain_start_poll = ex->start_poll;
	plain_next_poll = ex->next_poll;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
}

void check_qp_ex(struct ibv_qp_ex *ex)
{
	if (likely(!check_wanted))
		return;
	plain_start = ex->wr_start;
	plain_complete = ex->wr_complete;
	plain_abort = ex->wr_abort;
	ex->wr_start = start;
	ex->wr_complete = complete;
	ex->wr_abort = abort_list;
}

static void add_region(const struct face_mr *mr)
{
	const struct mr *of = mr->mr;
	const struct work_region region = {
		.device = face_context(mr->ibv.context)->device,
		.key = mr->key,
		.access = of->access,
		.is_readable = of->kind == MR_MEMORY && !(of->access & IBV_ACCESS_ON_DEMAND),
		.addr = (uintptr_t)of->addr,
		.iova = of->iova,
		.length = of->length,
	};

	if (of->kind != MR_MEMORY && of->kind != MR_IMPLICIT)
		return;
	pthread_mutex_lock(&lock);
	work_add_region(&region);
	pthread_mutex_unlock(&lock);
}

void check_mr_created(const struct face_mr *mr)
{
	if (unlikely(check_wanted))
		add_region(mr);
}

/* Return true if a queue has a request that uses the region, and that the device has not done yet:
 * `cons` is the oldest one. */
static bool queue_uses(const struct work_queue *queue, uint32_t key, uint32_t cons, uint64_t *wr_id)
{
	const struct work *work;

	STAILQ_FOREACH (work, &queue->posted, link) {
		if ((int32_t)(work->index - cons) < 0 || !work_uses(work, key))
			continue;
		*wr_id = work->wr_id;
		return true;
	}
	return false;
}

static void look_at_use(struct check_qp *qp, const struct face_mr *mr)
{
	const enum ibv_qp_state state = qp_state(qp->face->qp);
	const struct rq *rq = qp_rq(qp->face->qp);
	char text[256 + ORIGIN_TEXT_MAX], origin[ORIGIN_TEXT_MAX];
	uint64_t wr_id = 0;
	bool receives;

	/* The device uses nothing before RTR, and what is left after an error is flushed. */
	if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_ERR)
		return;
	receives = rq && queue_uses(&qp->receives, mr->key,
				    __atomic_load_n(&rq->cons, __ATOMIC_ACQUIRE), &wr_id);
	if (!receives &&
	    (state == IBV_QPS_SQE ||
	     !queue_uses(&qp->sends, mr->key,
			 __atomic_load_n(&face_sq(qp->face)->cons, __ATOMIC_ACQUIRE), &wr_id)))
		return;
	snprintf(text, sizeof(text),
		 "the region 0x%x (%zu bytes at %p) is deregistered or moved while a %s request "
		 "(wr_id %llu) that uses it is posted and not done%s",
		 mr->key, mr->ibv.length, mr->ibv.addr, receives ? "receive" : "send",
		 (unsigned long long)wr_id, origin_write(&mr->object, "the region", origin));
	tell(qp, CHECK_DEREGISTERED, receives ? RECEIVES : SENDS, text);
}

void check_mr_ended(const struct face_mr *mr, bool moves)
{
	const struct device *device = face_context(mr->ibv.context)->device;
	struct check_qp *qp;

	if (likely(!check_wanted))
		return;
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < BUCKETS && moves; i++) {
		LIST_FOREACH (qp, &qps[i], link) {
			if (qp->face->device == device)
				look_at_use(qp, mr);
		}
	}
	work_remove_region(device, mr->key);
	pthread_mutex_unlock(&lock);
}

/* A child of fork() has none of its parent's objects. Their memory is not given back. */
void check_forget_work(void)
{
	pthread_mutex_init(&lock, NULL);
	for (unsigned int i = 0; i < BUCKETS; i++)
		LIST_INIT(&qps[i]);
	work_forget();
}
