/* SPDX-License-Identifier: BSD-3-Clause */
/* A completer's reaction to a loss, and the functions that completer.c and retransmit.c need of
 * each other. */
#ifndef TRANSPORT_RETRANSMIT_H
#define TRANSPORT_RETRANSMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "queue/sq.h"
#include "transport/completer.h"
#include "wire/headers.h"
#include "wire/packet.h"

/** The peer reports that the packet at una is missing. */
void retransmit_sequence_nak(struct completer *completer, uint64_t now_ns);

/** The peer is not ready for the packet at una. `before` is the recovery's state before this
 * report. */
void retransmit_rnr_nak(struct completer *completer, enum recovery_state before);

/** A response has come that is behind missing ones. */
void retransmit_ooo_response(struct completer *completer, const struct packet *packet,
			     uint64_t now_ns);

/**
 * Something is missing: find out what the newest answer has changed.
 *
 * @return
 *   A kept response whose turn it is now, or NULL.
 */
const struct packet *retransmit_settle(struct completer *completer, bool acknowledged,
				       uint64_t now_ns, enum fault *fault);

/** The selective retransmission was lost; or, if there is none, the oldest packet may be. */
void retransmit_again(struct completer *completer, uint64_t now_ns);

/**
 * Complete SENDs and WRITEs that end before `psn`: the responder has executed every request before
 * it.
 *
 * @return
 *   True if everything before `psn` is complete; false if a READ or atomic before it waits for its
 *   data.
 */
bool completer_acknowledge(struct completer *completer, struct psn psn, uint64_t now_ns,
			   enum fault *fault);

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
	return (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE &&
	       (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

/* Return true if the AETH of a response fits its opcode: the AETH of a response with data must be
 * an ACK. */
static inline bool completer_aeth_fits(const struct packet *packet)
{
	return (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE ||
	       !(packet->op->flags & OPCODE_HAS_AETH) ||
	       (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

#endif
