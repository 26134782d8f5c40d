/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams: one packet a message, no peer, no memory of what was sent (IBTA 9.8.3). */
#ifndef TRANSPORT_DATAGRAM_H
#define TRANSPORT_DATAGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "queue/cq.h"
#include "queue/rq.h"
#include "queue/sq.h"
#include "telemetry/counters.h"
#include "transport/completer.h"
#include "transport/early.h"
#include "transport/pacer.h"
#include "transport/receive.h"
#include "transport/sink.h"
#include "transport/status.h"

struct packet;
struct pd;

/* Bytes that a receive buffer gives to the sender's address before the message (10.2.5, 11.4.1.2).
 */
#define DATAGRAM_GRH_BYTES 40

/* A work request's Q_Key with this bit set means the queue pair's own (10.2.5). */
#define DATAGRAM_QKEY_PRIVILEGED 0x80000000u

struct datagram {
	/* narrow pointers, set once */
	struct sq *sq;
	struct rq *rq;
	struct srq *srq; /* that rq is of, or NULL */
	struct cq *recv_cq;
	struct receive *receive;
	struct completer *completer; /* of the send queue */
	struct pacer *pacer;
	const struct pd *pd;
	struct counters *counters;
	uint32_t qpn; /* our own */
	uint32_t mtu; /* of the port, bytes: the longest message */
	uint16_t pkey;
	bool absent; /* a page of what is to be sent next was not in memory */

	uint32_t qkey;
	struct psn psn; /* of the next packet sent; nobody checks it */

	/* Messages that wait for a page of the receive request in use, and those behind them; their
	 * PSNs are made up, and count up from the one kept first. */
	struct early early;
	struct psn kept; /* of the message kept last; only while something is kept */
};

/**
 * Send messages.
 *
 * @param more
 *   Set true when budget or sink ended it, not the queue, the pacer or a page that is not in memory
 * (`absent`).
 * @return
 *   FAULT_NONE, or why the oldest request cannot be sent; it is not completed yet.
 */
enum fault datagram_send(struct datagram *datagram, struct packet_sink *sink, unsigned int budget,
			 bool *more);

/** Take in a message: to the next receive request, or dropped where there is none, it is too short,
 * or the Q_Key is wrong. Where a page of the request's memory is not there, the message is kept, as
 * far as there is room. */
enum fault datagram_receive(struct datagram *datagram, const struct packet *packet);

/** Pages have come, perhaps the one that is waited for: take in what is kept. As
 * datagram_receive. */
enum fault datagram_resume(struct datagram *datagram);

/** Send and keep nothing more that waits for a page. */
void datagram_reset(struct datagram *datagram);

/** Complete all posted receive requests with IBV_WC_WR_FLUSH_ERR; not those of a shared queue. */
void datagram_flush(struct datagram *datagram);

#endif
