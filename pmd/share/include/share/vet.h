/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process may send that is not trusted: its own packets. */
#ifndef SHARE_VET_H
#define SHARE_VET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netdev/addresses.h"

/* Whose packets they are. */
struct vet {
	const uint8_t *mac;
	const struct addresses *addresses;
	uint32_t mtu_bytes; /* the longest IP packet */
	uint32_t qpn_first;
	uint32_t qpn_count;
};

enum vet_verdict {
	VET_REFUSED,
	VET_PASSES,
	VET_MAD, /* from QP 1 to QP 1: it passes if the arbiter lets it (owner/arbiter.h) */
};

/**
 * Look whether a frame is a RoCE packet of at most that length, that comes from that MAC address,
 * one of those IP addresses, in the VLAN where it is one, and, where a packet tells of it, from one
 * of those queue pairs. MT-safe.
 */
enum vet_verdict vet_frame(const struct vet *vet, const uint8_t *frame, size_t len);

/** Give a packet the ICRC, and the UDP checksum, that it was sent without. false: it is no RoCE
 * packet. MT-safe. */
bool vet_seal(uint8_t *frame, size_t len);

#endif
