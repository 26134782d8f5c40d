/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of a requester that takes in responses and completes work requests, in order (IBTA 9.7.5
 * and 9.7.7). */
#ifndef TRANSPORT_COMPLETER_H
#define TRANSPORT_COMPLETER_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/cq.h"
#include "queue/sq.h"
#include "telemetry/counters.h"
#include "transport/early.h"
#include "transport/flight.h"
#include "transport/recovery.h"
#include "transport/status.h"

struct packet;
struct pd;

struct completer {
	/* narrow pointers, set once */
	struct sq *sq;
	struct cq *cq;
	const struct pd *pd;
	struct flight *flight;
	struct recovery *recovery;
	struct counters *counters;
	uint32_t qpn; /* our own, for completions */

	uint32_t mtu; /* path MTU, bytes */

	struct early early; /* responses that came before those to be stored first */
};

/** Forget what was received of the connection. */
void completer_reset(struct completer *completer);

/**
 * Take in a response: an acknowledgement, a NAK, a READ response or an atomic's result.
 *
 * @return
 *   FAULT_NONE, or why the oldest request fails, and with it the queue pair.
 */
enum fault completer_receive(struct completer *completer, const struct packet *packet,
			     uint64_t now_ns);

/**
 * The recovery's deadline has come.
 *
 * @return
 *   FAULT_NONE, or FAULT_RETRIES_EXHAUSTED.
 */
enum fault completer_timeout(struct completer *completer, uint64_t now_ns);

/**
 * Pages have come. If an answer was dropped for the lack of one (recovery.page_absent), everything
 * unanswered is asked for again from now on. That uses up no retry.
 */
void completer_resume(struct completer *completer, uint64_t now_ns);

/** The oldest request is done: complete it if it is signaled, and free it. FAULT_NONE, or
 * FAULT_CQ_OVERRUN. */
enum fault completer_done(struct completer *completer);

/** Complete the oldest requests that were executed without a packet. FAULT_NONE, or
 * FAULT_CQ_OVERRUN. */
enum fault completer_executed(struct completer *completer);

/** Unreliable service: what is sent is done. FAULT_NONE, or FAULT_CQ_OVERRUN. */
enum fault completer_sent(struct completer *completer, uint64_t now_ns);

/** Complete the oldest request with the status of a fault, and free it. FAULT_NONE, or
 * FAULT_CQ_OVERRUN. */
enum fault completer_fail(struct completer *completer, enum fault fault);

/** Complete all that is posted with IBV_WC_WR_FLUSH_ERR, in order. */
void completer_flush(struct completer *completer);

#endif
