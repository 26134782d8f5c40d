/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses that arrive out of order, and the questions about responses that completer.c and
 * completer_ooo.c both have. */
#ifndef TRANSPORT_COMPLETER_OOO_H
#define TRANSPORT_COMPLETER_OOO_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "base/psn.h"
#include "queue/sq.h"
#include "transport/completer.h"
#include "wire/headers.h"
#include "wire/packet.h"

/**
 * Keep a response for its turn. If it differs from one with the same PSN, neither is trusted: both
 * are dropped, and must be requested again.
 *
 * @return
 *   True if a response with this PSN is kept now.
 */
bool completer_ooo_keep(struct completer *completer, const struct packet *packet);

/** Do what completer_receive does after each answer while something is missing. */
const struct packet *completer_settle(struct completer *completer, bool acknowledged,
				      uint64_t now_ns, enum fault *fault);

/** Complete what was executed before `psn`. Return true if everything before it is complete. */
bool completer_acknowledge(struct completer *completer, struct psn psn, uint64_t now_ns,
			   enum fault *fault);

/** Take the kept responses whose turn it is, the first of which is `packet`. */
enum fault completer_take_kept(struct completer *completer, const struct packet *packet,
			       uint64_t now_ns);

/** The peer is SACK-capable: report which responses are missing. */
void told_responses(struct completer *completer, uint64_t now_ns);

/** The peer is SACK-capable, and does not answer: choose the packets to send again. */
void told_probe(struct completer *completer);

/* Note the capability bits of an answer that is to a packet in flight. */
static inline void completer_note_capability(struct completer *completer,
					     const struct packet *packet)
{
	if (likely(packet->ack_byte == completer->ack_byte))
		return;
	if (loss_on_capability(completer->loss, packet->capability))
		completer->ack_byte = packet->ack_byte;
}

static inline struct send_wqe *completer_oldest(const struct completer *completer)
{
	const struct sq *sq = completer->sq;

	return sq->cons == sq_prod(sq) ? NULL : sq_at(sq, sq->cons);
}

/* Return the bytes of the response with this PSN. */
static inline uint32_t completer_expected(const struct completer *completer,
					  const struct send_wqe *wqe, struct psn psn)
{
	const uint64_t position = (uint64_t)psn_diff(psn, wqe->first_psn) * completer->mtu;

	return psn_eq(psn, wqe->last_psn) ? (uint32_t)(wqe->length - position) : completer->mtu;
}

/* Return true if this response also acknowledges the request that has the same PSN. */
static inline bool completer_is_ack(const struct packet *packet)
{
	return packet_operation(packet) == OPCODE_ACKNOWLEDGE &&
	       (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

/* Return true if the AETH of a response fits its opcode: the AETH of a response with data must be
 * an ACK. */
static inline bool completer_aeth_fits(const struct packet *packet)
{
	return packet_operation(packet) == OPCODE_ACKNOWLEDGE ||
	       !(packet->op->flags & OPCODE_HAS_AETH) ||
	       (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

#endif
