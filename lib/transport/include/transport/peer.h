/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer of a connected queue pair: what requester and responder both put into every packet. */
#ifndef TRANSPORT_PEER_H
#define TRANSPORT_PEER_H

#include <stdint.h>

#include "wire/build.h"

struct peer {
	struct path path;
	uint32_t qpn;
	uint32_t mtu; /* path MTU, bytes of payload */
	uint16_t pkey;
};

/* Return the BTH of a packet to this peer, with the constant fields set. */
static inline struct bth_fields peer_bth(const struct peer *peer, uint8_t opcode, struct psn psn)
{
	return (struct bth_fields){.opcode = opcode,
				   .migrated = true,
				   .pkey = peer->pkey,
				   .dest_qpn = peer->qpn,
				   .psn = psn};
}

#endif
