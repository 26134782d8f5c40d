/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells which of the frames that an application receives are for uroce: RoCE packets, ARP,
 * neighbour discovery and group membership. */
#ifndef SHARE_CLAIM_H
#define SHARE_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include "netdev/netdev.h"

enum claim {
	CLAIM_NOTHING, /* for the application only */
	CLAIM_ALL,     /* for us only */
	CLAIM_COPY,    /* for both */
};

/** Classify a frame from an application's port. `own` and `mac` are our addresses on it.
 * MT-safe. */
enum claim claim_frame(const struct addresses *own, const uint8_t mac[6], const uint8_t *frame,
		       size_t len);

#endif
