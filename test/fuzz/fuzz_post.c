/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests that the attacked side posts, so that it has requests to answer and buffers to
 * fill. */
#include <string.h>

#include "mem/mw.h"
#include "qp/qp.h"
#include "queue/rq.h"
#include "queue/sq_build.h"
#include "queue/srq.h"
#include "world.h"

#define POSTS_MAX 65536

static bool new_id(struct world *world, uint64_t *id)
{
	if (world->next_wr == POSTS_MAX)
		return false;
	*id = world->next_wr++;
	world->posted[*id / 64] |= 1ull << (*id % 64);
	return true;
}

static void forget_id(struct world *world, uint64_t id)
{
	world->posted[id / 64] &= ~(1ull << (id % 64));
}

static struct ibv_sge entry(const struct world *world, enum world_region region, uint32_t offset,
			    uint32_t length)
{
	return (struct ibv_sge){.addr = world->mr[region]->iova + offset,
				.length = length,
				.lkey = world->mr[region]->key};
}

static enum ibv_wr_opcode opcode_of(const struct world_qp *qp, uint8_t what)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_WRITE,
		(enum ibv_wr_opcode)LATER_WR_FLUSH,
		IBV_WR_SEND_WITH_INV,
		IBV_WR_BIND_MW,
		IBV_WR_LOCAL_INV,
	};

	(void)qp;
	return opcodes[what % (sizeof(opcodes) / sizeof(opcodes[0]))];
}

/* ibv_post_send has no FLUSH. */
static void post_flush(struct world *world, struct world_qp *qp, uint64_t id, uint32_t length)
{
	const struct sq_flush flush = {.remote_addr = 0x1000,
				       .length = length,
				       .place = FETH_PLACE_GLOBAL,
				       .select = length & 1};
	struct sq *sq = qp_sq(qp->qp);

	sq_build_start(sq, sq_opcodes(qp->type));
	sq_build_next(sq, (enum ibv_wr_opcode)LATER_WR_FLUSH, id, IBV_SEND_SIGNALED);
	if (qp->type == IBV_QPT_XRC_SEND)
		sq_build_srqn(sq, 1);
	sq_build_flush(sq, &flush);
	if (qp_post_built(qp->qp) != 0)
		forget_id(world, id);
	qp->ready = true;
}

static void bind(const struct world *world, const struct world_qp *qp, struct ibv_send_wr *wr,
		 struct ibv_mw *mw, struct ibv_mr *mr)
{
	*mw = (struct ibv_mw){.rkey = world->windows[qp - world->qps]->view.key};
	mr->lkey = world->mr[REGION_OPEN]->key;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr->bind_mw.bind_info =
		(struct ibv_mw_bind_info){.mr = mr,
					  .addr = world->mr[REGION_OPEN]->iova,
					  .length = 64,
					  .mw_access_flags = IBV_ACCESS_REMOTE_READ};
}

void world_post_send(struct world *world, struct world_qp *qp, uint8_t what, uint16_t length)
{
	const enum ibv_wr_opcode opcode = opcode_of(qp, what);
	const bool atomic =
		opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	const bool lands = atomic || opcode == IBV_WR_RDMA_READ;
	const uint32_t half = length % 4000 / 2;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = sge,
				 .num_sge = 2,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_mw mw;
	struct ibv_mr mr;

	if (!new_id(world, &wr.wr_id))
		return;
	if ((int)opcode == LATER_WR_FLUSH) {
		post_flush(world, qp, wr.wr_id, length);
		return;
	}
	for (uint32_t i = 0; i < 2; i++)
		sge[i] = entry(world, lands ? REGION_INBOX : REGION_SOURCE, i * 4000 + what, half);
	if (atomic) {
		wr.num_sge = 1;
		sge[0].length = 8;
		wr.wr.atomic.remote_addr = 0x1000;
	} else if (opcode == IBV_WR_BIND_MW) {
		bind(world, qp, &wr, &mw, &mr);
	} else if (opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = world->windows[qp - world->qps]->view.key;
	} else if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM) {
		wr.wr.rdma.remote_addr = 0x1000;
	}
	if (opcode == IBV_WR_ATOMIC_WRITE) {
		wr.num_sge = 1;
		sge[0].length = 8;
	}
	if (what & 0x40)
		wr.send_flags |= IBV_SEND_FENCE;
	if ((what & 0x80) && !lands && !sq_is_local(opcode)) {
		/* The call copies the data, so the address must be one of this process. */
		wr.send_flags |= IBV_SEND_INLINE;
		sge[0].length %= 64;
		sge[1].length %= 64;
	}
	if (qp_post_send(qp->qp, &wr, &bad) != 0)
		forget_id(world, wr.wr_id);
	qp->ready = true;
}

void world_post_recv(struct world *world, struct world_qp *qp, uint16_t length)
{
	const uint32_t half = length % 4000 / 2;
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 2}, *bad;
	int err;

	if (!new_id(world, &wr.wr_id))
		return;
	for (uint32_t i = 0; i < 2; i++)
		sge[i] = entry(world, REGION_INBOX, i * 4000, half);
	err = qp_post_recv(qp->qp, &wr, &bad);
	if (err != 0)
		err = rq_post(&world->srq->rq, &wr, &bad);
	if (err != 0)
		forget_id(world, wr.wr_id);
	qp->ready = true;
}
