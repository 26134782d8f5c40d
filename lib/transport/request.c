/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of a message: describe one by its PSN, build its headers and payload, and advance
 * behind it when it is sent. */
#include "request.h"

#include <assert.h>

#include <rte_branch_prediction.h>

#include "base/reason.h"
#include "transport/sgl.h"
#include "wire/headers.h"
#include "wire/opcode.h"
#include "wire/seal.h"

/* Opcodes of a message, by its work request's opcode. */
struct message_ops {
	uint8_t first;
	uint8_t middle;
	uint8_t last;
	uint8_t only;
};

static const struct message_ops message_ops[] = {
	[IBV_WR_RDMA_WRITE] = {OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST,
			       OPCODE_WRITE_ONLY},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE,
					OPCODE_WRITE_LAST_IMM, OPCODE_WRITE_ONLY_IMM},
	[IBV_WR_SEND] = {OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST, OPCODE_SEND_ONLY},
	[IBV_WR_SEND_WITH_IMM] = {OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_IMM,
				  OPCODE_SEND_ONLY_IMM},
	[IBV_WR_RDMA_READ] = {.only = OPCODE_READ_REQUEST},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {.only = OPCODE_COMPARE_SWAP},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {.only = OPCODE_FETCH_ADD},
	[IBV_WR_SEND_WITH_INV] = {OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_INV,
				  OPCODE_SEND_ONLY_INV},
	[LATER_WR_FLUSH] = {.only = OPCODE_FLUSH},
	[IBV_WR_ATOMIC_WRITE] = {.only = OPCODE_ATOMIC_WRITE},
};

/* A packet of a message, described before it is built. */
struct request {
	const struct send_wqe *wqe;
	struct psn psn;
	uint8_t opcode;
	bool last;	   /* last one of its message */
	uint32_t position; /* bytes of the message before it */
	uint32_t length;   /* bytes of payload, or of requested READ responses */
	uint32_t psns;	   /* PSNs that it stands for */
	/* It is retransmitted alone. This field is not next to `last`: a compiler would load both
	 * as one word, and that load would wait until both stores, and with them the whole packet
	 * before this one, have left the store buffer. */
	bool alone;
	bool copy; /* of a packet that was sent just now */
};

uint32_t requester_segment_psns(const struct send_wqe *wqe, struct psn psn)
{
	const uint32_t done = (uint32_t)psn_diff(psn, wqe->first_psn);
	const uint32_t left = (uint32_t)psn_diff(wqe->last_psn, psn) + 1;
	const uint32_t segment = REQUESTER_READ_SEGMENT_PKTS - done % REQUESTER_READ_SEGMENT_PKTS;

	return segment < left ? segment : left;
}

/* Set the bytes of a request that stands for request->psns, behind `done` of its message's
 * `psns`. */
static void request_fit(struct request *request, uint32_t done, uint32_t psns, uint32_t mtu)
{
	request->last = done + request->psns == psns;
	request->length =
		request->last ? request->wqe->length - request->position : request->psns * mtu;
}

/* Describe the packet of a message with this PSN. */
static __rte_always_inline struct request request_at(const struct requester *requester,
						     const struct send_wqe *wqe, struct psn psn,
						     const bool plain)
{
	const struct message_ops *ops = &message_ops[wqe->opcode];
	const uint32_t mtu = requester->peer->mtu;
	struct request request = {.wqe = wqe, .psn = psn, .psns = 1};
	uint32_t done, psns;

	if (likely(psn_eq(wqe->first_psn, wqe->last_psn))) {
		request.last = true;
		request.length = wqe->length;
		request.opcode = ops->only;
		return request;
	}
	done = (uint32_t)psn_diff(psn, wqe->first_psn);
	psns = (uint32_t)psn_diff(wqe->last_psn, wqe->first_psn) + 1;
	request.position = done * mtu;
	if (!plain && wqe->opcode == IBV_WR_RDMA_READ)
		request.psns = requester_segment_psns(wqe, psn);
	request_fit(&request, done, psns, mtu);
	if ((!plain && requester_wants_response(wqe)) || (done == 0 && request.last))
		request.opcode = ops->only;
	else if (done == 0)
		request.opcode = ops->first;
	else
		request.opcode = request.last ? ops->last : ops->middle;
	return request;
}

/*
 * Request only the missing READ responses. But a peer that has not received the first request would
 * take a shorter one for the whole READ, and could then not answer a longer one with the same PSN.
 * So if nothing shows that the request arrived, it is sent again unchanged.
 */
static void request_shorten(const struct requester *requester, const struct loss_range *range,
			    struct request *request)
{
	const struct send_wqe *wqe = request->wqe;
	const uint32_t missing = (uint32_t)psn_diff(range->to, range->from);
	const uint32_t done = (uint32_t)psn_diff(range->from, wqe->first_psn);

	request->alone = true;
	if (request->psns <= missing ||
	    (!range->is_executed && done % REQUESTER_READ_SEGMENT_PKTS == 0))
		return;
	request->psns = missing;
	request_fit(request, done, (uint32_t)psn_diff(wqe->last_psn, wqe->first_psn) + 1,
		    requester->peer->mtu);
}

/* The headers are in the order of enum opcode_flag. Plain requests have the RETH alone. */
static __rte_always_inline void request_put_headers(struct packet_out *out, uint32_t flags,
						    const struct request *request, const bool plain)
{
	const struct send_wqe *wqe = request->wqe;

	if (!plain && (flags & OPCODE_HAS_XRCETH))
		packet_put_xrceth(out, wqe->remote_srqn);
	if (!plain && (flags & OPCODE_HAS_FETH))
		packet_put_feth(out, wqe->flush_place, wqe->flush_select);
	if (flags & OPCODE_HAS_RETH) {
		const bool read = !plain && request->opcode == OPCODE_READ_REQUEST;

		/* A WRITE's first packet names the whole message; a READ request names its own
		 * segment. */
		packet_put_reth(out, wqe->remote_addr + request->position, wqe->rkey,
				read ? request->length : wqe->length);
	}
	if (plain)
		return;
	if (flags & OPCODE_HAS_ATOMICETH) {
		const bool swap = request->opcode == OPCODE_COMPARE_SWAP;

		packet_put_atomiceth(out, wqe->remote_addr, wqe->rkey,
				     swap ? wqe->atomic->swap : wqe->atomic->compare_add,
				     swap ? wqe->atomic->compare_add : 0);
	}
	if (flags & OPCODE_HAS_IMM)
		packet_put_immdt(out, wqe->imm_be);
	if (flags & OPCODE_HAS_IETH)
		packet_put_ieth(out, wqe->rkey);
}

void request_stand_at(struct requester *requester, uint32_t index)
{
	struct sq *sq = requester->sq;

	sq_seek(sq, index);
	requester->place_psn = requester->loss->next;
	requester->place_index = index;
}

/* Collect the payload's fragments before a packet is taken from the sink, because this may fail,
 * and a packet cannot be returned. */
static __rte_always_inline enum mr_status request_gather(struct requester *requester,
							 const struct request *request,
							 struct packet_frag *frags, uint32_t *count,
							 const bool plain)
{
	const struct send_wqe *wqe = request->wqe;

	if (plain) {
		assert(sgl_is_piece(&requester->sgl, request->length));
		*count = 1;
		return sgl_take_piece(&requester->sgl, requester->pd, request->length, 0, frags);
	}
	*count = 0;
	if (!sq_has_payload((enum ibv_wr_opcode)wqe->opcode) || request->length == 0)
		return MR_OK;
	if (wqe->flags & IBV_SEND_INLINE) {
		frags[0] = (struct packet_frag){.addr = wqe->data + request->position,
						.len = request->length,
						.kind = FRAG_OWN};
		*count = 1;
		return MR_OK;
	}
	return sgl_gather(&requester->sgl, requester->pd, request->length, frags, count);
}

/* Return true if nothing was sent behind this packet. While a page is absent, nothing more is sent
 * for a while, so only an acknowledgement of this packet stops the timer: it must be requested. */
static bool request_is_newest(const struct requester *requester, const struct request *request)
{
	return psn_eq(psn_add(request->psn, (int32_t)request->psns), requester->loss->top);
}

static __rte_always_inline bool request_asks_ack(const struct requester *requester,
						 const struct request *request, const bool plain)
{
	if (!plain && requester->service == OPCODE_UC)
		return false;
	if (!plain && unlikely(requester->absent) && request_is_newest(requester, request))
		return true;
	/* A packet that closes the window must be acknowledged, or nothing would open it again. */
	return request->last || request->alone ||
	       (!plain && pacer_asks_ack(requester->pacer, requester->unasked)) ||
	       requester->unasked + 1 >= REQUESTER_ACK_INTERVAL_PKTS ||
	       loss_outstanding(requester->loss) + 1 >= requester->loss->window;
}

/* Choose the form of a FLUSH's ICRC. A peer that does not answer may be rxe, which has another
 * form: when the oldest packet is a retransmission, it is sent in the other form, and so are those
 * behind it. */
static void request_choose_icrc(struct requester *requester, struct psn psn, struct packet_out *out)
{
	const struct loss *loss = requester->loss;

	if (psn_eq(psn, loss->una) && psn_before(psn, loss->top))
		requester->flush_repeats = !requester->flush_repeats;
	out->icrc_repeats = requester->flush_repeats;
}

/* Return true if a packet is a READ request that is no retransmission to the responder, which then
 * does not answer it twice. */
static bool request_is_marked(const struct requester *requester, const struct request *request)
{
	const struct loss *loss = requester->loss;

	return loss->peer == LOSS_PEER_SACK && request->opcode == OPCODE_READ_REQUEST &&
	       (request->copy || psn_eq(request->psn, loss->top));
}

/* Return the byte of the BTH that asks for an acknowledgement. */
static __rte_always_inline uint8_t request_ack_byte(struct requester *requester,
						    const struct request *request, const bool plain)
{
	const bool announces = !plain && request->opcode == OPCODE_READ_REQUEST &&
			       loss_is_widening(requester->loss);
	const bool asks = announces || request_asks_ack(requester, request, plain);

	requester->unasked = asks ? 0 : requester->unasked + 1;
	/* The mark is that it asks for nothing: responses acknowledge, too. An announcement must
	 * ask. */
	if (!plain && request_is_marked(requester, request) && !announces)
		return requester->loss->asks & ~BTH_ACK_REQ;
	return asks ? requester->loss->asks : 0;
}

static bool request_is_solicited(const struct request *request)
{
	return request->last && (request->wqe->flags & IBV_SEND_SOLICITED) &&
	       !requester_wants_response(request->wqe) && request->wqe->opcode != IBV_WR_RDMA_WRITE;
}

static __rte_always_inline void request_emit(struct requester *requester,
					     const struct request *request,
					     const struct packet_frag *frags, uint32_t count,
					     struct packet_out *out, const bool plain)
{
	const uint8_t opcode = (plain ? OPCODE_RC : requester->service) | request->opcode;
	struct bth_fields bth = peer_bth(requester->peer, opcode, request->psn);

	bth.solicited = !plain && request_is_solicited(request);
	bth.ack_byte = request_ack_byte(requester, request, plain);
	packet_begin(out, &requester->peer->path, &bth);
	if (!plain) {
		out->again = psn_before(request->psn, requester->loss->top);
		if (request->opcode == OPCODE_FLUSH)
			request_choose_icrc(requester, request->psn, out);
	}
	request_put_headers(out, opcode_flags(opcode), request, plain);
	if (plain)
		packet_payload_whole(out, frags);
	for (uint32_t i = 0; i < count && !plain; i++)
		packet_payload(out, frags[i].kind, frags[i].addr, frags[i].len);
}

void request_pass(struct requester *requester)
{
	const struct sq *sq = requester->sq;

	request_stand_at(requester, sq->next + 1);
	if (unlikely(requester->loss->state != LOSS_NONE) && sq->next != sq_prod(sq)) {
		const struct send_wqe *wqe = sq_at(sq, sq->next);

		/* After going back it may have begun. The others begin with their list. */
		sgl_seek(&requester->sgl, wqe->sge, wqe->num_sge, 0);
	}
}

/* Advance behind the packet that was sent; to the next request if it was the last one of its
 * message. */
static __rte_always_inline void request_advance(struct requester *requester,
						const struct request *request, bool again,
						const bool plain)
{
	struct loss *loss = requester->loss;

	if (!plain && requester_wants_response(request->wqe))
		loss->responses++;
	if (!plain && unlikely(again)) {
		counters_add(requester->counters, COUNTER_retransmitted_packets, 1);
		loss_sent(loss, request->psns);
	} else {
		loss_sent_new(loss, request->psns);
	}
	if (plain && request->last)
		request_stand_at(requester, requester->sq->next + 1);
	else if (request->last)
		request_pass(requester);
	else
		requester->place_psn = loss->next;
}

/* Note a packet that was sent again, alone. */
static void request_repeated(struct requester *requester, const struct request *request)
{
	counters_add(requester->counters, COUNTER_retransmitted_packets, 1);
	loss_sent_again(requester->loss, request->psn, request->psns);
}

void request_stop_at(struct requester *requester, uint32_t index, enum fault fault)
{
	requester->fault = fault;
	requester->faulty_index = index;
	request_unlocate(requester);
}

/* Return the index of a packet's request. */
static uint32_t request_index(const struct requester *requester, const struct request *request)
{
	return request->alone ? sq_find(requester->sq, request->psn) : requester->sq->next;
}

/* Move the position in the gather list to a packet that is sent again. Before the next new packet
 * its own position is located again. */
static void request_seek(struct requester *requester, const struct request *request)
{
	sgl_seek(&requester->sgl, request->wqe->sge, request->wqe->num_sge, request->position);
	request_unlocate(requester);
}

/* Return the bytes of a packet's frame. */
static __rte_always_inline uint32_t request_bytes(const struct requester *requester,
						  const struct request *request, const bool plain)
{
	const uint8_t opcode = (plain ? OPCODE_RC : requester->service) | request->opcode;
	const bool has_payload = plain || (opcode_flags(opcode) & OPCODE_PAYLOAD);

	return requester->peer->path.len + (uint32_t)sizeof(struct bth) +
	       opcode_infos[opcode].ext_len +
	       (has_payload ? RTE_ALIGN_CEIL(request->length, 4) : 0) + WIRE_ICRC_LEN;
}

/* Build a short packet where the sink offers a place, and send it. Here nobody else sees the struct
 * packet_out, so the compiler keeps it in registers. */
static __rte_always_inline int request_place(struct requester *requester, struct packet_sink *sink,
					     const struct request *request,
					     const struct packet_frag *frag, uint8_t *place)
{
	struct packet_out out;
	int len;

	out.frame = place;
	request_emit(requester, request, frag, 1, &out, true);
	len = packet_seal_piece(&out);
	if (unlikely(len < 0))
		return len;
	sink->placed(sink, (uint32_t)len);
	counters_add(requester->counters, COUNTER_tx_payload_bytes_read, out.copy_len);
	return 0;
}

/* A packet's payload is in memory that is not mapped. */
static __rte_noinline enum put request_unmapped(struct requester *requester, uint32_t index)
{
	request_stop_at(requester, index, FAULT_REASON(FAULT_SEND_PROTECTION, SGL_UNMAPPED));
	return PUT_FAULTY;
}

/* Build a packet and send it. For a plain request `plain` is constant, and the compiler leaves out
 * what such a request cannot be. */
static __rte_always_inline enum put put(struct requester *requester, struct packet_sink *sink,
					const struct send_wqe *wqe, struct psn psn,
					const struct loss_range *again, bool copy, const bool plain)
{
	struct request request = request_at(requester, wqe, psn, plain);
	const struct peer *peer = requester->peer;
	struct packet_frag frags[PACKET_FRAGS_MAX];
	enum mr_status status;
	struct packet_out *out;
	uint32_t count, bytes;
	uint8_t *place;

	if (!plain && unlikely(again != NULL)) {
		request_shorten(requester, again, &request);
		request_seek(requester, &request);
	}
	request.copy = copy;
	status = request_gather(requester, &request, frags, &count, plain);
	if (unlikely(status != MR_OK)) {
		if (status == MR_ABSENT)
			return PUT_ABSENT;
		request_stop_at(requester, request_index(requester, &request),
				FAULT_SEND_PROTECTION);
		return PUT_FAULTY;
	}
	bytes = request_bytes(requester, &request, plain);
	place = plain ? sink_offer(sink, &peer->path, peer->qpn, bytes) : NULL;
	if (plain && likely(place != NULL)) {
		if (request_place(requester, sink, &request, frags, place) != 0)
			return request_unmapped(requester, requester->sq->next);
		request_advance(requester, &request, false, true);
		return PUT_DONE;
	}
	out = plain ? sink->get(sink) : sink_begin(sink, &peer->path, peer->qpn, bytes);
	if (out == NULL) {
		/* The list was walked for a packet that is not sent. */
		request_unlocate(requester);
		return PUT_NO_ROOM;
	}
	request_emit(requester, &request, frags, count, out, plain);
	if ((plain ? sink->put(sink, out) : sink_send(sink, out)) != 0)
		return request_unmapped(requester, request_index(requester, &request));
	counters_add(requester->counters, COUNTER_tx_payload_bytes_read, out->copy_len);
	if (!plain && unlikely(requester->pacer->rate_kbps != 0))
		pacer_sent_request(requester->pacer, request.psn, request.psns, packet_length(out),
				   out->again);
	if (!plain && unlikely(copy))
		counters_add(requester->counters, COUNTER_retransmitted_packets, 1);
	else if (!plain && unlikely(request.alone))
		request_repeated(requester, &request);
	else
		request_advance(requester, &request, !plain && out->again, plain);
	return PUT_DONE;
}

enum put request_put(struct requester *requester, struct packet_sink *sink,
		     const struct send_wqe *wqe, struct psn psn, const struct loss_range *again,
		     bool copy)
{
	return put(requester, sink, wqe, psn, again, copy, false);
}

enum put request_put_plain(struct requester *requester, struct packet_sink *sink,
			   const struct send_wqe *wqe)
{
	return put(requester, sink, wqe, requester->loss->next, NULL, false, true);
}
