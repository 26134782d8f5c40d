/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that cannot be executed yet, because a receive request or a page is missing. */
#ifndef TRANSPORT_RESPONDER_RNR_H
#define TRANSPORT_RESPONDER_RNR_H

#include "transport/responder.h"

/** Owe an RNR NAK for the expected packet. */
void responder_rnr_refuse(struct responder *responder, uint8_t syndrome);

/** UC: drop a peer's bad message; its receive request is used for the next message (9.8.2.2). */
enum fault responder_rnr_drop_message(struct responder *responder, const struct packet *packet);

/**
 * Handle an expected packet that accesses a page that is not in memory. The packet is kept, and
 * executed when the page has come. If its requester sends it again after a while, or if it cannot
 * be kept, the requester gets an RNR NAK (9.7.5.2.8), and the packet is executed when it comes
 * again.
 */
enum fault responder_rnr_page(struct responder *responder, const struct packet *packet);

#endif
