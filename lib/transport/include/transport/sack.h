/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The selective acknowledgement that a responder sends to a requester that understands it
 * (doc/loss.md). Its PSN is the expected one: everything before it is executed. Bit i of the bitmap
 * (bit i % 8 of byte i / 8) says whether the packet i + 1 PSNs behind the expected one is kept.
 * Bits behind the end of the bitmap are 0. The header's serial number grows with each one.
 */
#ifndef TRANSPORT_SACK_H
#define TRANSPORT_SACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

struct packet;

/* Longest bitmap: a bit for each packet of the longest window (transport/loss.h). */
#define SACK_BYTES_MAX 512
/* A receiver sends one at least each time that it has kept this many packets. */
#define SACK_INTERVAL_PKTS 16
/* A selective acknowledgement that is older than the newest one is not used. If it seems to be much
 * older, the newest one was not the peer's. */
#define SACK_REORDER_MAX 65536

/** Return the PSNs from the expected one to the last packet that is kept, or 0 if none is. */
uint32_t sack_span(const struct packet *packet);

/**
 * Return true if a packet is kept.
 *
 * @param from
 *   PSNs from the expected one to the packet; below sack_span.
 * @param to
 *   Set to the end of the packets of which the same is true; at most sack_span.
 */
bool sack_run(const struct packet *packet, uint32_t from, uint32_t *to);

/** Return true if a selective acknowledgement is not older than another one. */
static inline bool sack_is_newer(uint32_t serial, uint32_t than)
{
	const int32_t later = (int32_t)(serial - than);

	return later > 0 || later < -SACK_REORDER_MAX;
}

#endif
