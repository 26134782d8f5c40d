/* SPDX-License-Identifier: BSD-3-Clause */
/* The VLAN that the tag of a frame names (IEEE 802.1Q). */
#ifndef WIRE_VLAN_H
#define WIRE_VLAN_H

#include <stdint.h>

/** Return the VLAN of a frame with this tag; -1 stands for no tag and for no VLAN. A tag of VLAN 0
 * only carries a priority: the frame counts as untagged. MT-safe. */
static inline int32_t vlan_of_tci(int32_t tci)
{
	const int32_t vid = tci & 0xfff;

	return tci < 0 || vid == 0 ? -1 : vid;
}

#endif
