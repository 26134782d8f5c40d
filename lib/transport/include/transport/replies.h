/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a responder owes its requester: READ responses and atomic results in the order of their
 * requests, and behind them one coalesced acknowledgement. Also the memory of the last READs and
 * atomics, from which duplicates are answered (IBTA 9.7.5.1.3, responder resources).
 */
#ifndef TRANSPORT_REPLIES_H
#define TRANSPORT_REPLIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "telemetry/counters.h"
#include "transport/page_wait.h"
#include "transport/peer.h"
#include "transport/sink.h"
#include "transport/status.h"

struct pd;

enum reply_kind {
	REPLY_READ,
	REPLY_ATOMIC,
	REPLY_WORD, /* that an ATOMIC WRITE or FLUSH is executed: a READ response without data */
};

/* A READ or atomic request and how far it is answered. */
struct reply {
	enum reply_kind kind;
	const struct pd *pd; /* READ: that its memory is of */
	/* The PSNs of the responses. Nobody moves them along: replies_forget_old forgets them in
	 * time, and a requester does not go on for 2^23 PSNs without a response that it waits for.
	 */
	struct psn first;
	struct psn last;
	uint32_t msn;	   /* after the request */
	uint64_t iova;	   /* READ: of the first response's payload */
	uint32_t rkey;	   /* READ */
	uint32_t length;   /* READ: bytes of all responses */
	uint64_t original; /* atomic: what memory held, host order */
	uint32_t sent;	   /* responses sent */
	bool repeated;	   /* for a duplicate request, or a word: takes none of the resources */
};

/* An acknowledgement or RNR NAK that goes out before a response that waits for its page. */
struct notice {
	struct psn psn; /* while it is due */
	uint32_t msn : 24;
	uint32_t syndrome : 8;
};

struct replies {
	/* narrow pointers, set once */
	const struct peer *peer;
	uint32_t qpn;	 /* our own, which windows are bound for */
	uint8_t service; /* OPCODE_RC or OPCODE_XRC */

	uint8_t nak_syndrome;
	bool ack_due; /* an acknowledgement, up to ack_psn, which responder_age moves along */
	bool nak_due; /* a NAK or RNR NAK for nak_psn, which is epsn until it is withdrawn */
	struct psn ack_psn;
	uint32_t ack_msn;
	struct psn nak_psn;
	uint32_t nak_msn;

	/*
	 * What is still to be sent: a ring of twice as many entries as `resource`, [head, tail).
	 * Duplicates take no room from new requests: who sends one of these may have got the answer
	 * meanwhile.
	 */
	uint32_t head;
	uint32_t tail;
	struct reply *pending;
	uint32_t repeats; /* entries that are repeated, at most mask + 1 */

	uint32_t resources; /* max_dest_rd_atomic */
	/* A power of two, - 1: the indices wrap. The rings are there when the first reply is owed,
	 * and grow until that is at least `resources`: who asks for many and never READs takes no
	 * memory for them. */
	uint32_t mask;

	bool absent;	 /* a page of the next response was not in memory: only `notice` goes out */
	bool notice_due; /* while `absent`, and until the next turn */

	/* The last requests: a ring of mask + 1 entries, the newest at newest - 1. */
	uint32_t newest;     /* counts up */
	uint32_t remembered; /* entries that are valid, at most `resources` and mask + 1 */
	struct reply *resource;
	struct counters *counters;
	struct page_wait page_wait; /* of the next response */
	struct notice notice;	    /* while `notice_due` */
};

/**
 * The requester has sent the packet `psn` again, which was executed. If what it lacks waits for a
 * page, the requester is told to wait as well. An acknowledgement of what is before that does not
 * wait.
 *
 * @param is_acked
 *   A SEND or WRITE: it has no response.
 * @param min_rnr_timer
 *   An attribute of the queue pair.
 */
void replies_ask_patience(struct replies *replies, struct psn psn, bool is_acked,
			  uint8_t min_rnr_timer);

/** From now on `resources` READs and atomics at a time. What is owed and remembered stays, as far
 * as there is room. Control. 0 or -ENOMEM. */
int replies_init(struct replies *replies, uint32_t resources);
void replies_fini(struct replies *replies);

/** Forget everything owed and remembered. */
void replies_clear(struct replies *replies);

/** A protection domain may go: what was to be read in it is now to be read in `instead`, which
 * knows no key of it. */
void replies_forget_pd(struct replies *replies, const struct pd *pd, const struct pd *instead);

/** Whether another new READ or atomic can be owed; else the requester has exceeded max_rd_atomic.
 */
static inline bool replies_room(const struct replies *replies)
{
	return replies->tail - replies->head - replies->repeats < replies->resources;
}

/** Whether anything is owed. */
static inline bool replies_due(const struct replies *replies)
{
	return replies->head != replies->tail || replies->ack_due || replies->nak_due;
}

/** Whether an acknowledgement is all that is owed. */
static inline bool replies_owe_ack_only(const struct replies *replies)
{
	return replies->head == replies->tail && replies->ack_due && !replies->nak_due;
}

/** The rings are there, or larger; or there is no memory: false. */
bool replies_grow(struct replies *replies);

/** Where there is replies_room: whether there is memory too. */
static inline bool replies_reserve(struct replies *replies)
{
	return (replies->resource != NULL && (replies->remembered <= replies->mask ||
					      replies->remembered == replies->resources)) ||
	       replies_grow(replies);
}

/** Forget the requests whose duplicates would not be told from new ones: those 2^23 PSNs and more
 * before `expected`. To be called at least every 2^22 PSNs; replies_add does it too. */
void replies_forget_old(struct replies *replies, struct psn expected);

/** Owe and remember a new reply. Only with replies_room and replies_reserve. */
void replies_add(struct replies *replies, const struct reply *reply);

/** Whether the word about one more ATOMIC WRITE or FLUSH can be owed as the rings are. */
static inline bool replies_room_for_word(const struct replies *replies)
{
	return replies->repeats <= replies->mask &&
	       replies->tail - replies->head <= 2 * replies->mask + 1;
}

/** Whether it can be owed at all. */
static inline bool replies_reserve_word(struct replies *replies)
{
	if (replies->resource == NULL)
		return replies_grow(replies);
	return replies_room_for_word(replies) ||
	       (replies->mask + 1 < replies->resources && replies_grow(replies));
}

/**
 * Owe the word that an ATOMIC WRITE or FLUSH was executed, unless it is still owed, or there is no
 * room. There is nothing to remember of it: who has executed what came later can say so at any
 * time.
 */
void replies_word(struct replies *replies, struct psn psn, uint32_t msn);

/** The remembered request whose responses contain `psn`, or NULL. */
const struct reply *replies_find(const struct replies *replies, struct psn psn);

/** Whether a READ by this key is still to be answered. */
bool replies_owe_read(const struct replies *replies, uint32_t rkey);

/**
 * Owe a remembered reply, or its later part, again, unless it is still owed, or too many are owed
 * again already (its requester will ask once more).
 */
void replies_repeat(struct replies *replies, const struct reply *reply);

/** Owe an acknowledgement of everything up to `psn`. */
void replies_ack(struct replies *replies, struct psn psn, uint32_t msn);

/**
 * Owe a NAK or RNR NAK, behind all that is owed. A sequence NAK acknowledges everything before its
 * PSN, so it takes the place of an acknowledgement. Before an RNR NAK the acknowledgement leaves as
 * a packet of its own: a requester takes it for progress and has all its RNR retries again.
 */
void replies_nak(struct replies *replies, uint8_t syndrome, struct psn psn, uint32_t msn);

/** A NAK that is owed has become wrong, for its packet has come. */
static inline void replies_withdraw_nak(struct replies *replies)
{
	replies->nak_due = false;
}

/** An acknowledgement that is owed has become too old. Return whether one was owed. */
bool replies_withdraw_ack(struct replies *replies);

/** Assert what holds between two calls; for builds with assertions. */
void replies_check(const struct replies *replies);

/**
 * Send what is owed.
 *
 * @param budget
 *   How many packets at most.
 * @param more
 *   Set true when budget or sink ended it.
 * @param fault
 *   Set to FAULT_ACCESS where a READ's memory has gone meanwhile; a NAK is then sent in its place.
 *   A duplicate READ is no fault: its requester may have got the answer, and the memory been
 *   deregistered for that reason.
 * @return
 *   How many packets were sent.
 */
unsigned int replies_send(struct replies *replies, struct packet_sink *sink, unsigned int budget,
			  bool *more, enum fault *fault);

#endif
