/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends what a responder owes its requester, in the order of the requests. */
#include <rte_branch_prediction.h>

#include "base/reason.h"
#include "mem/mr.h"
#include "replies_ring.h"
#include "transport/ooo.h"
#include "transport/pass.h"
#include "transport/sack.h"
#include "wire/headers.h"
#include "wire/opcode.h"

/* Return the BTH of an answer. */
static struct bth_fields replies_bth(const struct replies *replies, uint8_t opcode, struct psn psn)
{
	struct bth_fields bth = peer_bth(replies->peer, opcode, psn);

	bth.ack_byte = replies->capability;
	return bth;
}

static void replies_put_aeth(struct packet_out *out, uint8_t syndrome, uint32_t msn)
{
	struct aeth *aeth = packet_extend(out, sizeof(*aeth));

	aeth->syndrome = syndrome;
	wire_put24(aeth->msn, msn);
}

static uint8_t reply_read_opcode(bool first, bool last)
{
	if (first)
		return last ? OPCODE_READ_RESPONSE_ONLY : OPCODE_READ_RESPONSE_FIRST;
	return last ? OPCODE_READ_RESPONSE_LAST : OPCODE_READ_RESPONSE_MIDDLE;
}

/* Return the bytes of the next response of a READ. */
static uint32_t reply_read_len(const struct replies *replies, const struct reply *reply)
{
	const uint32_t mtu = replies->peer->mtu;

	return psn_eq(psn_add(reply->first, (int32_t)reply->sent), reply->last)
		       ? reply->length - reply->sent * mtu
		       : mtu;
}

/* Fetch the payload of the next response from another process. */
static enum mr_status replies_fetch(const struct replies *replies, const struct reply *reply,
				    uint8_t **addr)
{
	const struct packet request = {
		.opcode = OPCODE_XRC | OPCODE_READ_REQUEST,
		.op = opcode_info(OPCODE_XRC | OPCODE_READ_REQUEST),
		.xrc_srqn = reply->srqn,
		.iova = reply->iova + (uint64_t)reply->sent * replies->peer->mtu,
		.rkey = reply->rkey,
		.dma_length = reply_read_len(replies, reply),
	};

	return pass_read(reply->pass, &request, psn_add(reply->first, (int32_t)reply->sent), addr);
}

/* Find the memory of the next response. Each packet checks it again, because the region may have
 * been deregistered since the request. */
static enum mr_status replies_reach(const struct replies *replies, uint8_t **addr)
{
	const struct reply *reply;
	struct mr_touch touch;
	uint32_t position;

	*addr = NULL;
	if (replies->head == replies->tail)
		return MR_OK;
	reply = replies_pending(replies, replies->head);
	if (reply->kind != REPLY_READ)
		return MR_OK;
	if (unlikely(reply->srqn != 0))
		return replies_fetch(replies, reply, addr);
	position = reply->sent * replies->peer->mtu;
	touch.now = reply_read_len(replies, reply);
	touch.ahead = reply->length - position - touch.now;
	return mr_reach_remote(reply->pd, replies->qpn, reply->rkey, reply->iova + position,
			       touch.now, IBV_ACCESS_REMOTE_READ, touch, addr);
}

/* Return an empty packet for an answer with at most so many bytes of payload. */
static struct packet_out *replies_get(const struct replies *replies, struct packet_sink *sink,
				      uint32_t payload_len)
{
	const struct path *path = &replies->peer->path;

	return sink_begin(
		sink, path, replies->peer->qpn,
		path->len +
			(uint32_t)(sizeof(struct bth) + sizeof(struct aeth) + sizeof(rte_be64_t)) +
			RTE_ALIGN_CEIL(payload_len, 4) + WIRE_ICRC_LEN);
}

/* Return the most bytes of payload that the next answer has. */
static uint32_t replies_next_bytes(const struct replies *replies)
{
	const struct reply *reply;

	if (replies_owe_sack(replies))
		return SACK_BYTES_MAX;
	if (replies->head == replies->tail)
		return 0;
	reply = replies_pending(replies, replies->head);
	return reply->kind == REPLY_READ ? reply_read_len(replies, reply) : 0;
}

/* Build the next response of a READ, from the address that replies_reach has found. */
static void replies_build_read(const struct replies *replies, const struct reply *reply,
			       uint8_t *addr, struct packet_out *out)
{
	const struct psn psn = psn_add(reply->first, (int32_t)reply->sent);
	const bool last = psn_eq(psn, reply->last);
	const uint32_t len = reply_read_len(replies, reply);
	const struct bth_fields bth = replies_bth(
		replies, replies->service | reply_read_opcode(reply->sent == 0, last), psn);

	packet_begin(out, &replies->peer->path, &bth);
	out->again = reply->repeated;
	if (opcode_flags(bth.opcode) & OPCODE_HAS_AETH)
		replies_put_aeth(out, AETH_ACK | AETH_CREDIT_NONE, reply->msn);
	if (len > 0)
		packet_payload(out, FRAG_COPY, addr, len);
}

static void replies_build_atomic(const struct replies *replies, const struct reply *reply,
				 struct packet_out *out)
{
	const struct bth_fields bth =
		replies_bth(replies, replies->service | OPCODE_ATOMIC_ACKNOWLEDGE, reply->first);
	const rte_be64_t original = rte_cpu_to_be_64(reply->original);

	packet_begin(out, &replies->peer->path, &bth);
	replies_put_aeth(out, AETH_ACK | AETH_CREDIT_NONE, reply->msn);
	memcpy(packet_extend(out, sizeof(original)), &original, sizeof(original));
}

static void replies_build_empty_read(const struct replies *replies, const struct reply *reply,
				     struct packet_out *out)
{
	const struct bth_fields bth =
		replies_bth(replies, replies->service | OPCODE_READ_RESPONSE_ONLY, reply->first);

	packet_begin(out, &replies->peer->path, &bth);
	replies_put_aeth(out, AETH_ACK | AETH_CREDIT_NONE, reply->msn);
}

static void replies_build_acknowledge(const struct replies *replies, struct packet_out *out,
				      uint8_t syndrome, struct psn psn, uint32_t msn)
{
	const struct bth_fields bth =
		replies_bth(replies, replies->service | OPCODE_ACKNOWLEDGE, psn);

	packet_begin(out, &replies->peer->path, &bth);
	replies_put_aeth(out, syndrome, msn);
}

/* Build the selective acknowledgement that takes the place of a sequence NAK. Its bitmap is in
 * `bitmap`. */
static void replies_build_sack(struct replies *replies, struct packet_out *out, uint8_t *bitmap)
{
	struct bth_fields bth = replies_bth(replies, OPCODE_SACK, replies->nak_psn);
	const uint32_t room = RTE_MIN(replies->peer->mtu, (uint32_t)SACK_BYTES_MAX);
	struct sacketh *sacketh;

	bth.solicited = !replies_owe_response(replies);
	packet_begin(out, &replies->peer->path, &bth);
	sacketh = packet_extend(out, sizeof(*sacketh));
	sacketh->serial = rte_cpu_to_be_32(++replies->sacks);
	packet_payload(out, FRAG_OWN, bitmap,
		       ooo_tell(replies->kept, replies->nak_psn, bitmap, room));
	replies->nak_due = false;
	counters_add(replies->counters, COUNTER_sacks_sent, 1);
}

/*
 * Send an introduction, but not between the responses of a READ: Soft-RoCE of some kernels takes an
 * old acknowledgement there for the end of the READ. There are so few that no budget counts them.
 */
static __rte_noinline void replies_send_introduction(struct replies *replies,
						     struct packet_sink *sink)
{
	struct packet_out *out =
		replies_owe_response(replies) ? NULL : replies_get(replies, sink, 0);

	if (out == NULL)
		return;
	replies_build_acknowledge(replies, out, AETH_ACK | AETH_CREDIT_NONE,
				  psn_add(replies->introduction, -SACK_INTRODUCTION_PSNS),
				  sack_introduction_msn(replies->introduction, replies->peer->qpn));
	sink_send(sink, out);
	replies->introduces = false;
	replies->introductions--;
}

bool replies_owe_sack(const struct replies *replies)
{
	return replies->nak_due && replies_sack(replies) &&
	       replies->nak_syndrome == (AETH_NAK | NAK_PSN_SEQUENCE);
}

/* Build the acknowledgement or NAK that is due. */
static void replies_build_ack(struct replies *replies, struct packet_out *out, uint8_t *bitmap)
{
	const bool is_rnr = (replies->nak_syndrome & AETH_KIND_MASK) == AETH_RNR_NAK;
	const bool nak = replies->nak_due && !(is_rnr && replies->ack_due);

	replies->ack_due = false;
	if (replies_owe_sack(replies)) {
		replies_build_sack(replies, out, bitmap);
	} else if (nak) {
		replies_build_acknowledge(replies, out, replies->nak_syndrome, replies->nak_psn,
					  replies->nak_msn);
		replies->nak_due = false;
	} else {
		replies_build_acknowledge(replies, out, AETH_ACK | AETH_CREDIT_NONE,
					  replies->ack_psn, replies->ack_msn);
	}
}

/* A response was sent again, before the reply that is owed next for the first time (replies_hurry).
 * If it is that reply's next response, it need not be sent twice. The requester may have the whole
 * answer now, and send a new request, which needs the resource. */
static void replies_skip(struct replies *replies, struct psn psn)
{
	uint32_t place = replies->head;
	struct reply *reply;

	while (place != replies->tail && replies_pending(replies, place)->repeated)
		place++;
	if (place == replies->tail)
		return;
	reply = replies_pending(replies, place);
	if (!psn_eq(psn_add(reply->first, (int32_t)reply->sent), psn))
		return;
	reply->sent++;
	if (!psn_eq(psn, reply->last))
		return;
	for (; place != replies->head; place--)
		*replies_pending(replies, place) = *replies_pending(replies, place - 1);
	replies->head++;
}

static void replies_sent(struct replies *replies)
{
	struct reply *reply = replies_pending(replies, replies->head);

	reply->sent++;
	if (unlikely(reply->srqn != 0))
		pass_read_done(reply->pass);
	if (!psn_eq(psn_add(reply->first, (int32_t)reply->sent - 1), reply->last))
		return;
	/* A READ need not ask for an answer, so the responder has not noted it. */
	if (unlikely(replies->introductions == SACK_INTRODUCTIONS_MAX) && !reply->repeated)
		replies_introduce(replies, psn_add(reply->last, 1));
	replies_pop(replies);
	/* A response acknowledges all earlier requests (9.7.5.1.1). */
	if (replies->ack_due && psn_before(replies->ack_psn, reply->last))
		replies->ack_due = false;
}

/* Refuse the oldest owed READ, because its memory may no longer be read. */
static enum fault replies_build_refusal(struct replies *replies, struct packet_out *out)
{
	const struct reply *reply = replies_pending(replies, replies->head);
	const struct psn psn = psn_add(reply->first, (int32_t)reply->sent);

	replies_build_acknowledge(replies, out, AETH_NAK | NAK_REMOTE_ACCESS, psn, reply->msn);
	if (reply->repeated) {
		reason_drop();
		replies_pop(replies);
		return FAULT_NONE;
	}
	replies->head = replies->tail;
	replies->repeats = 0;
	replies->ack_due = false;
	replies->nak_due = false;
	replies->nak_psn = psn;
	return FAULT_ACCESS;
}

/* Send the next packet of the oldest owed READ or atomic. Return false if its memory may not be
 * read, or is not present. */
static bool replies_send_oldest(struct replies *replies, struct packet_sink *sink, uint8_t *addr,
				struct packet_out *out)
{
	struct reply *reply = replies_pending(replies, replies->head);

	if (reply->kind == REPLY_ATOMIC)
		replies_build_atomic(replies, reply, out);
	else if (reply->kind == REPLY_EMPTY_READ)
		replies_build_empty_read(replies, reply, out);
	else
		replies_build_read(replies, reply, addr, out);
	if (sink_send(sink, out) != 0)
		return FAULT_REASON(false, "the memory of the region 0x%x is not mapped any more",
				    reply->rkey);
	counters_add(replies->counters, COUNTER_tx_payload_bytes_read, out->copy_len);
	if (unlikely(reply->repeated))
		replies_skip(replies, psn_add(reply->first, (int32_t)reply->sent));
	replies_sent(replies);
	return true;
}

/* Send the next owed packet, or refuse it. */
static enum fault replies_send_one(struct replies *replies, struct packet_sink *sink,
				   enum mr_status status, uint8_t *addr, struct packet_out *out)
{
	uint8_t bitmap[SACK_BYTES_MAX]; /* until the packet is sealed */
	enum fault fault = FAULT_NONE;

	if (replies->head == replies->tail) {
		replies_build_ack(replies, out, bitmap);
	} else if (unlikely(replies_owe_sack(replies))) {
		replies_build_sack(replies, out, bitmap);
	} else {
		if (status == MR_OK && replies_send_oldest(replies, sink, addr, out))
			return FAULT_NONE;
		fault = replies_build_refusal(replies, out);
	}
	/* A packet without payload cannot fail here. */
	sink_send(sink, out);
	return fault;
}

static void replies_notify(struct replies *replies, uint8_t syndrome, struct psn psn, uint32_t msn)
{
	replies->notice_due = true;
	replies->notice = (struct notice){.psn = psn, .msn = msn & PSN_MASK, .syndrome = syndrome};
}

/* Return true if a repeated packet is not the one that its requester waits for: it was sent behind
 * that one. A requester may already have the answer of a repeated response. */
static bool replies_is_behind(const struct reply *reply, struct psn psn)
{
	return !reply->repeated && psn_before(psn_add(reply->first, (int32_t)reply->sent), psn);
}

static void replies_refuse(struct replies *replies, struct psn psn, uint8_t min_rnr_timer)
{
	counters_add(replies->counters, COUNTER_rnr_nak_sent, 1);
	replies_notify(replies, page_wait_syndrome(&replies->page_wait, min_rnr_timer), psn,
		       replies_pending(replies, replies->head)->msn);
}

void replies_ask_to_wait(struct replies *replies, struct psn psn, bool is_acked,
			 uint8_t min_rnr_timer)
{
	const struct reply *reply;

	if (!replies->absent || replies->notice_due)
		return;
	reply = replies_pending(replies, replies->head);
	if (replies_is_behind(reply, psn))
		return;
	if (is_acked && psn_before(psn, reply->first))
		replies_notify(replies, AETH_ACK | AETH_CREDIT_NONE, psn_add(reply->first, -1),
			       (reply->msn - !reply->repeated) & PSN_MASK);
	else if (page_wait_asked(&replies->page_wait))
		replies_refuse(replies, psn, min_rnr_timer);
}

/*
 * Take what may be sent before the response that waits for its page. This is the acknowledgement of
 * requests that were executed before it. If all owed answers are owed for the second time, it is
 * everything, because the requester may have got the first ones. Return true if there is something.
 */
static bool replies_take_notice(struct replies *replies)
{
	const struct reply *reply = replies_pending(replies, replies->head);
	const bool is_second = replies->repeats == replies->tail - replies->head;

	if (replies->notice_due)
		return true;
	if (replies->ack_due && (is_second || psn_before(replies->ack_psn, reply->first))) {
		replies->ack_due = false;
		replies_notify(replies, AETH_ACK | AETH_CREDIT_NONE, replies->ack_psn,
			       replies->ack_msn);
	} else if (replies->nak_due && is_second) {
		replies->nak_due = false;
		replies_notify(replies, replies->nak_syndrome, replies->nak_psn, replies->nak_msn);
	}
	return replies->notice_due;
}

/* Wait for a page of the next response. Answers behind it wait too, because a requester accepts
 * answers in order. Return the number of packets sent. */
static unsigned int replies_await_page(struct replies *replies, struct packet_sink *sink,
				       unsigned int budget, bool *more)
{
	const struct notice *notice = &replies->notice;
	unsigned int sent = 0;

	if (!replies->absent && replies_pending(replies, replies->head)->srqn == 0)
		counters_add(replies->counters, COUNTER_page_waits, 1);
	replies->absent = true;
	page_wait_begin(&replies->page_wait);
	while (replies_take_notice(replies)) {
		struct packet_out *out = sent < budget ? replies_get(replies, sink, 0) : NULL;

		*more = out == NULL;
		if (out == NULL)
			break;
		replies_build_acknowledge(replies, out, notice->syndrome, notice->psn, notice->msn);
		sink_send(sink, out);
		replies->notice_due = false;
		sent++;
	}
	return sent;
}

/* Continue, because the page has come. */
static void replies_go_on(struct replies *replies)
{
	replies->absent = false;
	replies->notice_due = false;
	page_wait_end(&replies->page_wait);
}

unsigned int replies_send(struct replies *replies, struct packet_sink *sink, unsigned int budget,
			  bool *more, enum fault *fault)
{
	unsigned int sent = 0;

	*more = false;
	*fault = FAULT_NONE;
	while (replies_due(replies)) {
		uint8_t *addr;
		const enum mr_status status = replies_reach(replies, &addr);
		struct packet_out *out;

		if (unlikely(status == MR_ABSENT)) {
			sent += replies_await_page(replies, sink, budget - sent, more);
			break;
		}
		if (unlikely(replies->absent))
			replies_go_on(replies);
		out = sent < budget ? replies_get(replies, sink, replies_next_bytes(replies))
				    : NULL;
		if (out == NULL) {
			*more = true;
			break;
		}
		*fault = replies_send_one(replies, sink, status, addr, out);
		sent++;
		if (*fault != FAULT_NONE)
			break;
	}
	if (unlikely(replies->introduces) && sent > 0 && !*more)
		replies_send_introduction(replies, sink);
	return sent;
}
