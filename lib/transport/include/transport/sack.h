/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The selective acknowledgement that a responder sends to a requester that understands it
 * (doc/developer/loss.md). Its PSN is the expected one: everything before it is executed. Bit i of
 * the bitmap (bit i % 8 of byte i / 8) says whether the packet i + 1 PSNs behind the expected one
 * is kept. Bits behind the end of the bitmap are 0. The header's serial number grows with each one.
 * The solicited-event bit of the BTH says that no response to a request before the expected PSN is
 * still to be sent: else the selective acknowledgement does not wait for those.
 */
#ifndef TRANSPORT_SACK_H
#define TRANSPORT_SACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

struct packet;

/* When a queue pair takes part in selective acknowledgements. */
enum sack_use {
	SACK_NEVER,
	SACK_INTRODUCED, /* when its peer has introduced itself; before that it sets no bits */
	SACK_ALWAYS,	 /* its first packet has the capability bits */
};

/*
 * An introduction: an acknowledgement by which a responder says that it sends selective
 * acknowledgements to a requester that sets the capability bits. Its PSN lies this far before the
 * expected one. A requester drops an acknowledgement of what was acknowledged before (9.7.5.1,
 * ghost), so a peer that does not know introductions ignores it.
 */
#define SACK_INTRODUCTION_PSNS (1 << 22)
/* Most introductions to one peer, which may know none. The first one follows the first answer that
 * the peer asks for, and the others the peer's losses, because it may be lost. */
#define SACK_INTRODUCTIONS_MAX 4

/** Return the MSN of an introduction. Hardly any other acknowledgement with such a PSN has it.
 *
 * @param qpn
 *   Of the requester.
 */
static inline uint32_t sack_introduction_msn(struct psn expected, uint32_t qpn)
{
	return ((expected.v ^ UINT32_C(0x75726f)) * UINT32_C(0x9e3779b1) ^
		qpn * UINT32_C(0x85ebca6b)) >>
	       8;
}

/* Longest bitmap: a bit for each packet of the longest window (transport/loss.h). It is not longer
 * than the path MTU; then nothing is told about the newest packets of such a window. */
#define SACK_BYTES_MAX 1024
/* A receiver sends one at least each time that it has kept this many packets. */
#define SACK_INTERVAL_PKTS 16
/* A selective acknowledgement that is older than the newest one is not used. If it seems to be much
 * older, the newest one was not the peer's. */
#define SACK_REORDER_MAX 65536

/*
 * A responder that sends selective acknowledgements has more resources for READs and atomics than
 * its queue pair's attribute says. A request that waits for a lost one, or for its lost response,
 * uses one of them. So a requester needs more to have some round trips of responses in flight: a
 * READ is requested in segments of 64 packets, so 128 resources are the longest window.
 */
#define SACK_RESOURCES_FACTOR 8
#define SACK_RESOURCES_MAX    128

/** Return how many READs and atomics may be in flight towards a SACK-capable responder,
 * if the attribute is `said`. */
static inline uint32_t sack_resources(uint32_t said)
{
	const uint32_t more = SACK_RESOURCES_FACTOR * said;
	const uint32_t most = more < SACK_RESOURCES_MAX ? more : SACK_RESOURCES_MAX;

	return most > said ? most : said;
}

/** Return the PSNs from the expected one to the last packet that is kept, or 0 if none is. Ignore
 * bits of packets that are not among the `most` PSNs from the expected one on. */
uint32_t sack_span(const struct packet *packet, uint32_t most);

/** Return which of 64 packets are kept: bit 0 is for the one that is `from` PSNs behind the
 * expected one. */
uint64_t sack_word(const struct packet *packet, uint32_t from);

/** Return true if a selective acknowledgement is not older than another one. */
static inline bool sack_is_newer(uint32_t serial, uint32_t than)
{
	const int32_t later = (int32_t)(serial - than);

	return later > 0 || later < -SACK_REORDER_MAX;
}

#endif
