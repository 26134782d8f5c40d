/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of a requester that receives responses and completes work requests, in order (IBTA 9.7.5
 * and 9.7.7). */
#ifndef TRANSPORT_COMPLETER_H
#define TRANSPORT_COMPLETER_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/comp_cntr.h"
#include "queue/cq.h"
#include "queue/sq.h"
#include "telemetry/counters.h"
#include "transport/ooo.h"
#include "transport/loss.h"
#include "transport/status.h"

struct packet;
struct pd;

struct completer {
	/* The fields that an acknowledgement needs come first (lib/qp/qp_internal.h). */
	struct sq *sq; /* set once, as the next three */
	struct cq *cq;
	struct loss *loss;
	uint32_t qpn;	  /* our own, for completions */
	uint8_t ack_byte; /* of the newest answer: AckReq and the peer's SACK capability bits */
	bool page_absent; /* the answer to una has come, and a page for it is not in memory: answers
			     are dropped until it is */
	bool refused;	  /* an RNR NAK has refused a request that takes a receive; the caller of
			     completer_receive resets it */
	bool counts;	  /* in cntrs */

	uint32_t mtu; /* path MTU, bytes */
	/* set once */
	const struct pd *pd;
	struct counters *counters;
	const struct comp_cntrs *cntrs;

	struct ooo ooo; /* responses that came out of order */
};

/** Reset everything that belongs to the connection. */
void completer_reset(struct completer *completer);

/**
 * Process a response: an acknowledgement, a NAK, a READ response or an atomic's result.
 *
 * @return
 *   FAULT_NONE, or the fault with which the oldest request fails, and with it the queue pair.
 */
enum fault completer_receive(struct completer *completer, const struct packet *packet,
			     uint64_t now_ns);

/** Process a selective acknowledgement (transport/sack.h). As completer_receive. */
enum fault completer_sack(struct completer *completer, const struct packet *packet,
			  uint64_t now_ns);

/**
 * Process the deadline of lost packets (loss_deadline_ns).
 *
 * @param excused
 *   As for loss_on_timer.
 * @return
 *   FAULT_NONE, or FAULT_RETRIES_EXHAUSTED.
 */
enum fault completer_timeout(struct completer *completer, bool excused, uint64_t now_ns);

/**
 * Note that pages have come. If an answer was dropped because a page was absent
 * (page_absent), all unanswered requests are sent again from now on. This uses up no
 * retry.
 */
void completer_resume(struct completer *completer, uint64_t now_ns);

/** Complete the oldest request if it is signaled, and free it. FAULT_NONE, or FAULT_CQ_OVERRUN. */
enum fault completer_done(struct completer *completer);

/** Complete the oldest requests that were executed without a packet. FAULT_NONE, or
 * FAULT_CQ_OVERRUN. */
enum fault completer_executed(struct completer *completer);

/** Unreliable service: complete what is sent. FAULT_NONE, or FAULT_CQ_OVERRUN. */
enum fault completer_sent(struct completer *completer, uint64_t now_ns);

/** Complete the oldest request with the status of a fault, and free it. FAULT_NONE, or
 * FAULT_CQ_OVERRUN. */
enum fault completer_fail(struct completer *completer, enum fault fault);

/** Complete all posted requests with IBV_WC_WR_FLUSH_ERR, in order. */
void completer_flush(struct completer *completer);

#endif
