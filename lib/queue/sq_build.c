/* SPDX-License-Identifier: BSD-3-Clause */
/* Building of work requests by several calls, in the slots where the requester will find them. */
#include "queue/sq_build.h"

#include <errno.h>
#include <string.h>

#include "queue/ah.h"
#include "wire/headers.h"

#define FLAGS_KNOWN ((unsigned int)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED))

void sq_build_fail(struct sq *sq, int error)
{
	if (sq->build.error == 0)
		sq->build.error = error;
	sq->build.wqe = NULL;
}

void sq_build_start(struct sq *sq, uint32_t opcodes)
{
	queue_lock(&sq->lock);
	sq->build = (struct sq_build){.opcodes = opcodes, .prod = sq->prod};
}

/* Finish the description of a request: check that it is complete. */
static void finish(struct sq *sq)
{
	struct send_wqe *wqe = sq->build.wqe;

	if (!wqe)
		return;
	if (!sq->build.addressed)
		sq_build_fail(sq, EINVAL);
	if (!sq_is_atomic((enum ibv_wr_opcode)wqe->opcode))
		return;
	if (wqe->num_sge != 1 || wqe->sge[0].length < SQ_ATOMIC_BYTES) {
		sq_build_fail(sq, EINVAL);
		return;
	}
	/* The result has 8 bytes, even if the application's buffer is longer. */
	wqe->sge[0].length = SQ_ATOMIC_BYTES;
	wqe->length = SQ_ATOMIC_BYTES;
}

struct send_wqe *sq_build_next(struct sq *sq, enum ibv_wr_opcode opcode, uint64_t wr_id,
			       unsigned int flags)
{
	struct sq_build *build = &sq->build;

	finish(sq);
	if (build->error != 0)
		return NULL;
	/* The function that gives the data decides if it is inline. */
	flags &= ~(unsigned int)IBV_SEND_INLINE;
	if (!(build->opcodes >> opcode & 1) || (flags & ~FLAGS_KNOWN)) {
		sq_build_fail(sq, EINVAL);
		return NULL;
	}
	/* Pairs with the release store in sq_pop: the requester no longer uses the slot. */
	if (build->prod - __atomic_load_n(&sq->cons, __ATOMIC_ACQUIRE) >= sq->attr.max_wr) {
		sq_build_fail(sq, ENOMEM);
		return NULL;
	}
	build->wqe = sq_at(sq, build->prod++);
	build->addressed = sq_is_local(opcode) ||
			   (sq->attr.type != IBV_QPT_UD && sq->attr.type != IBV_QPT_XRC_SEND);
	*build->wqe = (struct send_wqe){
		.wr_id = wr_id,
		.opcode = (uint8_t)opcode,
		.flags = (uint8_t)(flags | (sq->attr.sig_all ? IBV_SEND_SIGNALED : 0)),
	};
	return build->wqe;
}

/* Return true if the call that begins the request has already given all its data. */
static bool has_its_data(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_WRITE || wqe->opcode == LATER_WR_FLUSH;
}

void sq_build_sge_list(struct sq *sq, size_t num_sge, const struct ibv_sge *list)
{
	struct send_wqe *wqe = sq->build.wqe;
	uint64_t length = 0;

	if (!wqe)
		return;
	if (num_sge > sq->attr.max_sge || sq_is_local((enum ibv_wr_opcode)wqe->opcode) ||
	    has_its_data(wqe)) {
		sq_build_fail(sq, EINVAL);
		return;
	}
	/* An atomic's operands follow its one entry. */
	if (num_sge != 1 && sq_is_atomic((enum ibv_wr_opcode)wqe->opcode)) {
		sq_build_fail(sq, EINVAL);
		return;
	}
	for (size_t i = 0; i < num_sge; i++) {
		wqe->sge[i] = list[i];
		length += list[i].length;
	}
	if (length > WIRE_MESSAGE_MAX) {
		sq_build_fail(sq, EINVAL);
		return;
	}
	wqe->flags &= (uint8_t)~IBV_SEND_INLINE;
	wqe->num_sge = (uint16_t)num_sge;
	wqe->length = (uint32_t)length;
}

void sq_build_inline(struct sq *sq, size_t num_buf, const struct ibv_data_buf *list)
{
	struct send_wqe *wqe = sq->build.wqe;
	size_t left = sq->attr.max_inline;
	uint8_t *data;

	if (!wqe)
		return;
	data = wqe->data;
	for (size_t i = 0; i < num_buf; i++) {
		if (list[i].length > left) {
			sq_build_fail(sq, EINVAL);
			return;
		}
		if (list[i].length > 0)
			memcpy(data, list[i].addr, list[i].length);
		data += list[i].length;
		left -= list[i].length;
	}
	if (!sq_has_payload((enum ibv_wr_opcode)wqe->opcode) || has_its_data(wqe)) {
		sq_build_fail(sq, EINVAL);
		return;
	}
	wqe->flags |= IBV_SEND_INLINE;
	wqe->num_sge = 0;
	wqe->length = sq->attr.max_inline - (uint32_t)left;
}

void sq_build_atomic_write(struct sq *sq, uint64_t remote_addr, uint32_t rkey, const void *data)
{
	struct send_wqe *wqe = sq->build.wqe;

	if (!wqe)
		return;
	wqe->remote_addr = remote_addr;
	wqe->rkey = rkey;
	wqe->length = ATOMIC_WRITE_BYTES;
	wqe->flags |= IBV_SEND_INLINE;
	memcpy(wqe->data, data, ATOMIC_WRITE_BYTES);
}

void sq_build_flush(struct sq *sq, const struct sq_flush *flush)
{
	struct send_wqe *wqe = sq->build.wqe;

	if (!wqe)
		return;
	if (flush->place == 0 || (flush->place & ~(FETH_PLACE_GLOBAL | FETH_PLACE_PERSISTENT)) ||
	    flush->select > FETH_SELECT_REGION ||
	    (flush->select == FETH_SELECT_RANGE && flush->length > WIRE_MESSAGE_MAX)) {
		sq_build_fail(sq, EINVAL);
		return;
	}
	wqe->remote_addr = flush->remote_addr;
	wqe->rkey = flush->rkey;
	/* For a whole region the length has no meaning, and need not fit into 32 bits. */
	wqe->length = flush->select == FETH_SELECT_RANGE ? (uint32_t)flush->length : 0;
	wqe->flush_place = flush->place;
	wqe->flush_select = flush->select;
}

void sq_build_datagram(struct sq *sq, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct send_wqe *wqe = sq->build.wqe;

	if (!wqe)
		return;
	if (sq->attr.type != IBV_QPT_UD || !ah) {
		sq_build_fail(sq, EINVAL);
		return;
	}
	*sq_path(sq, wqe) = ((const struct ah *)ah)->path;
	wqe->remote_qpn = qpn;
	wqe->remote_qkey = qkey;
	sq->build.addressed = true;
}

void sq_build_srqn(struct sq *sq, uint32_t srqn)
{
	if (!sq->build.wqe)
		return;
	if (sq->attr.type != IBV_QPT_XRC_SEND) {
		sq_build_fail(sq, EINVAL);
		return;
	}
	sq->build.wqe->remote_srqn = srqn;
	sq->build.addressed = true;
}

int sq_build_complete(struct sq *sq)
{
	int error;

	finish(sq);
	error = sq->build.error;
	/* Pairs with the acquire load in sq_prod: one store shows the whole list. */
	if (error == 0)
		__atomic_store_n(&sq->prod, sq->build.prod, __ATOMIC_RELEASE);
	queue_unlock(&sq->lock);
	return error;
}

void sq_build_abort(struct sq *sq)
{
	queue_unlock(&sq->lock);
}
