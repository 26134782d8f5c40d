/* SPDX-License-Identifier: BSD-3-Clause */
/* 802.1Q tags of frames that are not RoCE: removed before the frames are parsed, and inserted
 * before they are sent. */
#ifndef NET_TAG_H
#define NET_TAG_H

#include <stddef.h>
#include <stdint.h>

#define TAG_LEN 4

/**
 * Remove the tag of a frame, in place. MT-safe.
 *
 * @param vlan
 *   Set to its VLAN, or to VLAN_NONE if there is no tag or only a priority tag.
 * @return
 *   The frame's new start; `len` is updated.
 */
uint8_t *tag_remove(uint8_t *frame, size_t *len, int32_t *vlan);

/** Insert a tag, unless `vlan` is VLAN_NONE. The frame has room for TAG_LEN more bytes. Returns the
 * new length. MT-safe. */
size_t tag_insert(uint8_t *frame, size_t len, int32_t vlan);

#endif
