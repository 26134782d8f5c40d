/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes 802.1Q tags from frames, and inserts them. */
#include "net/tag.h"

#include <assert.h>
#include <string.h>

#include "netdev/netdev.h"
#include "wire/frame.h"
#include "wire/vlan.h"

static_assert(TAG_LEN == sizeof(struct rte_vlan_hdr), "a tag's bytes");

uint8_t *tag_remove(uint8_t *frame, size_t *len, int32_t *vlan)
{
	struct ether_frame ether;

	*vlan = VLAN_NONE;
	if (!ether_frame_find(frame, *len, &ether) || ether.vlan_tci < 0)
		return frame;
	*vlan = vlan_of_tci(ether.vlan_tci);
	memmove(frame + TAG_LEN, frame, 2 * RTE_ETHER_ADDR_LEN);
	*len -= TAG_LEN;
	return frame + TAG_LEN;
}

size_t tag_insert(uint8_t *frame, size_t len, int32_t vlan)
{
	const size_t at = 2 * RTE_ETHER_ADDR_LEN;
	const rte_be16_t tag[] = {rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN),
				  rte_cpu_to_be_16((uint16_t)vlan)};

	if (vlan == VLAN_NONE || len < at)
		return len;
	memmove(frame + at + TAG_LEN, frame + at, len - at);
	memcpy(frame + at, tag, sizeof(tag));
	return len + TAG_LEN;
}
