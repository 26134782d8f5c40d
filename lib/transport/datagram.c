/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams: each message is one packet, and there is neither a peer nor a record of
 * what was sent (IBTA 9.8.3). */
#include "transport/datagram.h"

#include <rte_branch_prediction.h>
#include <rte_ip.h>

#include "base/reason.h"
#include "transport/local.h"
#include "transport/sgl.h"
#include "wire/headers.h"
#include "wire/packet.h"

static uint32_t datagram_qkey(const struct datagram *datagram, const struct send_wqe *wqe)
{
	return wqe->remote_qkey & DATAGRAM_QKEY_PRIVILEGED ? datagram->qkey : wqe->remote_qkey;
}

static void datagram_build(const struct datagram *datagram, const struct send_wqe *wqe,
			   struct packet_out *out)
{
	const bool imm = wqe->opcode == IBV_WR_SEND_WITH_IMM;
	const struct bth_fields bth = {
		.opcode = OPCODE_UD | (imm ? OPCODE_SEND_ONLY_IMM : OPCODE_SEND_ONLY),
		.solicited = wqe->flags & IBV_SEND_SOLICITED,
		.migrated = true,
		.pkey = datagram->pkey,
		.dest_qpn = wqe->remote_qpn,
		.psn = datagram->psn,
	};
	struct deth *deth;

	packet_begin(out, sq_path(datagram->sq, wqe), &bth);
	deth = packet_extend(out, sizeof(*deth));
	deth->qkey = rte_cpu_to_be_32(datagram_qkey(datagram, wqe));
	deth->reserved = 0;
	wire_put24(deth->src_qpn, datagram->qpn);
	if (imm)
		packet_put_immdt(out, wqe->imm_be);
}

/* Return an empty packet for a datagram. */
static struct packet_out *datagram_get(const struct datagram *datagram, struct packet_sink *sink,
				       const struct send_wqe *wqe)
{
	const struct path *path = sq_path(datagram->sq, wqe);

	return sink_begin(
		sink, path, wqe->remote_qpn,
		path->len +
			(uint32_t)(sizeof(struct bth) + sizeof(struct deth) + sizeof(wqe->imm_be)) +
			RTE_ALIGN_CEIL(wqe->length, 4) + WIRE_ICRC_LEN);
}

/* Return true for a datagram. READs, WRITEs and atomics can also be posted (sq_post), and fail. */
static bool datagram_is(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM;
}

static enum fault datagram_gather(const struct datagram *datagram, const struct send_wqe *wqe,
				  struct packet_frag *frags, uint32_t *count, bool *absent)
{
	enum mr_status status;
	struct sgl sgl;

	*absent = false;
	*count = 0;
	if (unlikely(!datagram_is(wqe)))
		return wqe->opcode == SQ_WR_FAILS ? local_failure(wqe)
						  : FAULT_REASON(FAULT_SEND_OPERATION,
								 "a UD queue pair can only SEND");
	if (wqe->length > datagram->mtu)
		return FAULT_REASON(FAULT_SEND_LENGTH,
				    "a datagram has at most %u bytes, the port's MTU",
				    datagram->mtu);
	if (wqe->length == 0)
		return FAULT_NONE;
	if (wqe->flags & IBV_SEND_INLINE) {
		frags[0] = (struct packet_frag){
			.addr = wqe->data, .len = wqe->length, .kind = FRAG_OWN};
		*count = 1;
		return FAULT_NONE;
	}
	sgl_seek(&sgl, wqe->sge, wqe->num_sge, 0);
	status = sgl_gather(&sgl, datagram->pd, wqe->length, frags, count);
	*absent = status == MR_ABSENT;
	return status == MR_OK || *absent ? FAULT_NONE : FAULT_SEND_PROTECTION;
}

/* Build and send a request's packet. */
static enum fault datagram_put(struct datagram *datagram, struct packet_sink *sink,
			       struct packet_out *out, const struct send_wqe *wqe,
			       const struct packet_frag *frags, uint32_t count)
{
	datagram_build(datagram, wqe, out);
	for (uint32_t i = 0; i < count; i++)
		packet_payload(out, frags[i].kind, frags[i].addr, frags[i].len);
	if (sink_send(sink, out) != 0)
		return FAULT_REASON(FAULT_SEND_PROTECTION, SGL_UNMAPPED);
	counters_add(datagram->counters, COUNTER_tx_payload_bytes_read, out->copy_len);
	pacer_sent(datagram->pacer, packet_length(out));
	datagram->psn = psn_add(datagram->psn, 1);
	return FAULT_NONE;
}

enum fault datagram_send(struct datagram *datagram, struct packet_sink *sink, unsigned int budget,
			 bool *more)
{
	struct packet_frag frags[PACKET_FRAGS_MAX];
	struct sq *sq = datagram->sq;
	uint32_t count;

	const bool was_absent = datagram->absent;

	*more = false;
	datagram->absent = false;
	for (; sq->cons != sq_prod(sq); budget--) {
		const struct send_wqe *wqe = sq_at(sq, sq->cons);
		bool absent;
		enum fault fault = datagram_gather(datagram, wqe, frags, &count, &absent);
		const bool is_lost = wqe->remote_qpn > WIRE_QPN_MASK;
		struct packet_out *out;

		if (fault != FAULT_NONE)
			return fault;
		if (unlikely(absent)) {
			datagram->absent = true;
			counters_add(datagram->counters, COUNTER_page_waits, !was_absent);
			break;
		}
		if (pacer_holds(datagram->pacer))
			break;
		out = budget > 0 && !is_lost ? datagram_get(datagram, sink, wqe) : NULL;
		if (budget == 0 || (out == NULL && !is_lost)) {
			*more = true;
			break;
		}
		/* Drop the datagram, because no packet can name this queue pair. Any datagram may
		 * be lost. */
		if (unlikely(is_lost))
			counters_add(datagram->counters, COUNTER_tx_wrong_qpn, 1);
		else
			fault = datagram_put(datagram, sink, out, wqe, frags, count);
		if (fault == FAULT_NONE)
			fault = completer_done(datagram->completer);
		if (fault != FAULT_NONE)
			return fault;
	}
	return FAULT_NONE;
}

/* Fill the first 40 bytes of the buffer: an IPv6 header, or an IPv4 header behind 20 undefined
 * bytes (A17.4.5.1). */
static void datagram_grh(const struct packet *packet, uint8_t grh[DATAGRAM_GRH_BYTES])
{
	memset(grh, 0, DATAGRAM_GRH_BYTES);
	memcpy(grh + DATAGRAM_GRH_BYTES - packet->l3_len, packet->l3, packet->l3_len);
}

static enum fault datagram_complete(struct datagram *datagram, const struct packet *packet,
				    enum ibv_wc_status status)
{
	struct ibv_wc wc = {
		.qp_num = datagram->qpn,
		.src_qp = packet->src_qpn,
		.wc_flags = IBV_WC_GRH,
		.sl = packet->l3_len == sizeof(struct rte_ipv4_hdr) ? DATAGRAM_SL_IPV4
								    : DATAGRAM_SL_IPV6,
	};

	counters_add(datagram->counters, COUNTER_rx_payload_bytes_written,
		     datagram->receive->sgl.stored);
	return receive_complete(datagram->receive, datagram->recv_cq, &wc, status, packet) == 0
		       ? FAULT_NONE
		       : FAULT_CQ_OVERRUN;
}

/* A message, and the bytes before it in the receive buffer. */
struct message {
	const struct packet *packet;
	const uint8_t *grh;
	const uint8_t *bytes;
	uint32_t length;
};

/* Store a message in the next receive request. */
static enum mr_status datagram_store(struct datagram *datagram, const struct message *message)
{
	const struct pd *pd = srq_buffers_pd(datagram->srq, datagram->pd);
	struct receive *receive = datagram->receive;
	const enum mr_status status = receive_store(receive, pd, message->grh, DATAGRAM_GRH_BYTES);

	if (status != MR_OK)
		return status;
	return receive_store(receive, pd, message->bytes, message->length);
}

/* Receive a message whose turn it is. */
static enum fault datagram_take(struct datagram *datagram, const struct message *message,
				bool *absent)
{
	struct receive *receive = datagram->receive;
	enum fault fault = FAULT_NONE;
	enum ibv_wc_status status;
	enum mr_status stored;

	*absent = false;
	if (!receive_take(receive, datagram->rq, datagram->srq)) {
		counters_add(datagram->counters, COUNTER_rx_no_receive, 1);
		return FAULT_NONE;
	}
	/* 9.8.3.2: drop a message that does not fit; its request stays for the next message. */
	if (message->length + DATAGRAM_GRH_BYTES > receive->length) {
		counters_add(datagram->counters, COUNTER_resp_local_length_error, 1);
		return FAULT_NONE;
	}
	stored = datagram_store(datagram, message);
	*absent = stored == MR_ABSENT;
	if (unlikely(*absent))
		return FAULT_NONE;
	if (stored != MR_OK)
		fault = FAULT_RECEIVE_PROTECTION;
	/* Count the fault here: there is no NAK, with which a connection's responder would count
	 * it. */
	if (fault != FAULT_NONE) {
		counters_add(datagram->counters, fault_info(fault)->counter, 1);
		counters_add(datagram->counters, COUNTER_resp_cqe_error, 1);
	}
	status = fault == FAULT_NONE ? IBV_WC_SUCCESS : fault_info(fault)->status;
	if (datagram_complete(datagram, message->packet, status) != FAULT_NONE)
		return FAULT_CQ_OVERRUN;
	return fault;
}

/* Keep a message behind those that are already kept. If there is no room it is lost, as any
 * datagram may be. */
static void datagram_keep(struct datagram *datagram, const struct message *message)
{
	struct ooo *ooo = &datagram->ooo;
	uint8_t bytes[OOO_BYTES_MAX];
	struct packet packet = *message->packet;
	const struct psn before = datagram->kept;
	uint32_t place;

	packet.psn = psn_add(before, 1);
	packet.payload = bytes;
	packet.payload_len = DATAGRAM_GRH_BYTES + message->length;
	if (ooo_look(ooo, &packet, before, &place) != OOO_TAKEN) {
		counters_add(datagram->counters, COUNTER_page_drops, 1);
		return;
	}
	memcpy(bytes, message->grh, DATAGRAM_GRH_BYTES);
	if (message->length > 0)
		memcpy(bytes + DATAGRAM_GRH_BYTES, message->bytes, message->length);
	if (ooo->count == 0)
		counters_add(datagram->counters, COUNTER_page_waits, 1);
	ooo_keep(ooo, &packet, place, NULL);
	datagram->kept = packet.psn;
}

enum fault datagram_receive(struct datagram *datagram, const struct packet *packet)
{
	uint8_t grh[DATAGRAM_GRH_BYTES];
	const struct message message = {.packet = packet,
					.grh = grh,
					.bytes = packet->payload,
					.length = packet->payload_len};
	enum fault fault = FAULT_NONE;
	bool absent = true;

	/* 9.6.1.4.2: a wrong Q_Key is dropped silently, and counted. */
	if (packet->qkey != datagram->qkey) {
		counters_add(datagram->counters, COUNTER_rx_wrong_qkey, 1);
		return FAULT_NONE;
	}
	if (packet->payload_len > datagram->mtu) {
		counters_add(datagram->counters, COUNTER_rx_no_receive, 1);
		return FAULT_NONE;
	}
	datagram_grh(packet, grh);
	if (likely(datagram->ooo.count == 0))
		fault = datagram_take(datagram, &message, &absent);
	if (unlikely(absent))
		datagram_keep(datagram, &message);
	return fault;
}

enum fault datagram_resume(struct datagram *datagram)
{
	enum fault fault = FAULT_NONE;

	while (fault == FAULT_NONE && datagram->ooo.count > 0) {
		const struct packet *packet = ooo_first(&datagram->ooo);
		const struct message message = {.packet = packet,
						.grh = packet->payload,
						.bytes = packet->payload + DATAGRAM_GRH_BYTES,
						.length = packet->payload_len - DATAGRAM_GRH_BYTES};
		bool absent;

		fault = datagram_take(datagram, &message, &absent);
		if (absent)
			break;
		ooo_drop(&datagram->ooo);
	}
	return fault;
}

void datagram_reset(struct datagram *datagram)
{
	datagram->absent = false;
	ooo_clear(&datagram->ooo);
}

void datagram_flush(struct datagram *datagram)
{
	struct receive *receive = datagram->receive;

	ooo_clear(&datagram->ooo);
	while (receive->taken ||
	       (datagram->srq == NULL && receive_take(receive, datagram->rq, NULL))) {
		struct ibv_wc wc = {.qp_num = datagram->qpn};

		counters_add(datagram->counters, COUNTER_resp_cqe_flush_error, 1);
		receive_complete(receive, datagram->recv_cq, &wc, IBV_WC_WR_FLUSH_ERR, NULL);
	}
}
