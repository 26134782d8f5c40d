/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The promises of unreliable connections and datagrams: a message arrives whole or not at all, as
 * its sender sent it. The received bytes identify the message of a completion.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint8_t *gather(struct flow *flow, const struct span *list, uint32_t spans, uint32_t len)
{
	uint8_t *bytes, *at;
	size_t room = len;

	for (uint32_t i = 0; i < spans; i++)
		room += list[i].len;
	at = bytes = malloc(room + 1);
	sim_check(flow->sim, bytes != NULL, "out of memory");
	for (uint32_t i = 0; i < spans; i++) {
		span_load_actual(&list[i], at);
		at += list[i].len;
	}
	return bytes;
}

/* Check the sender's address in front of a datagram; a part of it may be in a null region. */
static void check_address(struct flow *flow, const struct span *list, const uint8_t *bytes)
{
	const union ibv_gid *from = &flow->from->host->gid;
	const union ibv_gid *to = flow->group ? &flow->sim->group : &flow->to->host->gid;

	if (list[0].len < SIM_GRH_BYTES || list[0].region->is_null)
		return;
	if (flow->to->host->ipv6)
		sim_check(flow->sim,
			  memcmp(bytes + 8, from, 16) == 0 && memcmp(bytes + 24, to, 16) == 0,
			  "flow %d: a datagram's IPv6 addresses are wrong", flow->number);
	else
		sim_check(flow->sim,
			  memcmp(bytes + 32, from->raw + 12, 4) == 0 &&
				  memcmp(bytes + 36, to->raw + 12, 4) == 0,
			  "flow %d: a datagram's IPv4 addresses are wrong", flow->number);
}

static bool matches(const struct work *work, const struct ibv_wc *wc, const uint8_t *bytes,
		    uint32_t len)
{
	const bool written = work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (!work_receives(work) || work->length != len ||
	    wc->opcode != (written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return false;
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != (work->opcode != IBV_WR_SEND) ||
	    ((wc->wc_flags & IBV_WC_WITH_IMM) && wc->imm_data != work->imm))
		return false;
	return written || memcmp(work->bytes, bytes, len) == 0;
}

/* If nothing can be lost, no message is missing in between. */
static bool skips_one(const struct flow *flow, uint32_t index)
{
	for (uint32_t w = (uint32_t)(flow->newest + 1); w < index; w++) {
		if (work_receives(&flow->works[w]))
			return true;
	}
	return false;
}

static int32_t find(const struct flow *flow, const struct ibv_wc *wc, const uint8_t *bytes,
		    uint32_t len, bool ordered)
{
	const uint32_t first = ordered ? (uint32_t)(flow->newest + 1) : 0;

	for (uint32_t w = first; w < flow->posted; w++) {
		if (flow_executes(flow, (int32_t)w) && matches(&flow->works[w], wc, bytes, len))
			return flow->exact && skips_one(flow, w) ? -1 : (int32_t)w;
	}
	return -1;
}

/* Return the flow whose message came to the receiver: that of its peer, or of another sender to the
 * group. */
static struct flow *sender(struct flow *flow, const struct ibv_wc *wc)
{
	struct sim *sim = flow->sim;

	if (flow->from->type != IBV_QPT_UD)
		return flow;
	sim_check(sim, (wc->wc_flags & IBV_WC_GRH) && wc->byte_len >= SIM_GRH_BYTES,
		  "flow %d: a datagram of %u bytes", flow->number, wc->byte_len);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct flow *other = &sim->flow[i];

		if (other->from->type == IBV_QPT_UD && other->from->qpn == wc->src_qp &&
		    (other == flow || (other->group && flow->to->in_group)))
			return other;
	}
	sim_fail(sim, "flow %d: a datagram from qp %06x", flow->number, wc->src_qp);
}

static void check_written(struct flow *flow, const struct work *work)
{
	if (work->root >= 0)
		sim_check(flow->sim,
			  work->length == 0 || memcmp(span_actual(&work->remote), work->bytes,
						      work->length) == 0,
			  "flow %d: work %d: told of a WRITE that is not there", flow->number,
			  (int)(work - flow->works));
}

bool deliver(struct flow *flow, const struct span *list, uint32_t spans, const struct ibv_wc *wc)
{
	struct flow *from = sender(flow, wc);
	const uint32_t head = from->from->type == IBV_QPT_UD ? SIM_GRH_BYTES : 0;
	uint8_t *bytes = gather(flow, list, spans, wc->byte_len);
	const int32_t index =
		find(from, wc, bytes + head, wc->byte_len - head, from == flow && flow->ordered);

	sim_check(flow->sim, index >= 0,
		  "flow %d: a message of %u bytes that flow %d did not send so, or not now",
		  flow->number, wc->byte_len, from->number);
	if (head > 0)
		check_address(from, list, bytes);
	check_written(from, &from->works[index]);
	/* A longer message that was dropped may have left bytes behind this one. */
	for (uint32_t i = 0; i < spans; i++)
		span_forgive(&list[i]);
	if (from == flow)
		flow->newest = index;
	else
		flow->sim->stats_copied++;
	flow->sim->stats_delivered++;
	free(bytes);
	return from->works[index].flags & IBV_SEND_SOLICITED;
}

/* Each packet of a WRITE has arrived or not. */
static void check_write(struct flow *flow, const struct work *work)
{
	const uint32_t mtu = 128u << flow->from->mtu;
	const uint32_t index = (uint32_t)(work - flow->works);
	uint8_t *bytes = malloc((size_t)work->length + 1);

	sim_check(flow->sim, bytes != NULL, "out of memory");
	span_load_actual(&work->remote, bytes);
	for (uint32_t at = 0; at < work->length; at += mtu) {
		const uint32_t len = work->length - at < mtu ? work->length - at : mtu;
		const bool written = memcmp(bytes + at, work->bytes + at, len) == 0;

		sim_check(flow->sim,
			  written || (!flow->exact && memcmp(bytes + at, work->old + at, len) == 0),
			  "flow %d: unreliable WRITE %u: neither written nor as before at byte %u",
			  flow->number, index, at);
	}
	span_forgive(&work->remote);
	free(bytes);
}

void deliver_check(struct flow *flow)
{
	if (flow_reliable(flow))
		return;
	for (uint32_t w = 0; w < flow->posted; w++) {
		const struct work *work = &flow->works[w];

		/* A request that fails in the middle may have sent any of its packets. */
		if ((int32_t)w == flow->mishap_at && work->old != NULL)
			span_forgive(&work->remote);
		else if (work->old != NULL)
			check_write(flow, work);
	}
	for (uint32_t i = 0; i < flow->receive_count; i++) {
		const struct receive *receive = &flow->receives[i];

		for (uint32_t k = 0; !receive->delivered && k < receive->spans; k++)
			span_forgive(&flow->spans[receive->first_span + k]);
	}
	sim_check(flow->sim, !flow->exact || !skips_one(flow, flow->posted),
		  "flow %d: a message behind work %d never came, and nothing was lost",
		  flow->number, flow->newest);
}
