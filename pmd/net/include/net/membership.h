/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of IGMP (RFC 2236, RFC 3376) and MLD (RFC 2710, RFC 3810) that a host reads and sends.
 */
#ifndef NET_MEMBERSHIP_H
#define NET_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netdev/addresses.h"

#define MEMBERSHIP_FRAME_MAX 96 /* the longest that is built */

/* What routers and switches ask. */
struct membership_query {
	bool ipv4;
	bool old;		/* of IGMPv2 or older, MLDv1: answered in its form */
	uint8_t group[GID_LEN]; /* asked for, as a GID; all zeros: every group */
	uint64_t max_delay_ns;	/* answers shall come within this */
};

/* What is said of a group. */
enum membership_change {
	MEMBERSHIP_IS,	   /* an answer: we are in it */
	MEMBERSHIP_JOINED, /* unasked, since just now */
	MEMBERSHIP_LEFT,
};

/** Understand a query; false where the frame is none, or is malformed. MT-safe. */
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
 *   Bytes of the frame.
 */
size_t membership_build(uint8_t *frame, const uint8_t mac[6], const uint8_t own[GID_LEN],
			const uint8_t group[GID_LEN], enum membership_change change, bool old);

#endif
