/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting of work requests: in lists, and by several calls: ibv_wr_start(3) and the calls until
 * ibv_wr_complete. */
#include "base/verbs_later.h"
#include "check.h"
#include "inject.h"
#include "qp/qp.h"
#include "queue/sq_build.h"
#include "queue/srq.h"
#include "verbs_internal.h"

static void kick(struct face_qp *qp)
{
	device_engine_kick(qp->home, qp->qp);
}

int post_send_op(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct face_qp *qp = face_qp(ibv);
	int rc = qp_post_send(qp->qp, wr, bad);

	/* Requests before a bad one are posted. */
	if (likely(rc == 0) || *bad != wr)
		kick(qp);
	return face_errno(-rc);
}

int post_recv_op(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct face_qp *qp = face_qp(ibv);
	int rc = qp_post_recv(qp->qp, wr, bad);

	/* Post the request before reading the state: the thread that sets the state looks for
	 * requests after it. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* A queue pair in error must flush the request now; in other states a packet will use
	 * it. */
	if (unlikely(qp_state(qp->qp) == IBV_QPS_ERR) && (rc == 0 || *bad != wr))
		kick(qp);
	return face_errno(-rc);
}

/* Post to a shared queue. The next queue pair that receives takes the request, so nobody is
 * kicked. */
int post_srq_recv_op(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return face_errno(-rq_post(&face_srq(ibv)->srq->rq, wr, bad));
}

static struct sq *sq_of(struct ibv_qp_ex *ex)
{
	return face_qp(&ex->qp_base)->build_sq;
}

static struct send_wqe *next(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	return sq_build_next(sq_of(ex), opcode, ex->wr_id, ex->wr_flags);
}

static void next_remote(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
			uint64_t remote_addr, __be32 imm)
{
	struct send_wqe *wqe = next(ex, opcode);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->imm_be = imm;
}

static void next_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
			uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct send_wqe *wqe = next(ex, opcode);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->atomic->compare_add = compare_add;
	wqe->atomic->swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	next_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	next_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	next_remote(ex, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	next_remote(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	next_remote(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	next(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	next_remote(ex, IBV_WR_SEND_WITH_IMM, 0, 0, imm);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	next_remote(ex, IBV_WR_SEND_WITH_INV, rkey, 0, 0);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	next_remote(ex, IBV_WR_LOCAL_INV, rkey, 0, 0);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct send_wqe *wqe = next(ex, IBV_WR_BIND_MW);
	int rc;

	if (!wqe)
		return;
	rc = sq_fill_bind(wqe, mw, rkey, info);
	if (rc != 0)
		sq_build_fail(sq_of(ex), rc);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *data)
{
	next(ex, IBV_WR_ATOMIC_WRITE);
	sq_build_atomic_write(sq_of(ex), remote_addr, rkey, data);
}

/* Build a FLUSH. Type and level are sent as they are given. */
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
		     uint8_t type, uint8_t level)
{
	const struct sq_flush flush = {.remote_addr = remote_addr,
				       .length = length,
				       .rkey = rkey,
				       .place = type,
				       .select = level};

	next(ex, (enum ibv_wr_opcode)LATER_WR_FLUSH);
	sq_build_flush(sq_of(ex), &flush);
}

/* A request for which no queue pair can be created: sq_opcodes of no type has its opcode. */

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr __rte_unused, uint16_t hdr_sz __rte_unused,
			uint16_t mss __rte_unused)
{
	sq_build_fail(sq_of(ex), EOPNOTSUPP);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	sq_build_datagram(sq_of(ex), ah, qpn, qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	sq_build_srqn(sq_of(ex), srqn);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	sq_build_inline(sq_of(ex), 1, &buf);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	sq_build_inline(sq_of(ex), num_buf, list);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	sq_build_sge_list(sq_of(ex), 1, &sge);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	sq_build_sge_list(sq_of(ex), num_sge, list);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	sq_build_start(sq_of(ex), face_qp(&ex->qp_base)->wr_opcodes);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct face_qp *qp = face_qp(&ex->qp_base);
	int rc;

	if (unlikely(inject_wanted))
		inject_built(ex);
	rc = qp_post_built(qp->qp);
	if (likely(rc == 0))
		device_engine_kick(qp->home, qp->qp);
	return face_errno(-rc);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	sq_build_abort(sq_of(ex));
}

/* The flags of IBV_QP_EX_WITH_*, up to TSO, whose bit is that of the opcode. */
#define OPCODE_FLAGS ((uint64_t)(IBV_QP_EX_WITH_TSO << 1) - 1)

static uint32_t opcodes_of(uint64_t send_ops_flags)
{
	uint32_t opcodes = (uint32_t)(send_ops_flags & OPCODE_FLAGS);

	if (send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		opcodes |= 1u << IBV_WR_ATOMIC_WRITE;
	if (send_ops_flags & LATER_QP_EX_WITH_FLUSH)
		opcodes |= 1u << LATER_WR_FLUSH;
	return opcodes;
}
static_assert(IBV_QP_EX_WITH_RDMA_WRITE == 1 << IBV_WR_RDMA_WRITE, "first of the flags");
static_assert(IBV_QP_EX_WITH_TSO == 1 << IBV_WR_TSO, "last that has its opcode's bit");

int wr_check_flags(enum ibv_qp_type type, uint64_t send_ops_flags)
{
	const uint64_t known = OPCODE_FLAGS | IBV_QP_EX_WITH_ATOMIC_WRITE | LATER_QP_EX_WITH_FLUSH;

	if (send_ops_flags & ~known)
		return -EINVAL;
	if (send_ops_flags & IBV_QP_EX_WITH_SEND_WITH_INV) {
		const int rc = like_refuses(LIKE_LACKS_ex_send_inv);

		if (rc != 0)
			return rc;
	}
	return opcodes_of(send_ops_flags) & (~sq_opcodes(type) | like_lacking_opcodes())
		       ? -EOPNOTSUPP
		       : 0;
}

void wr_fill(struct face_qp *qp, uint64_t send_ops_flags)
{
	struct ibv_qp_ex *ex = &qp->ex;

	qp->wr_opcodes = opcodes_of(send_ops_flags);
	qp->is_ex = true;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
	later_qp_ex(ex)->wr_flush = wr_flush;
	check_qp_ex(ex);
}

/*
 * The functions of a child process (ibv_fork.c). The queue is its parent's: it may be in memory
 * that both share, and a thread that exists only in the parent may have locked it.
 */

static void child_wr_start(struct ibv_qp_ex *ex __rte_unused)
{
}

static int child_wr_complete(struct ibv_qp_ex *ex __rte_unused)
{
	return face_errno(-ENODEV);
}

void wr_disable(struct face_qp *qp)
{
	/* A list in which every request has failed already. */
	static struct sq nowhere = {.lock.unneeded = true, .build.error = ENODEV};

	qp->build_sq = &nowhere;
	qp->ex.wr_start = child_wr_start;
	qp->ex.wr_complete = child_wr_complete;
	qp->ex.wr_abort = child_wr_start;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct face_qp *qp = face_qp(ibv);

	return qp->is_ex ? &qp->ex : NULL;
}
