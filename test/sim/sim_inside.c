/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to the internals of a queue pair, behind its room's interface. */
#include "sim_inside.h"

#include "../../lib/qp/qp_internal.h"
#include "wire/headers.h"
#include "wire/opcode.h"
#include "wire/packet.h"

struct psn inside_una(const struct qp *qp)
{
	return qp->loss.una;
}

struct psn inside_top(const struct qp *qp)
{
	return qp->loss.top;
}

struct psn inside_expected(const struct qp *qp)
{
	return qp->responder.epsn;
}

uint32_t inside_reach(const struct qp *qp)
{
	return qp->responder.ooo.reach != 0 ? qp->responder.ooo.reach : OOO_REACH;
}

uint32_t inside_window(const struct qp *qp)
{
	return qp->loss.window;
}

bool inside_window_is_whole(const struct qp *qp)
{
	return qp->loss.window == qp->loss.window_max && qp->loss.peer != LOSS_PEER_SACK;
}

bool inside_reports_gaps(const struct qp *qp)
{
	return qp->loss.peer == LOSS_PEER_SACK;
}

bool inside_retransmits(const struct qp *qp)
{
	return (qp->loss.state == LOSS_REQUEST || qp->loss.state == LOSS_RESPONSE) &&
	       qp->loss.peer != LOSS_PEER_SACK;
}

bool inside_is_done(const struct qp *qp)
{
	return qp->sq.cons == sq_prod(&qp->sq);
}

bool inside_is_readable(const struct qp *qp)
{
	return qp->responder.access & IBV_ACCESS_REMOTE_READ;
}

uint32_t inside_longest_read(const struct qp *qp)
{
	return WIRE_MESSAGE_MAX / qp->responder.mtu;
}

void inside_age_requester(struct qp *qp, uint32_t psns, uint64_t now_ns)
{
	struct loss *loss = &qp->loss;

	loss_sent(loss, psns);
	/* No request is posted, so the pointer is at the end of the queue in any case. */
	requester_reset(&qp->requester, qp->requester.state);
	/* The completer makes this call for each response. */
	loss_on_ack(loss, loss->next, now_ns);
}

bool inside_age_responder(struct qp *qp, uint32_t psns, uint32_t rkey, uint32_t srqn)
{
	struct responder *responder = &qp->responder;
	const struct psn after = psn_add(responder->epsn, (int32_t)psns);
	const uint8_t opcode = (uint8_t)(qp->kind->service | OPCODE_READ_REQUEST);
	const struct packet packet = {
		.op = opcode_info(opcode),
		.opcode = opcode,
		.ack_byte = responder->asks, /* as its requester's packets */
		.dest_qpn = qp->init.qpn,
		.psn = responder->epsn,
		.iova = 1u << 12,
		.rkey = rkey,
		.dma_length = psns * responder->mtu,
		.xrc_srqn = srqn,
	};

	if (responder_receive(responder, &packet) != FAULT_NONE || !psn_eq(responder->epsn, after))
		return false;
	/* The responses have been sent. */
	qp->replies.head = qp->replies.tail;
	return true;
}
