/* SPDX-License-Identifier: BSD-3-Clause */
/* The ICRC covers the identification, and is linear: the difference between the ICRC of the frame
 * and the one at its end says which bits of the identification differ. */
#include "frame_id.h"

#include <netinet/in.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/headers.h"
#include "wire/icrc.h"

#define HEADERS_LEN (sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr) + sizeof(struct bth))

/* Return the bytes of the IPv4 packet in a frame; 0 if it is none that can be RoCE. */
static size_t packet_len(const uint8_t *frame, size_t len)
{
	const struct rte_ether_hdr *ether = (const struct rte_ether_hdr *)(const void *)frame;
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(const void *)(ether + 1);
	size_t total;

	if (len < sizeof(*ether) + HEADERS_LEN + WIRE_ICRC_LEN ||
	    ether->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
	    ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_UDP)
		return 0;
	total = rte_be_to_cpu_16(ip->total_length);
	return total < HEADERS_LEN + WIRE_ICRC_LEN || total > len - sizeof(*ether) ? 0 : total;
}

bool frame_id_find(uint8_t *frame, size_t len)
{
	const size_t total = packet_len(frame, len), covered = total - WIRE_ICRC_LEN;
	uint8_t *const l3 = frame + sizeof(struct rte_ether_hdr);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(void *)l3;
	uint32_t difference;

	if (total == 0)
		return false;
	difference = icrc_headers(l3, sizeof(*ip), HEADERS_LEN);
	difference = icrc_update(difference, l3 + HEADERS_LEN, covered - HEADERS_LEN) ^
		     icrc_load(l3 + covered);
	if (difference == 0)
		return true;
	difference = icrc_move(difference,
			       icrc_distance((int32_t)offsetof(struct rte_ipv4_hdr, packet_id) -
					     (int32_t)covered));
	if (difference > UINT16_MAX)
		return false;
	ip->packet_id ^= rte_cpu_to_le_16((uint16_t)difference);
	return true;
}
