/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that cannot be executed yet, for lack of a receive request or of a page. */
#ifndef TRANSPORT_AWAIT_H
#define TRANSPORT_AWAIT_H

#include "transport/responder.h"

/** Owe an RNR NAK of the expected packet. */
void await_refuse(struct responder *responder, uint8_t syndrome);

/** UC: a peer's bad message is dropped, its receive request waits for the next one (9.8.2.2). */
enum fault await_drop_message(struct responder *responder, const struct packet *packet);

/**
 * A page that the expected packet accesses is not in memory. The packet is kept, and executed when
 * the page has come. If its requester asks again after a while, or if the packet cannot be kept, it
 * is told to wait (9.7.5.2.8), and the packet is executed when it comes again.
 */
enum fault await_page(struct responder *responder, const struct packet *packet);

#endif
