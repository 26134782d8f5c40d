/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come to a responder out of order. */
#ifndef TRANSPORT_RESPONDER_OOO_H
#define TRANSPORT_RESPONDER_OOO_H

#include "transport/responder.h"
#include "wire/headers.h"
#include "wire/packet.h"

/* Return true if a READ request is not sent because its responses are missing: it needs no answer
 * if it was executed. */
static inline bool responder_ooo_is_marked(const struct responder *responder,
					   const struct packet *packet)
{
	return packet_operation(packet) == OPCODE_READ_REQUEST && !packet->ack_req &&
	       (packet->capability & BTH_SACK_KIND) == BTH_SACK_REQUEST &&
	       replies_sack(responder->replies);
}

/** Keep a packet that is behind the expected one. */
void responder_ooo_keep(struct responder *responder, const struct packet *packet);

/** Note that the expected packet has come, for which a NAK was made. */
void responder_ooo_closes(struct responder *responder, const struct packet *packet);

/** Return true if a packet is a retransmission of the one that is kept at this place. */
bool responder_ooo_is_same(const struct responder *responder, uint32_t place,
			   const struct packet *packet);

/** Return the next kept packet to execute after a packet was processed, or NULL. */
const struct packet *responder_ooo_next(struct responder *responder);

#endif
