/* SPDX-License-Identifier: BSD-3-Clause */
/* To whom a frame goes, told from its headers; everything else is checked by who gets it. */
#ifndef SHARE_STEER_H
#define SHARE_STEER_H

#include <stddef.h>
#include <stdint.h>

#include "wire/gid.h"

enum steer {
	STEER_OTHER,	 /* no RoCE: the owner's */
	STEER_QP,	 /* to a queue pair */
	STEER_MULTICAST, /* to whoever is in a group */
};

struct steering {
	uint32_t qpn;	       /* STEER_QP */
	uint8_t dgid[GID_LEN]; /* STEER_MULTICAST */
};

/** Look at a frame. MT-safe. */
enum steer steer_frame(const uint8_t *frame, size_t len, struct steering *steering);

#endif
