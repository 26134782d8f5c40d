/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer's requests of the memory placement extensions: ATOMIC WRITE and FLUSH (IBTA annex A19). */
#ifndef TRANSPORT_PLACEMENT_H
#define TRANSPORT_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/status.h"

struct packet;
struct pd;

/** Return true if a packet is such a request. */
bool placement_is(const struct packet *packet);

/** Return the rights that it needs, of queue pair and region: enum ibv_access_flags. */
unsigned int placement_access(const struct packet *packet);

/**
 * Execute it, after all requests before it.
 *
 * @param qpn
 *   Our queue pair that the peer is connected to.
 * @return
 *   FAULT_NONE; FAULT_INVALID_REQUEST or FAULT_ACCESS: nothing has changed.
 * @param absent
 *   Set to true with FAULT_ACCESS if a page is not in memory, and nothing else is wrong.
 */
enum fault placement_execute(const struct pd *pd, uint32_t qpn, const struct packet *packet,
			     bool *absent);

#endif
