/* SPDX-License-Identifier: BSD-3-Clause */
/* What a completer does about a loss, and what completer.c and repair.c need of each other. */
#ifndef TRANSPORT_REPAIR_H
#define TRANSPORT_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "queue/sq.h"
#include "transport/completer.h"
#include "wire/headers.h"
#include "wire/packet.h"

/** The peer says that what una stands for is missing. */
void repair_sequence_nak(struct completer *completer, uint64_t now_ns);

/** The peer is not ready for what una stands for. `before` is the recovery's state before it was
 * told so. */
void repair_rnr_nak(struct completer *completer, enum recovery_state before);

/** An answer came from behind missing responses. */
void repair_early(struct completer *completer, const struct packet *packet, uint64_t now_ns);

/**
 * Something is missing: see what the newest answer has changed about that.
 *
 * @return
 *   A response that is kept, and whose turn it is now, or NULL.
 */
const struct packet *repair_settle(struct completer *completer, bool acknowledged, uint64_t now_ns,
				   enum fault *fault);

/** The repair was lost; or, where there is none, the oldest packet may be. */
void repair_again(struct completer *completer, uint64_t now_ns);

/**
 * The responder has executed every request before `psn`: complete SENDs and WRITEs that end there.
 *
 * @return
 *   true when all before `psn` is accounted for; false when a READ or atomic before it waits for
 * its data.
 */
bool completer_acknowledge(struct completer *completer, struct psn psn, uint64_t now_ns,
			   enum fault *fault);

static inline struct send_wqe *completer_oldest(const struct completer *completer)
{
	const struct sq *sq = completer->sq;

	return sq->cons == sq_prod(sq) ? NULL : sq_at(sq, sq->cons);
}

/* Bytes of the response with this PSN. */
static inline uint32_t completer_expected(const struct completer *completer,
					  const struct send_wqe *wqe, struct psn psn)
{
	const uint64_t position = (uint64_t)psn_diff(psn, wqe->first_psn) * completer->mtu;

	return psn_eq(psn, wqe->last_psn) ? (uint32_t)(wqe->length - position) : completer->mtu;
}

/* Whether a response says that the request with its own PSN was executed, beside those before. */
static inline bool completer_is_ack(const struct packet *packet)
{
	return (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE &&
	       (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

/* The AETH of a response with data says that the request was executed, or the two contradict. */
static inline bool completer_means_what_it_is(const struct packet *packet)
{
	return (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE ||
	       !(packet->op->flags & OPCODE_HAS_AETH) ||
	       (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

#endif
