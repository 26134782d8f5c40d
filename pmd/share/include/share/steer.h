/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the receiver of a frame from its headers. The receiver checks everything else. */
#ifndef SHARE_STEER_H
#define SHARE_STEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gid.h"

enum steer {
	STEER_OTHER,	 /* not RoCE: for the owner */
	STEER_QP,	 /* to a queue pair */
	STEER_MULTICAST, /* to all members of a group */
};

/* Lengths of a frame with a MAD: from untagged IPv4 to tagged IPv6. */
#define STEER_MAD_FRAME_MIN 322
#define STEER_MAD_FRAME_MAX 346

struct steering {
	uint32_t qpn;	       /* STEER_QP */
	uint8_t dgid[GID_LEN]; /* STEER_MULTICAST */
	uint8_t sgid[GID_LEN]; /* both */
};

/** Classify a frame. MT-safe. */
enum steer steer_frame(const uint8_t *frame, size_t len, struct steering *steering);

/** Return true if a frame is for a QP 1. MT-safe. */
bool steer_is_mad(const uint8_t *frame, size_t len);

#endif
