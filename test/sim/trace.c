/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints one line for each frame (--verbose). */
#include <stdio.h>

#include "sim.h"
#include "wire/headers.h"
#include "wire/packet.h"

static const char *const fate_names[] = {
	[LINK_SENT] = "",	 [LINK_LOST] = " LOST",	      [LINK_DUPLICATED] = " AGAIN",
	[LINK_GHOST] = " GHOST", [LINK_DAMAGED] = " DAMAGED", [LINK_HELD_BACK] = " HELD BACK",
};

static void trace_syndrome(const struct packet *packet)
{
	const unsigned int value = packet->syndrome & AETH_VALUE_MASK;

	switch (packet->syndrome & AETH_KIND_MASK) {
	case AETH_ACK:
		printf(" msn %u", packet->msn);
		break;
	case AETH_RNR_NAK:
		printf(" RNR NAK timer %u msn %u", value, packet->msn);
		break;
	default:
		printf(" NAK %u msn %u", value, packet->msn);
		break;
	}
}

void trace_frame(const struct link *link, enum link_fate fate, const uint8_t *bytes, uint32_t len)
{
	struct packet packet;

	printf("%12llu %d > %d:", (unsigned long long)link->clock->now_ns, link->from, link->to);
	if (packet_parse(bytes, len, false, &packet) != PACKET_OK) {
		printf(" %u bytes that do not parse%s\n", len, fate_names[fate]);
		return;
	}
	printf(" qp %06x psn %06x %s len %u%s", packet.dest_qpn, packet.psn.v, packet.op->name,
	       packet.payload_len, packet.ack_req ? " A" : "");
	if (packet.op->flags & OPCODE_HAS_RETH)
		printf(" rkey %08x dma %u", packet.rkey, packet.dma_length);
	if (packet.op->flags & OPCODE_HAS_AETH)
		trace_syndrome(&packet);
	if (packet.op->flags & OPCODE_HAS_SACKETH) {
		printf(" serial %u kept", packet.sack_serial);
		for (uint32_t i = 0; i < packet.payload_len; i++)
			printf(" %02x", packet.payload[i]);
	}
	printf("%s\n", fate_names[fate]);
}
