/* SPDX-License-Identifier: BSD-3-Clause */
/* Classifies frames by their headers. */
#include "share/steer.h"

#include <string.h>

#include "wire/frame.h"
#include "wire/mad.h"

enum steer steer_frame(const uint8_t *frame, size_t len, struct steering *steering)
{
	struct udp_frame headers;
	const struct bth *bth = roce_frame_find(frame, len, &headers);
	const struct rte_ipv4_hdr *ipv4;
	const struct rte_ipv6_hdr *ipv6;

	if (!bth)
		return STEER_OTHER;
	if (headers.ipv6) {
		ipv6 = (const void *)(frame + headers.l3_off);
		memcpy(steering->sgid, &ipv6->src_addr, GID_LEN);
		memcpy(steering->dgid, &ipv6->dst_addr, GID_LEN);
	} else {
		ipv4 = (const void *)(frame + headers.l3_off);
		gid_from_ipv4(&ipv4->src_addr, steering->sgid);
		gid_from_ipv4(&ipv4->dst_addr, steering->dgid);
	}
	steering->qpn = wire_get24(bth->dest_qpn);
	return steering->qpn == WIRE_QPN_MULTICAST ? STEER_MULTICAST : STEER_QP;
}

/* Most packets have a length that no MAD has, so their headers need not be read. */
bool steer_is_mad(const uint8_t *frame, size_t len)
{
	struct steering steering;

	return len >= STEER_MAD_FRAME_MIN && len <= STEER_MAD_FRAME_MAX &&
	       steer_frame(frame, len, &steering) == STEER_QP && steering.qpn == GSI_QPN;
}
