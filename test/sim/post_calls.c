/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts call by call (ibv_wr_start(3)): the same requests as in a list for ibv_post_send. */
#include <string.h>

#include "qp/qp.h"
#include "queue/sq_build.h"
#include "sim.h"

#define LIST_MAX 32

/* Read the eight bytes of an ATOMIC WRITE now: their memory does not change. */
static void gather_word(const struct flow *flow, const struct work *work, uint8_t *to)
{
	for (uint32_t i = 0; i < work->spans; i++) {
		span_load_actual(&flow->spans[work->first_span + i], to);
		to += flow->spans[work->first_span + i].len;
	}
}

static void describe(struct sq *sq, struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->atomic->compare_add = wr->wr.atomic.compare_add;
		wqe->atomic->swap = wr->wr.atomic.swap;
		break;
	case IBV_WR_RDMA_READ:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wqe->rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		sq_fill_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		break;
	default:
		break;
	}
	if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wqe->imm_be = wr->imm_data;
	if (sq->attr.type == IBV_QPT_UD)
		sq_build_datagram(sq, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (sq->attr.type == IBV_QPT_XRC_SEND)
		sq_build_srqn(sq, wr->qp_type.xrc.remote_srqn);
}

static void give_data(struct sq *sq, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf bufs[LIST_MAX];

	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		if (wr->num_sge > 0)
			sq_build_sge_list(sq, (size_t)wr->num_sge, wr->sg_list);
		return;
	}
	for (int i = 0; i < wr->num_sge; i++)
		bufs[i] = (struct ibv_data_buf){.addr = (void *)(uintptr_t)wr->sg_list[i].addr,
						.length = wr->sg_list[i].length};
	sq_build_inline(sq, (size_t)wr->num_sge, bufs);
}

static void build(const struct flow *flow, struct sq *sq, const struct ibv_send_wr *wr)
{
	const struct work *work = &flow->works[wr->wr_id & 0x7fffffff];
	struct send_wqe *wqe = sq_build_next(sq, wr->opcode, wr->wr_id, wr->send_flags);
	uint8_t word[8];

	if (wqe == NULL)
		return;
	describe(sq, wqe, wr);
	if (wr->opcode == IBV_WR_ATOMIC_WRITE) {
		gather_word(flow, work, word);
		sq_build_atomic_write(sq, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey, word);
	} else if (work_flushes(work)) {
		const struct sq_flush flush = {.remote_addr = wr->wr.rdma.remote_addr,
					       .length = work->whole ? SIZE_MAX : work->length,
					       .rkey = wr->wr.rdma.rkey,
					       .place = FETH_PLACE_GLOBAL,
					       .select = work->whole ? FETH_SELECT_REGION
								     : FETH_SELECT_RANGE};

		sq_build_flush(sq, &flush);
	} else {
		give_data(sq, wr);
	}
}

int build_sends(struct flow *flow, const struct ibv_send_wr *wr)
{
	struct sq *sq = qp_sq(flow->from->qp);

	sq_build_start(sq, sq_opcodes(flow->from->type));
	for (; wr != NULL; wr = wr->next)
		build(flow, sq, wr);
	return qp_post_built(flow->from->qp);
}
