/* SPDX-License-Identifier: BSD-3-Clause */
/* Execution of requests by their opcode. */
#ifndef TRANSPORT_EXECUTE_H
#define TRANSPORT_EXECUTE_H

#include "transport/responder.h"

/*
 * A check of a request returns FAULT_NONE to continue with the next check, the fault that the queue
 * pair fails with, or one of these values. RESPONDER_DONE: the packet is processed (it was dropped,
 * or an answer is owed).
 */
#define RESPONDER_DONE FAULT_COUNT
/* A page that the request accesses is not in memory, or another process has to answer. */
#define RESPONDER_ABSENT (FAULT_COUNT + 1)
/* The request names a shared receive queue of another process. */
#define RESPONDER_PASSES (FAULT_COUNT + 2)
/* The other process has no receive request for it: it gets an RNR NAK. */
#define RESPONDER_REFUSED (FAULT_COUNT + 3)
/* The request is refused: enum refusal says why, and decides the fault. */
#define RESPONDER_REFUSES(refusal) ((enum fault)(FAULT_COUNT + 4 + (refusal)))

/** Execute the expected packet, which has passed all earlier checks. Returns what a check
 * returns. */
enum fault execute_request(struct responder *responder, const struct packet *packet);

/** Owe the responses of the expected READ. `reply` says whose memory it is, and gets the rest. */
void execute_owe_read(struct responder *responder, const struct packet *packet,
		      struct reply *reply);

/** Drop this request as if the network had lost it, because an owed answer or missing memory
 * prevents its execution. The NAK is sent after the owed answers, so the request can be executed
 * when the peer sends it again. */
enum fault execute_later(struct responder *responder);

#endif
