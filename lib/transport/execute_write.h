/* SPDX-License-Identifier: BSD-3-Clause */
/* Execution of a packet of a WRITE. It is in a header because the responder has a copy of it for
 * WRITEs of one packet, whose flags the compiler knows. */
#ifndef TRANSPORT_EXECUTE_WRITE_H
#define TRANSPORT_EXECUTE_WRITE_H

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "execute.h"
#include "mem/mr.h"
#include "mem/place.h"
#include "refusal.h"
#include "wire/packet.h"

/** Find the memory of a WRITE whose key mr_recall does not know. `left` bytes of the message are
 * left from this packet on. */
enum fault execute_reach_write(const struct responder *responder, const struct packet *packet,
			       uint32_t rkey, uint64_t iova, uint32_t length, uint32_t left,
			       uint8_t **addr);

/** Execute a packet of a WRITE; `flags` are those of its opcode. */
static __rte_always_inline enum fault execute_write(struct responder *responder,
						    const struct packet *packet, uint32_t flags)
{
	const uint32_t len = packet->payload_len;
	enum fault fault;
	uint8_t *addr;

	if (flags & OPCODE_FIRST) {
		/* Check the whole message before its first byte; and each later packet again,
		 * because the region may have been deregistered. */
		addr = mr_recall(responder->pd, packet->rkey, packet->iova, packet->dma_length,
				 IBV_ACCESS_REMOTE_WRITE);
		if (unlikely(!addr)) {
			fault = execute_reach_write(responder, packet, packet->rkey, packet->iova,
						    packet->dma_length, packet->dma_length, &addr);
			if (fault != FAULT_NONE)
				return fault;
		}
		responder->write_iova = packet->iova;
		responder->write_length = packet->dma_length;
		responder->write_left = packet->dma_length;
		responder->write_rkey = packet->rkey;
	} else {
		addr = mr_recall(responder->pd, responder->write_rkey, responder->write_iova, len,
				 IBV_ACCESS_REMOTE_WRITE);
		if (unlikely(!addr)) {
			fault = execute_reach_write(responder, packet, responder->write_rkey,
						    responder->write_iova, len,
						    responder->write_left, &addr);
			if (fault != FAULT_NONE)
				return fault;
		}
	}
	if (likely(packet->payload != NULL)) {
		if (place_guarded(addr, packet->payload, len, responder->write_left - len) != 0)
			return RESPONDER_REFUSES(REFUSAL_UNMAPPED);
		counters_add(responder->counters, COUNTER_rx_payload_bytes_written, len);
	} else if (addr != ooo_placed(&responder->ooo)) {
		/* The packet came out of order and was placed. By now the key leads to other memory
		 * (ibv_rereg_mr(3)), which does not have the bytes. */
		return RESPONDER_REFUSES(REFUSAL_CHANGED);
	}
	responder->write_iova += len;
	responder->write_left -= len;
	/* Only the last packet of a WRITE with immediate data has a receive request, whose
	 * completion contains the whole length. */
	if (flags & OPCODE_HAS_IMM)
		responder->receive->filled = responder->write_length;
	return FAULT_NONE;
}

#endif
