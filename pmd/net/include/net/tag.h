/* SPDX-License-Identifier: BSD-3-Clause */
/* 802.1Q tags of frames that are not RoCE: taken out before they are understood, put in before they
 * are sent. */
#ifndef NET_TAG_H
#define NET_TAG_H

#include <stddef.h>
#include <stdint.h>

#define TAG_LEN 4

/**
 * Take the tag out of a frame, in place. MT-safe.
 *
 * @param vlan
 *   Set to its VLAN; VLAN_NONE where there is no tag, or one that only carries a priority.
 * @return
 *   Where the frame begins now; `len` is what it has left.
 */
uint8_t *tag_remove(uint8_t *frame, size_t *len, int32_t *vlan);

/** Put a tag in, unless `vlan` is VLAN_NONE; there is room for TAG_LEN bytes more. MT-safe. The
 * frame's length then. */
size_t tag_insert(uint8_t *frame, size_t len, int32_t vlan);

#endif
