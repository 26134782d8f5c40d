/* SPDX-License-Identifier: BSD-3-Clause */
/* The IPv4 identification of a packet whose receiver was not told it. */
#ifndef ROCE_FRAME_ID_H
#define ROCE_FRAME_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Set the identification with which the ICRC of a frame is right. MT-safe.
 *
 * @return
 *   True: the ICRC is right now. False: no identification makes it right, or the frame is not an
 *   untagged one of IPv4.
 */
bool frame_id_find(uint8_t *frame, size_t len);

#endif
