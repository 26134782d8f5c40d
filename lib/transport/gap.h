/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come to a responder before their turn. */
#ifndef TRANSPORT_GAP_H
#define TRANSPORT_GAP_H

#include "transport/responder.h"

/** A packet from behind the expected one. */
void gap_keep(struct responder *responder, const struct packet *packet);

/** The packet that a NAK was for is there. */
void gap_closes(struct responder *responder);

/** Packets are kept: the next one whose turn it is, or NULL. */
const struct packet *gap_next(struct responder *responder);

#endif
