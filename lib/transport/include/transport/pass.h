/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests for shared receive queues of other processes. An XRC domain may belong to several
 * processes of a host, and a packet to its target queue pair may name a queue of any of them (annex
 * A14). The target's process keeps the order of the requests, and answers the requester. It passes
 * a request for another process's queue to a queue pair of that process, its stand-in, as an
 * ordinary requester would: with PSNs of their own. The stand-in makes all checks, and answers.
 *
 * One request is in flight at a time. The request is kept here until the stand-in has answered, and
 * sent again when its requester sends it again. So this needs no timer.
 *
 * A READ is fetched in parts of a packet. A requester may repeat it later, even between two packets
 * of a message. So the parts have PSNs from a range before the expected PSN of the stand-in. It
 * answers each READ from there (duplicate.c), also within a message, and refuses one without
 * failing.
 */
#ifndef TRANSPORT_PASS_H
#define TRANSPORT_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "mem/mr.h"
#include "transport/sink.h"
#include "transport/status.h"
#include "wire/build.h"
#include "wire/packet.h"

struct responder;

/* The way to a stand-in; of the device. */
struct pass_link {
	struct path path;
	uint32_t block; /* of the numbers of the process to which it leads (wire/qpn_block.h) */
	uint32_t qpn;	/* of the stand-in */
	uint32_t alias; /* the number by which the stand-in knows the target: answers come to it,
			   so it tells one stand-in's answers from another's */
	struct psn psn; /* of the next request; pass_answer advances it, and nothing ages: the
			   stand-in expects this PSN, however late it comes */
	struct psn read_psn; /* of the last part of a READ; pass_read moves it to stay behind `psn`
			      */
};

enum pass_state {
	PASS_NONE,
	PASS_SENT,	/* not answered yet */
	PASS_EXECUTED,	/* the stand-in has executed it */
	PASS_NOT_READY, /* the stand-in had no receive request, or waits for a page */
	PASS_FAILED,	/* `fault` says why */
};

struct pass {
	/* Find the way to the process with a shared receive queue; engine's thread. 0; -EAGAIN: it
	 * is not known yet, and qp_look_again is called when it is; -ENOENT: there is none. */
	int (*find)(void *user, uint32_t srqn, struct pass_link **link);
	void *user;
	struct counters *counters;

	enum pass_state state;
	bool due; /* PASS_SENT: to be sent, perhaps again */
	/* The requester itself has sent the expected request since it was last refused, so it is
	 * told if it is refused again. Else the request was kept behind a refused one. */
	bool came;
	/* It is a part of a READ whose responses are owed (replies.h), and not the expected request
	 */
	bool is_read;
	enum fault fault;
	bool left;		/* PASS_FAILED: its link has gone, and nobody has refused it */
	struct pass_link *link; /* PASS_SENT */
	struct psn psn;	     /* of the request from the requester, or of the response; only compared
				for equality while epsn or the response stands there */
	struct psn link_psn; /* PASS_SENT: its PSN on the link; only compared for equality */
	struct packet packet; /* its payload is in `bytes` */
	uint64_t original;    /* PASS_EXECUTED: an atomic's answer */

	uint32_t srqn;	/* that the message in progress names */
	uint32_t epoch; /* how often the queue pair has begun anew: its links end with it */
	uint8_t bytes[WIRE_MTU_MAX];
};

/** Forget everything that is in flight. */
void pass_reset(struct pass *pass);

/**
 * Check the expected request, whether it is to be passed on or not. Return false if it continues a
 * message and names another shared receive queue than the message's first packet, or if another
 * request with its PSN is in flight.
 */
bool pass_continues(struct pass *pass, const struct packet *packet);

/**
 * Process the expected request, which names a queue of another process.
 *
 * @return
 *   FAULT_NONE: it is executed; RESPONDER_ABSENT: it has to wait; RESPONDER_REFUSED: it gets
 *   an RNR NAK; RESPONDER_DONE; or the fault.
 */
enum fault pass_take(struct responder *responder, const struct packet *packet);

/**
 * Fetch the payload of a READ response from another process.
 *
 * @param request
 *   The READ: its key, the address and length of this payload, and the queue.
 * @param psn
 *   Of the response.
 * @return
 *   MR_OK: `*addr` is the payload, until pass_read_done; MR_ABSENT: it has to wait; another status:
 *   it may not be read.
 */
enum mr_status pass_read(struct pass *pass, const struct packet *request, struct psn psn,
			 uint8_t **addr);

/** The response with the fetched payload is sent. */
void pass_read_done(struct pass *pass);

/** The requester has sent a request again that was executed. Until it has the answer, it may not
 * repeat what is in flight here, so that is sent again. */
void pass_again(struct pass *pass);

/** Process an answer of a stand-in. Return true if the expected request can now be processed, or
 * the next response be sent. */
bool pass_answer(struct pass *pass, const struct packet *packet);

/** A link will be freed. */
void pass_forget_link(struct pass *pass, const struct pass_link *link);

/** Send what is due. Return false if the sink has no room. */
bool pass_send(struct pass *pass, struct packet_sink *sink);

#endif
