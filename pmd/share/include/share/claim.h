/* SPDX-License-Identifier: BSD-3-Clause */
/* What of an application's frames is RoCE's: its packets, and what is needed to find neighbours. */
#ifndef SHARE_CLAIM_H
#define SHARE_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include "netdev/addresses.h"

enum claim {
	CLAIM_NOTHING, /* the application's alone */
	CLAIM_ALL,     /* ours alone */
	CLAIM_COPY,    /* both want to see it */
};

/** Look at a frame from a port that has these addresses besides the application's. MT-safe. */
enum claim claim_frame(const struct addresses *own, const uint8_t mac[6], const uint8_t *frame,
		       size_t len);

#endif
