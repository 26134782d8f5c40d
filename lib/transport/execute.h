/* SPDX-License-Identifier: BSD-3-Clause */
/* The execution of requests, each by its opcode. */
#ifndef TRANSPORT_EXECUTE_H
#define TRANSPORT_EXECUTE_H

#include "transport/responder.h"

/*
 * A check of a request returns FAULT_NONE for "go on to the next check", the fault that the queue
 * pair fails with, or this: the packet is dealt with (dropped, or an answer is owed).
 */
#define RESPONDER_DONE FAULT_COUNT
/* A page that the request accesses is not in memory. */
#define RESPONDER_ABSENT (FAULT_COUNT + 1)

/** Execute the expected packet, which has passed all checks before. As a check. */
enum fault execute_request(struct responder *responder, const struct packet *packet);

/* What is owed, or a lack of memory, stands in the way of this request: as if it had been lost. Its
 * NAK goes out behind all that, so that the way is free when it comes again. */
enum fault execute_later(struct responder *responder);

#endif
