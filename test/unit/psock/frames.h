/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of RoCE as queue pairs send them, for tests. */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_MAX (66 + 12 + 4096 + 4)

struct frame {
	bool ipv6;
	bool tagged;
	bool back; /* the receiver of all other frames sends it */
	uint8_t tclass;
	uint16_t id;
	uint16_t source_port;
	uint32_t qpn; /* of the receiver; 0: 7 */
	uint32_t psn;
	uint32_t len; /* of the payload, a multiple of 4 */
	uint8_t fill;
};

/** Make a middle packet of a SEND with a right ICRC; its bytes. */
uint32_t frame_make(const struct frame *frame, uint8_t at[FRAME_MAX]);

#define FRAME_RUN_MAX 16384

/** Make one long packet of two frames that differ in what run_add compares, as the kernel may join
 * them. It begins with its description for the kernel (PACKET_VNET_HDR). Returns its bytes. */
uint32_t frame_make_run(const struct frame *first, const struct frame *second,
			uint8_t at[FRAME_RUN_MAX]);

/** Return true if the frame is one of ours, complete, with a valid ICRC. */
bool frame_is_right(const uint8_t *at, uint32_t bytes);

#endif
