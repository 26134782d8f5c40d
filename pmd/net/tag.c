/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes 802.1Q tags from frames, and inserts them. */
#include "net/tag.h"

#include <assert.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "netdev/addresses.h"

#define VID_MASK 0xfff

static_assert(TAG_LEN == sizeof(struct rte_vlan_hdr), "a tag's bytes");

uint8_t *tag_remove(uint8_t *frame, size_t *len, int32_t *vlan)
{
	struct rte_ether_hdr eth;
	rte_be16_t tci;

	*vlan = VLAN_NONE;
	if (*len < sizeof(eth) + TAG_LEN)
		return frame;
	memcpy(&eth, frame, sizeof(eth));
	if (eth.ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))
		return frame;
	memcpy(&tci, frame + sizeof(eth), sizeof(tci));
	/* A tag of VLAN 0 carries only a priority (IEEE 802.1Q). */
	if (rte_be_to_cpu_16(tci) & VID_MASK)
		*vlan = rte_be_to_cpu_16(tci) & VID_MASK;
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
