/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulates a behaviour of Linux's Soft-RoCE that a requester must tolerate: after an RNR NAK it
 * sends a sequence NAK for the next packet.
 */
#include <stdlib.h>
#include <string.h>

#include "qp/qp.h"
#include "sim.h"
#include "wire/headers.h"
#include "wire/packet.h"

static bool is_rnr_nak(const struct packet *packet)
{
	return (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE &&
	       (packet->syndrome & AETH_KIND_MASK) == AETH_RNR_NAK;
}

void soft_sent(struct end *end, const struct packet *packet)
{
	const struct bth_fields bth = {.opcode = packet->opcode,
				       .migrated = true,
				       .pkey = WIRE_PKEY_DEFAULT,
				       .dest_qpn = end->peer->qpn,
				       .psn = packet->psn};
	uint8_t frame[PACKET_HDR_MAX + WIRE_ICRC_LEN];
	struct packet_out out = {.frame = frame};
	struct host *host = end->host;
	struct aeth *aeth;
	struct path path;

	if (!host->naks_behind_rnr || !is_rnr_nak(packet) || rng_chance(&host->rng, 300000))
		return;
	connect_path(end, &path);
	packet_begin(&out, &path, &bth);
	aeth = packet_extend(&out, sizeof(*aeth));
	aeth->syndrome = AETH_NAK | NAK_PSN_SEQUENCE;
	wire_put24(aeth->msn, packet->msn);
	engine_send(end, frame, (uint32_t)packet_seal(&out));
}
