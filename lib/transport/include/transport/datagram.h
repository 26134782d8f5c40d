/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams: each message is one packet, and there is neither a peer nor a record of
 * what was sent (IBTA 9.8.3). */
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
#include "transport/ooo.h"
#include "transport/pacer.h"
#include "transport/receive.h"
#include "transport/sink.h"
#include "transport/status.h"

struct packet;
struct pd;

/* Bytes of a receive buffer for the sender's address, before the message (10.2.5, 11.4.1.2). */
#define DATAGRAM_GRH_BYTES 40

/* A work request's Q_Key with this bit means the queue pair's own (10.2.5). */
#define DATAGRAM_QKEY_PRIVILEGED 0x80000000u

/*
 * Value of ibv_wc.sl of a received datagram. RoCEv2 asks for a flag that says which header the
 * datagram came with (A17.4.5.1), but verbs have no member for it. ConnectX reports it in `sl`: the
 * low three bits are the network header's type, and bit 3 says that a UDP header follows. Programs
 * such as UCX read it there.
 */
#define DATAGRAM_SL_UDP	 8
#define DATAGRAM_SL_IPV6 (DATAGRAM_SL_UDP | 1)
#define DATAGRAM_SL_IPV4 (DATAGRAM_SL_UDP | 2)

struct datagram {
	/* set once */
	struct sq *sq;
	struct rq *rq;
	struct srq *srq; /* shared receive queue that contains rq, or NULL */
	struct cq *recv_cq;
	struct receive *receive;
	struct completer *completer; /* completes the send queue */
	struct pacer *pacer;
	const struct pd *pd;
	struct counters *counters;
	uint32_t qpn; /* our own */
	uint32_t mtu; /* MTU of the port in bytes: the longest message */
	uint16_t pkey;
	bool absent; /* a page of the next message to send was not in memory */

	uint32_t qkey;
	struct psn psn; /* PSN of the next packet; nobody checks it */

	/* Messages that wait for a page of the receive request in use, and those behind them. Their
	 * PSNs are made up, and count up from the first kept one. */
	struct ooo ooo;
	struct psn kept; /* PSN of the message that was kept last */
};

/**
 * Send messages.
 *
 * @param more
 *   Set to true if the budget or the sink ended it, and not the queue, the pacer or a page that is
 *   not in memory (`absent`).
 * @return
 *   FAULT_NONE, or the reason why the oldest request cannot be sent; it is not completed yet.
 */
enum fault datagram_send(struct datagram *datagram, struct packet_sink *sink, unsigned int budget,
			 bool *more);

/** Receive a message into the next receive request. Drop it if there is none, if it is too short,
 * or if the Q_Key is wrong. If a page of the request's memory is absent, keep the message as far as
 * there is room. */
enum fault datagram_receive(struct datagram *datagram, const struct packet *packet);

/** Note that pages have come, perhaps the awaited one: receive the kept messages. As
 * datagram_receive. */
enum fault datagram_resume(struct datagram *datagram);

/** Stop waiting for pages: send and keep nothing more. */
void datagram_reset(struct datagram *datagram);

/** Complete all posted receive requests with IBV_WC_WR_FLUSH_ERR, except those of a shared
 * queue. */
void datagram_flush(struct datagram *datagram);

#endif
