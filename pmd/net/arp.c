/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP requests and replies. */
#include "net/arp.h"

#include <assert.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ether.h>

struct arp_frame {
	struct rte_ether_hdr eth;
	struct rte_arp_hdr arp;
} __attribute__((packed, aligned(2)));
static_assert(sizeof(struct arp_frame) == ARP_FRAME_LEN, "an ARP frame is 42 bytes");

bool arp_parse(const uint8_t *frame, size_t len, struct arp *arp)
{
	struct arp_frame in;

	if (len < sizeof(in))
		return false;
	memcpy(&in, frame, sizeof(in));
	if (in.eth.ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP) ||
	    in.arp.arp_hardware != rte_cpu_to_be_16(RTE_ARP_HRD_ETHER) ||
	    in.arp.arp_protocol != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
	    in.arp.arp_hlen != sizeof(arp->sender_mac) || in.arp.arp_plen != sizeof(arp->sender_ip))
		return false;
	if (in.arp.arp_opcode == rte_cpu_to_be_16(RTE_ARP_OP_REQUEST))
		arp->request = true;
	else if (in.arp.arp_opcode == rte_cpu_to_be_16(RTE_ARP_OP_REPLY))
		arp->request = false;
	else
		return false;
	if (!rte_is_valid_assigned_ether_addr(&in.arp.arp_data.arp_sha))
		return false;
	memcpy(arp->sender_mac, &in.arp.arp_data.arp_sha, sizeof(arp->sender_mac));
	memcpy(arp->sender_ip, &in.arp.arp_data.arp_sip, sizeof(arp->sender_ip));
	memcpy(arp->target_ip, &in.arp.arp_data.arp_tip, sizeof(arp->target_ip));
	return true;
}

static size_t arp_build(uint8_t *frame, uint16_t opcode, const uint8_t mac[6], const uint8_t ip[4],
			const uint8_t *target_mac, const uint8_t target_ip[4])
{
	struct arp_frame out = {
		.eth.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP),
		.arp.arp_hardware = rte_cpu_to_be_16(RTE_ARP_HRD_ETHER),
		.arp.arp_protocol = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4),
		.arp.arp_hlen = RTE_ETHER_ADDR_LEN,
		.arp.arp_plen = 4,
		.arp.arp_opcode = rte_cpu_to_be_16(opcode),
	};

	memcpy(&out.eth.src_addr, mac, RTE_ETHER_ADDR_LEN);
	memcpy(&out.arp.arp_data.arp_sha, mac, RTE_ETHER_ADDR_LEN);
	memcpy(&out.arp.arp_data.arp_sip, ip, 4);
	memcpy(&out.arp.arp_data.arp_tip, target_ip, 4);
	if (target_mac) {
		memcpy(&out.eth.dst_addr, target_mac, RTE_ETHER_ADDR_LEN);
		memcpy(&out.arp.arp_data.arp_tha, target_mac, RTE_ETHER_ADDR_LEN);
	} else {
		memset(&out.eth.dst_addr, 0xff, RTE_ETHER_ADDR_LEN);
	}
	memcpy(frame, &out, sizeof(out));
	return sizeof(out);
}

size_t arp_build_request(uint8_t *frame, const uint8_t mac[6], const uint8_t ip[4],
			 const uint8_t target_ip[4])
{
	return arp_build(frame, RTE_ARP_OP_REQUEST, mac, ip, NULL, target_ip);
}

size_t arp_build_reply(uint8_t *frame, const uint8_t mac[6], const struct arp *request)
{
	return arp_build(frame, RTE_ARP_OP_REPLY, mac, request->target_ip, request->sender_mac,
			 request->sender_ip);
}
