/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive request from the time when a message takes it from the queue until its completion. */
#include "transport/receive.h"

#include <string.h>

#include <rte_branch_prediction.h>

#include "wire/packet.h"

/* Take the oldest request. Return false if there is none. */
static __rte_always_inline bool take(struct receive *receive, struct rq *rq, struct srq *srq)
{
	const struct recv_wqe *wqe = rq_head(rq);

	if (wqe == NULL)
		return false;
	receive->taken = true;
	receive->wr_id = wqe->wr_id;
	receive->length = wqe->length;
	receive->num_sge = wqe->num_sge;
	/* The common case, one element, is an assignment; memcpy of a variable length would be a
	 * call. */
	if (likely(wqe->num_sge == 1))
		receive->sge[0] = wqe->sge[0];
	else
		memcpy(receive->sge, wqe->sge, wqe->num_sge * sizeof(wqe->sge[0]));
	rq_pop(rq);
	if (srq != NULL)
		srq_taken(srq);
	return true;
}

static __rte_noinline bool take_shared(struct receive *receive, struct srq *srq)
{
	bool taken;

	rte_spinlock_lock(&srq->take_lock);
	taken = take(receive, &srq->rq, srq);
	rte_spinlock_unlock(&srq->take_lock);
	return taken;
}

bool receive_take(struct receive *receive, struct rq *rq, struct srq *srq)
{
	if (!receive->taken) {
		const bool shared = srq != NULL && unlikely(srq->shared);

		if (!(shared ? take_shared(receive, srq) : take(receive, rq, srq)))
			return false;
	}
	receive->filled = 0;
	sgl_seek(&receive->sgl, receive->sge, receive->num_sge, 0);
	return true;
}

enum mr_status receive_store(struct receive *receive, const struct pd *pd, const void *data,
			     uint32_t len)
{
	enum mr_status status;

	if (len > receive->length - receive->filled)
		return MR_OUT_OF_RANGE;
	status = len == 0 ? MR_OK : sgl_scatter(&receive->sgl, pd, data, len);
	if (status == MR_OK)
		receive->filled += len;
	return status;
}

static __rte_noinline int count_and_push(const struct comp_cntrs *cntrs, struct cq *cq,
					 const struct ibv_wc *wc, bool solicited)
{
	comp_cntr_add(cntrs, COMP_CNTR_RECV, wc->status == IBV_WC_SUCCESS, wc->byte_len);
	return cq_push(cq, wc, solicited);
}

int receive_complete(struct receive *receive, struct cq *cq, struct ibv_wc *wc,
		     enum ibv_wc_status status, const struct packet *packet)
{
	bool solicited = false;

	wc->wr_id = receive->wr_id;
	wc->status = status;
	wc->opcode = IBV_WC_RECV;
	wc->byte_len = (uint32_t)receive->filled;
	if (packet != NULL) {
		solicited = packet->solicited;
		if (packet->op->flags & OPCODE_IS_WRITE)
			wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		if (packet->op->flags & OPCODE_HAS_IMM) {
			wc->wc_flags |= IBV_WC_WITH_IMM;
			wc->imm_data = packet->imm_be;
		} else if (packet->op->flags & OPCODE_HAS_IETH) {
			wc->wc_flags |= IBV_WC_WITH_INV;
			wc->invalidated_rkey = packet->rkey;
		}
	}
	receive->taken = false;
	if (unlikely(receive->cntrs != NULL))
		return count_and_push(receive->cntrs, cq, wc, solicited);
	return cq_push(cq, wc, solicited);
}
