/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks packets of an untrusted process: it may send only packets of its own. */
#ifndef SHARE_VET_H
#define SHARE_VET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netdev/netdev.h"

/* Addresses and queue pairs of the process. */
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
 * Check a frame. It must be a RoCE packet of at most mtu_bytes, from the MAC address and from one
 * of the IP addresses in the VLAN of that address. If the packet contains its source queue pair,
 * that must be one of the process's. MT-safe.
 */
enum vet_verdict vet_frame(const struct vet *vet, const uint8_t *frame, size_t len);

/** Write the ICRC and the UDP checksum of a packet that was sent without them. Return false if it
 * is not a RoCE packet. MT-safe. */
bool vet_seal(uint8_t *frame, size_t len);

#endif
