/* SPDX-License-Identifier: BSD-3-Clause */
/* Send queues: allocation, and the posting side, which checks and copies every work request. */
#include "queue/sq.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_branch_prediction.h>

#include "base/reason.h"
#include "queue/ah.h"
#include "wire/headers.h"

#define SQ_WR_MAX     (1u << 24)
#define SQ_SGE_MAX    1024u
#define SQ_INLINE_MAX (1u << 16)

/* Checksum offload is missing: it is for raw and IPoIB packets, which are not supported. */
#define SEND_FLAGS_KNOWN \
	((unsigned int)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE))

/* The program chooses these bits of a window's key (ibv_inc_rkey(3)); the window keeps the
 * others. */
#define KEY_TAG_MASK 0xffu

int sq_init_in(const struct queue_domain *domain, struct sq *sq, const struct sq_attr *attr)
{
	uint32_t payload;
	int rc;

	*sq = (struct sq){.attr = *attr, .lock = queue_lock_make(domain)};
	if (attr->max_wr > SQ_WR_MAX || attr->max_sge > SQ_SGE_MAX ||
	    attr->max_inline > SQ_INLINE_MAX)
		return -EINVAL;
	if (attr->max_wr == 0)
		return 0;
	sq->attr.max_wr = rte_align32pow2(attr->max_wr);
	payload = RTE_MAX(attr->max_sge * (uint32_t)sizeof(struct ibv_sge), attr->max_inline);
	/* Grant the room that exists anyway: programs send a few bytes inline that they have not
	 * asked for, because other drivers allow it. */
	sq->attr.max_inline = RTE_MIN(payload, SQ_INLINE_MAX);
	payload = RTE_MAX(payload, (uint32_t)sizeof(struct sq_operands));
	payload = RTE_MAX(payload, (uint32_t)sizeof(struct sq_bind));
	if (attr->type == IBV_QPT_UD)
		payload = RTE_ALIGN(payload, (uint32_t) _Alignof(struct path)) +
			  (uint32_t)sizeof(struct path);
	sq->stride = RTE_ALIGN((uint32_t)sizeof(struct send_wqe) + payload, RTE_CACHE_LINE_SIZE);
	rc = ring_alloc(domain, (size_t)sq->attr.max_wr * sq->stride, RING_SEND, &sq->memory);
	sq->ring = sq->memory.base;
	return rc;
}

void sq_fini(struct sq *sq)
{
	ring_free(&sq->memory);
	sq->ring = NULL;
}

/* Return the opcodes that a type may send, without those that are not supported. */
uint32_t sq_opcodes(enum ibv_qp_type qp_type)
{
	const uint32_t send = SQ_OPCODE(IBV_WR_SEND) | SQ_OPCODE(IBV_WR_SEND_WITH_IMM);
	const uint32_t write = SQ_OPCODE(IBV_WR_RDMA_WRITE) | SQ_OPCODE(IBV_WR_RDMA_WRITE_WITH_IMM);
	const uint32_t local = SQ_OPCODE(IBV_WR_LOCAL_INV) | SQ_OPCODE(IBV_WR_BIND_MW);

	switch (qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return send | write | local | SQ_OPCODE(IBV_WR_RDMA_READ) |
		       SQ_OPCODE(IBV_WR_ATOMIC_CMP_AND_SWP) |
		       SQ_OPCODE(IBV_WR_ATOMIC_FETCH_AND_ADD) | SQ_OPCODE(IBV_WR_SEND_WITH_INV) |
		       SQ_OPCODE(IBV_WR_ATOMIC_WRITE) | SQ_OPCODE(LATER_WR_FLUSH);
	case IBV_QPT_UC:
		return send | write | local;
	case IBV_QPT_UD:
		return send;
	default:
		return 0;
	}
}

/*
 * Return opcodes that this type cannot execute but that may be posted. As on adapters such a
 * request fails when its turn comes, with IBV_WC_LOC_QP_OP_ERR.
 */
static uint32_t doomed_opcodes(enum ibv_qp_type qp_type)
{
	const uint32_t answered = SQ_OPCODE(IBV_WR_RDMA_READ) |
				  SQ_OPCODE(IBV_WR_ATOMIC_CMP_AND_SWP) |
				  SQ_OPCODE(IBV_WR_ATOMIC_FETCH_AND_ADD);

	switch (qp_type) {
	case IBV_QPT_UC:
		return answered;
	case IBV_QPT_UD:
		return answered | SQ_OPCODE(IBV_WR_RDMA_WRITE) |
		       SQ_OPCODE(IBV_WR_RDMA_WRITE_WITH_IMM);
	default:
		return 0;
	}
}

/* Return true if the request is addressed by an address handle. */
static bool is_datagram(const struct sq *sq, enum ibv_wr_opcode opcode)
{
	return sq->attr.type == IBV_QPT_UD && (sq_opcodes(IBV_QPT_UD) & SQ_OPCODE(opcode));
}

/* Check all of a work request except the length of the message. */
static int check(const struct sq *sq, uint32_t opcodes, const struct ibv_send_wr *wr)
{
	if ((unsigned int)wr->opcode >= 32 || !sq_is_in(opcodes, wr->opcode))
		return CALL_REASON(EINVAL, "the queue pair's type has no opcode %d",
				   (int)wr->opcode);
	if (wr->send_flags & ~SEND_FLAGS_KNOWN)
		return CALL_REASON(EINVAL, "send_flags have 0x%x, which uroce does not know",
				   wr->send_flags & ~SEND_FLAGS_KNOWN);
	/* A negative number is above every maximum. */
	if ((uint32_t)wr->num_sge > sq->attr.max_sge)
		return CALL_REASON(EINVAL, "num_sge is %d; it must be 0 to %u", wr->num_sge,
				   sq->attr.max_sge);
	if (wr->num_sge > 0 && !wr->sg_list)
		return CALL_REASON(EINVAL, "sg_list is NULL");
	if (is_datagram(sq, wr->opcode) && !wr->wr.ud.ah)
		return CALL_REASON(EINVAL, "a datagram needs an address handle (wr.ud.ah)");
	if ((wr->send_flags & IBV_SEND_INLINE) && !sq_has_payload(wr->opcode))
		return CALL_REASON(EINVAL, "IBV_SEND_INLINE is for requests that send data");
	/* The responder rejects an address that is not a multiple of eight (9.4.5). */
	if (sq_is_atomic(wr->opcode) &&
	    (wr->num_sge != 1 || wr->sg_list[0].length < SQ_ATOMIC_BYTES))
		return CALL_REASON(EINVAL, "an atomic has one entry of 8 bytes for the result");
	return 0;
}

static uint64_t gather_length(const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length;
}

int sq_fill_bind(struct send_wqe *wqe, const struct ibv_mw *mw, uint32_t rkey,
		 const struct ibv_mw_bind_info *info)
{
	if (!mw || (!info->mr && info->length > 0))
		return EINVAL;
	wqe->bind_window = mw->rkey;
	wqe->rkey = (mw->rkey & ~KEY_TAG_MASK) | (rkey & KEY_TAG_MASK);
	wqe->remote_addr = info->addr;
	*wqe->bind = (struct sq_bind){.length = info->length,
				      .lkey = info->mr ? info->mr->lkey : 0,
				      .access = info->mw_access_flags};
	return 0;
}

static int fill_local(struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	int rc;

	wqe->length = 0;
	wqe->num_sge = 0;
	if (wr->opcode == IBV_WR_BIND_MW) {
		rc = sq_fill_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		/* Programs read the key there after posting, as they do after ibv_bind_mw(3). */
		if (rc == 0)
			wr->bind_mw.mw->rkey = wqe->rkey;
		return rc;
	}
	wqe->rkey = wr->invalidate_rkey;
	return 0;
}

static void fill_remote(struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm_be = wr->imm_data;
		/* fallthrough */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->atomic->compare_add = wr->wr.atomic.compare_add;
		wqe->atomic->swap = wr->wr.atomic.swap;
		break;
	case IBV_WR_SEND_WITH_IMM:
		wqe->imm_be = wr->imm_data;
		break;
	case IBV_WR_SEND_WITH_INV:
		wqe->rkey = wr->invalidate_rkey;
		break;
	default:
		break;
	}
}

static void fill_datagram(const struct sq *sq, struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	const struct ah *ah = (const struct ah *)wr->wr.ud.ah;

	wqe->imm_be = wr->imm_data;
	wqe->remote_qpn = wr->wr.ud.remote_qpn;
	wqe->remote_qkey = wr->wr.ud.remote_qkey;
	*sq_path(sq, wqe) = ah->path;
}

/* Copy the list itself or, inline, the bytes that it names: the application may reuse them at
 * once. */
static void fill_payload(struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	uint8_t *data = wqe->data;

	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		/* The common case, one element, is an assignment; memcpy of a variable length would
		 * be a call. */
		if (likely(wr->num_sge == 1))
			wqe->sge[0] = wr->sg_list[0];
		else if (wr->num_sge > 0)
			memcpy(wqe->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(wqe->sge[0]));
		/* The result has 8 bytes, even if the application's buffer is longer. */
		if (sq_is_atomic(wr->opcode))
			wqe->sge[0].length = SQ_ATOMIC_BYTES;
		return;
	}
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length > 0)
			memcpy(data, (const void *)(uintptr_t)sge->addr, sge->length);
		data += sge->length;
	}
}

/* Return true if a request passes all checks but that of its length, and is of one piece of memory
 * without operands. `opcodes` are those of which that may be true. */
static bool is_plain(uint32_t opcodes, const struct ibv_send_wr *wr)
{
	return (unsigned int)wr->opcode < 32 && sq_is_in(opcodes, wr->opcode) && wr->num_sge == 1 &&
	       wr->sg_list &&
	       !(wr->send_flags & ~(SEND_FLAGS_KNOWN & ~(unsigned int)IBV_SEND_INLINE));
}

/* Fill the next slot. For a plain request `plain` is constant, and the compiler leaves out what
 * such a request does not need. */
static __rte_always_inline int fill(const struct sq *sq, uint32_t index, uint32_t opcodes,
				    const struct ibv_send_wr *wr, const bool plain)
{
	struct send_wqe *wqe;
	uint64_t length;
	int rc;

	/* Pairs with the release store in sq_pop: the requester no longer uses the slot. */
	if (index - __atomic_load_n(&sq->cons, __ATOMIC_ACQUIRE) >= sq->attr.max_wr)
		return CALL_REASON(
			ENOMEM,
			"the queue is full: it has room for %u work requests that are not "
			"complete",
			sq->attr.max_wr);
	rc = plain ? 0 : check(sq, opcodes, wr);
	if (rc != 0)
		return rc;
	if (plain)
		length = wr->sg_list[0].length;
	else
		length = sq_is_atomic(wr->opcode) ? SQ_ATOMIC_BYTES : gather_length(wr);
	if (length >
	    (!plain && (wr->send_flags & IBV_SEND_INLINE) ? sq->attr.max_inline : WIRE_MESSAGE_MAX))
		return wr->send_flags & IBV_SEND_INLINE
			       ? CALL_REASON(EINVAL,
					     "%" PRIu64 " bytes are more than %u, the queue pair's "
					     "max_inline_data",
					     length, sq->attr.max_inline)
			       : CALL_REASON(EINVAL,
					     "%" PRIu64 " bytes are more than a message may have",
					     length);
	if (!plain && wr->opcode == IBV_WR_ATOMIC_WRITE && length != ATOMIC_WRITE_BYTES)
		return CALL_REASON(EINVAL, "an ATOMIC WRITE must have 8 bytes");
	wqe = sq_at(sq, index);
	*wqe = (struct send_wqe){
		.wr_id = wr->wr_id,
		.length = (uint32_t)length,
		.num_sge = (uint16_t)wr->num_sge,
		.opcode = (uint8_t)wr->opcode,
		.flags = (uint8_t)(wr->send_flags | (sq->attr.sig_all ? IBV_SEND_SIGNALED : 0)),
	};
	if (plain) {
		fill_remote(wqe, wr);
		wqe->sge[0] = wr->sg_list[0];
		return 0;
	}
	if (sq_is_local(wr->opcode))
		return fill_local(wqe, wr);
	if (is_datagram(sq, wr->opcode))
		fill_datagram(sq, wqe, wr);
	else
		fill_remote(wqe, wr);
	if (sq->attr.type == IBV_QPT_XRC_SEND)
		wqe->remote_srqn = wr->qp_type.xrc.remote_srqn;
	fill_payload(wqe, wr);
	return 0;
}

static __rte_noinline int fill_any(const struct sq *sq, uint32_t index, enum ibv_qp_type qp_type,
				   const struct ibv_send_wr *wr)
{
	/* A work request has no fields for what a FLUSH needs. */
	const uint32_t opcodes =
		(sq_opcodes(qp_type) | doomed_opcodes(qp_type)) & ~SQ_OPCODE(LATER_WR_FLUSH);

	return fill(sq, index, opcodes, wr, false);
}

int sq_post(struct sq *sq, enum ibv_qp_type qp_type, struct ibv_send_wr *wr,
	    struct ibv_send_wr **bad)
{
	const uint32_t plain = qp_type == IBV_QPT_RC && sq->attr.max_sge > 0
				       ? SQ_OPCODE(IBV_WR_RDMA_WRITE) | SQ_OPCODE(IBV_WR_SEND) |
						 SQ_OPCODE(IBV_WR_RDMA_READ)
				       : 0;
	uint32_t prod;
	int rc = 0;

	queue_lock(&sq->lock);
	for (prod = sq->prod; wr; wr = wr->next, prod++) {
		rc = likely(is_plain(plain, wr)) ? fill(sq, prod, plain, wr, true)
						 : fill_any(sq, prod, qp_type, wr);
		if (rc != 0) {
			*bad = wr;
			break;
		}
	}
	/* Pairs with the acquire load in sq_prod: one store shows the whole list. */
	__atomic_store_n(&sq->prod, prod, __ATOMIC_RELEASE);
	queue_unlock(&sq->lock);
	return rc;
}

int sq_post_failure(struct sq *sq, const struct ibv_send_wr *wr, uint32_t fault)
{
	int rc = ENOMEM;

	/* A program may post any opcode, and a set of opcodes has 32 bits (SQ_OPCODE). */
	if ((unsigned int)wr->opcode >= 32)
		return EINVAL;
	queue_lock(&sq->lock);
	/* Acquire: as in `fill`. */
	if (sq->prod - __atomic_load_n(&sq->cons, __ATOMIC_ACQUIRE) < sq->attr.max_wr) {
		struct send_wqe *wqe = sq_at(sq, sq->prod);

		*wqe = (struct send_wqe){.wr_id = wr->wr_id,
					 .opcode = (uint8_t)wr->opcode,
					 .flags = (uint8_t)(wr->send_flags | IBV_SEND_SIGNALED)};
		sq_fail(wqe, fault);
		__atomic_store_n(&sq->prod, sq->prod + 1, __ATOMIC_RELEASE);
		rc = 0;
	}
	queue_unlock(&sq->lock);
	return rc;
}

/* Requests are started in their order, so their last PSNs ascend; local work does not change that.
 */
uint32_t sq_find(const struct sq *sq, struct psn psn)
{
	uint32_t from = sq->cons, to = sq_prod(sq);

	while (from != to) {
		const uint32_t middle = from + (to - from) / 2;
		const struct send_wqe *wqe = sq_at(sq, middle);

		if (wqe->started && psn_before(wqe->last_psn, psn))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void sq_clear(struct sq *sq)
{
	queue_lock(&sq->lock);
	__atomic_store_n(&sq->prod, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&sq->cons, 0, __ATOMIC_RELAXED);
	sq->next = 0;
	queue_unlock(&sq->lock);
}
