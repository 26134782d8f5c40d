/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses that arrive out of order: the completer keeps them until those before them have come.
 */
#include "completer_ooo.h"

#include <assert.h>

#include "transport/requester.h"
#include "transport/sgl.h"

static_assert(OOO_REACH == LOSS_WINDOW_MAX + REQUESTER_READ_SEGMENT_PKTS,
	      "packets of a usual window are in reach");

/* Return the request of a PSN in flight, or NULL. */
static const struct send_wqe *completer_ooo_find(const struct completer *completer, struct psn psn)
{
	const struct sq *sq = completer->sq;
	const uint32_t index = sq_find(sq, psn);

	return index != sq_prod(sq) && sq_at(sq, index)->started ? sq_at(sq, index) : NULL;
}

/* Place an out-of-order response of the READ in progress, if its memory has relaxed ordering.
 * Return where it is, or NULL. */
static const uint8_t *completer_ooo_place(struct completer *completer, const struct send_wqe *wqe,
					  const struct packet *packet)
{
	const uint64_t position = (uint64_t)psn_diff(packet->psn, wqe->first_psn) * completer->mtu;
	const uint8_t *addr;
	struct sgl sgl;

	sgl_seek(&sgl, wqe->sge, wqe->num_sge, position);
	addr = sgl_scatter_ooo(&sgl, completer->pd, packet->payload, packet->payload_len);
	counters_add(completer->counters, COUNTER_rx_payload_bytes_written, sgl.stored);
	return addr;
}

/* Return true if a response fits its request. One that does not is not kept: it is a bad response
 * when it comes in order. */
static bool completer_ooo_fits(const struct completer *completer, const struct send_wqe *wqe,
			       const struct packet *packet)
{
	if (!(packet->op->flags & OPCODE_IS_READ_RESPONSE))
		return sq_is_atomic((enum ibv_wr_opcode)wqe->opcode) &&
		       packet_operation(packet) == OPCODE_ATOMIC_ACKNOWLEDGE;
	if (wqe->opcode == IBV_WR_RDMA_READ)
		return packet->payload_len == completer_expected(completer, wqe, packet->psn);
	return requester_wants_data(wqe) || requester_wants_empty_read(wqe);
}

/* Return true if a response has the data of the kept one. Its opcode (FIRST to ONLY) and the MSN
 * may have changed since (9.7.5.1.3). */
static bool completer_ooo_same(const struct completer *completer, const struct send_wqe *wqe,
			       uint32_t place, const struct packet *packet)
{
	const struct packet *kept = ooo_at(&completer->ooo, place);
	const void *placed = ooo_placed_at(&completer->ooo, place);

	if ((kept->op->flags ^ packet->op->flags) & OPCODE_IS_READ_RESPONSE)
		return false;
	if (!(packet->op->flags & OPCODE_IS_READ_RESPONSE))
		return kept->atomic_original == packet->atomic_original;
	if (placed != NULL) {
		struct sgl sgl;

		sgl_seek(&sgl, wqe->sge, wqe->num_sge,
			 (uint64_t)psn_diff(packet->psn, wqe->first_psn) * completer->mtu);
		if (!sgl_leads_to(&sgl, completer->pd, packet->payload_len, placed))
			return false;
	}
	return ooo_same_payload(&completer->ooo, place, packet);
}

bool completer_ooo_keep(struct completer *completer, const struct packet *packet)
{
	const struct send_wqe *wqe = completer_ooo_find(completer, packet->psn);
	const uint8_t *placed = NULL;
	uint32_t place;

	if (wqe == NULL || !completer_ooo_fits(completer, wqe, packet))
		return false;
	/* Responses in flight are in reach. */
	if (completer->loss->sack)
		completer->ooo.reach =
			loss_advertised_window(completer->loss) + REQUESTER_READ_SEGMENT_PKTS;
	switch (ooo_look(&completer->ooo, packet, completer->loss->una, &place)) {
	case OOO_TAKEN:
		if (wqe->opcode == IBV_WR_RDMA_READ && wqe == completer_oldest(completer))
			placed = completer_ooo_place(completer, wqe, packet);
		ooo_keep(&completer->ooo, packet, place, placed);
		counters_add(completer->counters,
			     placed != NULL ? COUNTER_out_of_order_placed
					    : COUNTER_out_of_order_kept,
			     1);
		return true;
	case OOO_THERE:
		if (completer_ooo_same(completer, wqe, place, packet))
			return true;
		ooo_remove(&completer->ooo, place);
		counters_add(completer->counters, COUNTER_out_of_order_differed, 1);
		return false;
	case OOO_REFUSED:
	default:
		return false;
	}
}
