/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses and builds the frames of IGMP (RFC 2236, RFC 3376) and MLD (RFC 2710, RFC 3810) for a
 * host.
 */
#ifndef NET_MEMBERSHIP_H
#define NET_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netdev/netdev.h"

#define MEMBERSHIP_FRAME_MAX 96 /* the longest frame that is built */

/* A query of a router or switch. */
struct membership_query {
	bool ipv4;
	bool old;		/* IGMPv2 or older, MLDv1: the answer has the same version */
	uint8_t group[GID_LEN]; /* the queried group, as a GID; all zero: every group */
	uint64_t max_delay_ns;	/* time within which to answer */
};

/* Kinds of reports on a group. */
enum membership_change {
	MEMBERSHIP_IS,	   /* an answer: we are a member */
	MEMBERSHIP_JOINED, /* unsolicited: we have just joined */
	MEMBERSHIP_LEFT,
};

/** Parse a query. Return false if the frame is not one, or is malformed. MT-safe. */
bool membership_parse(const uint8_t *frame, size_t len, struct membership_query *query);

/**
 * Build a report on a group. MT-safe.
 *
 * @param frame
 *   Room of MEMBERSHIP_FRAME_MAX bytes.
 * @param own
 *   Our address of the group's family (IPv6: the link-local one), as a GID.
 * @param old
 *   In the form of IGMPv2 or MLDv1.
 * @return
 *   The frame's length.
 */
size_t membership_build(uint8_t *frame, const uint8_t mac[6], const uint8_t own[GID_LEN],
			const uint8_t group[GID_LEN], enum membership_change change, bool old);

#endif
