/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches how the program takes completions and their events, for mistakes that do no harm here. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "queue/cq.h"
#include "verbs_internal.h"

#define POISON	  0xa5
#define CAUSE_MAX ORIGIN_TEXT_MAX

static int (*plain_notify)(struct ibv_cq *ibv, int solicited_only);

/* Keep only the fields that have a meaning after a failure (ibv_poll_cq(3)). */
static void poison_failure(struct ibv_wc *wc)
{
	const struct ibv_wc was = *wc;

	memset(wc, POISON, sizeof(*wc));
	wc->wr_id = was.wr_id;
	wc->status = was.status;
	wc->vendor_err = was.vendor_err;
	wc->qp_num = was.qp_num;
}

/* Return true if byte_len has a meaning: data has come. */
static bool has_length(enum ibv_wc_opcode opcode)
{
	return (opcode & IBV_WC_RECV) || opcode == IBV_WC_RDMA_READ || opcode == IBV_WC_COMP_SWAP ||
	       opcode == IBV_WC_FETCH_ADD;
}

void check_poison(struct ibv_wc *wc, enum ibv_qp_type type)
{
	if (wc->status != IBV_WC_SUCCESS) {
		poison_failure(wc);
		return;
	}
	if (!has_length(wc->opcode))
		memset(&wc->byte_len, POISON, sizeof(wc->byte_len));
	if (!(wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)))
		memset(&wc->imm_data, POISON, sizeof(wc->imm_data));
	if (type == IBV_QPT_UD && (wc->opcode & IBV_WC_RECV))
		return;
	memset(&wc->src_qp, POISON, sizeof(wc->src_qp));
	memset(&wc->pkey_index, POISON, sizeof(wc->pkey_index));
	memset(&wc->slid, POISON, sizeof(wc->slid));
	memset(&wc->sl, POISON, sizeof(wc->sl));
	memset(&wc->dlid_path_bits, POISON, sizeof(wc->dlid_path_bits));
}

/* Note if the queue is armed while it holds completions that no event announces. The standard
 * promises no event for those, only for the next one (IBTA 11.4.2.2). */
static int operation_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct face_cq *cq = face_cq(ibv);
	const bool holds = ibv->channel && !solicited_only && !cq_is_armed(cq->cq) &&
			   channel_pending(cq->cq->channel, &cq->cq->source) == 0 &&
			   !cq_empty(cq->cq);
	const int rc = plain_notify(ibv, solicited_only);

	if (rc == 0 && holds)
		__atomic_store_n(&cq->armed_full, true, __ATOMIC_RELAXED);
	return rc;
}

void check_notify(struct ibv_context_ops *ops)
{
	if (!plain_notify)
		plain_notify = ops->req_notify_cq;
	ops->req_notify_cq = operation_req_notify_cq;
}

static void tell_sleep(const struct face_cq *cq)
{
	char origin[ORIGIN_TEXT_MAX], cause[CAUSE_MAX];

	snprintf(cause, sizeof(cause), "%s", origin_write(&cq->object, "the queue", origin));
	check_finding(CHECK_SLEEP, cause,
		      "ibv_get_cq_event: completion queue %u held completions when it was armed "
		      "(ibv_req_notify_cq), and was not polled since: an event is promised only "
		      "for a later one; arm, poll until it is empty, and then sleep%s",
		      cq->cq->number, origin);
}

/* Another thread may poll the queue after it was armed, and wake nobody. So only note who sleeps:
 * check_polled tells if that thread polls the queue next. */
void check_sleep(struct ibv_comp_channel *channel)
{
	struct face_context *context = face_context(channel->context);
	struct face_object *object;

	/* A read of this descriptor does not sleep. */
	if (fcntl(channel->fd, F_GETFL) & O_NONBLOCK)
		return;
	pthread_mutex_lock(&context->face->lock);
	LIST_FOREACH (object, &context->objects[FACE_CQ], link) {
		struct face_cq *cq = container_of(object, struct face_cq, object);

		if (cq->ibv.channel == channel &&
		    __atomic_exchange_n(&cq->armed_full, false, __ATOMIC_RELAXED))
			__atomic_store_n(&cq->sleeper, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&context->face->lock);
}

void check_polled(struct face_cq *cq)
{
	const uintptr_t sleeper = __atomic_exchange_n(&cq->sleeper, 0, __ATOMIC_RELAXED);

	__atomic_store_n(&cq->armed_full, false, __ATOMIC_RELAXED);
	if (sleeper == (uintptr_t)pthread_self())
		tell_sleep(cq);
}
