/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and seals frames between trusted processes and an untrusted one. */
#include "share/vet.h"

#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/packet.h"

/* Check the queue pairs of a packet. A management queue pair may get only management datagrams. */
static enum vet_verdict vet_queue_pairs(const struct vet *vet, const struct packet *packet)
{
	const bool tells = packet->op->flags & OPCODE_HAS_DETH;

	if (packet->dest_qpn <= GSI_QPN)
		return tells && packet->dest_qpn == GSI_QPN && packet->src_qpn == GSI_QPN
			       ? VET_MAD
			       : VET_REFUSED;
	return !tells || packet->src_qpn - vet->qpn_first < vet->qpn_count ? VET_PASSES
									   : VET_REFUSED;
}

enum vet_verdict vet_frame(const struct vet *vet, const uint8_t *frame, size_t len)
{
	struct packet packet;

	if (packet_parse(frame, len, false, &packet) != PACKET_OK ||
	    memcmp(packet.src_mac, vet->mac, RTE_ETHER_ADDR_LEN) != 0)
		return VET_REFUSED;
	/* A driver may stop at a frame that is too long, and then all frames behind it wait. */
	if (len - (size_t)(packet.l3 - frame) > vet->mtu_bytes)
		return VET_REFUSED;
	if (!addresses_have(vet->addresses, packet.vlan_id, packet.sgid))
		return VET_REFUSED;
	return vet_queue_pairs(vet, &packet);
}

bool vet_seal(uint8_t *frame, size_t len)
{
	struct packet packet;
	uint8_t *payload;
	uint32_t state;

	if (packet_parse(frame, len, true, &packet) != PACKET_OK)
		return false;
	payload = frame + (packet.payload - frame);
	state = icrc_headers(packet.l3, packet.l3_len, packet.headers_len);
	state = icrc_update(state, payload, packet.payload_len + packet.pad);
	icrc_store(state, payload + packet.payload_len + packet.pad);
	if (packet.ipv6) {
		uint8_t *l3 = frame + (packet.l3 - frame);
		struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(void *)(l3 + packet.l3_len);

		udp->dgram_cksum = 0;
		udp->dgram_cksum =
			rte_ipv6_udptcp_cksum((const struct rte_ipv6_hdr *)(void *)l3, udp);
	}
	return true;
}
