/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come to a responder before their turn. */
#ifndef TRANSPORT_GAP_H
#define TRANSPORT_GAP_H

#include "transport/responder.h"

/** A packet from behind the expected one. */
void gap_keep(struct responder *responder, const struct packet *packet);

/** The expected packet is there, and a NAK was made for it. */
void gap_closes(struct responder *responder, const struct packet *packet);

/** Return true if a packet is the one that is kept at this place, sent again. */
bool gap_is_same(const struct responder *responder, uint32_t place, const struct packet *packet);

/** Packets are kept, and one has been taken in: return the next one to execute, or NULL. */
const struct packet *gap_next(struct responder *responder);

#endif
