/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the receiver of a frame from its headers. The receiver checks everything else. */
#ifndef SHARE_STEER_H
#define SHARE_STEER_H

#include <stddef.h>
#include <stdint.h>

#include "wire/gid.h"

enum steer {
	STEER_OTHER,	 /* not RoCE: for the owner */
	STEER_QP,	 /* to a queue pair */
	STEER_MULTICAST, /* to all members of a group */
};

struct steering {
	uint32_t qpn;	       /* STEER_QP */
	uint8_t dgid[GID_LEN]; /* STEER_MULTICAST */
};

/** Classify a frame. MT-safe. */
enum steer steer_frame(const uint8_t *frame, size_t len, struct steering *steering);

#endif
