/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers that a responder owes its requester: READ responses and atomic results in the order
 * of their requests, and after them one coalesced acknowledgement. It also stores the last READs
 * and atomics, from which duplicates are answered (IBTA 9.7.5.1.3, responder resources).
 */
#ifndef TRANSPORT_REPLIES_H
#define TRANSPORT_REPLIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "telemetry/counters.h"
#include "transport/page_wait.h"
#include "transport/peer.h"
#include "transport/sack.h"
#include "transport/sink.h"
#include "transport/status.h"

struct ooo;
struct pass;
struct pd;

enum reply_kind {
	REPLY_READ,
	REPLY_ATOMIC,
	REPLY_EMPTY_READ, /* a READ response without payload: an ATOMIC WRITE or FLUSH is executed
			   */
};

/* A READ or atomic request, and how far it is answered. */
struct reply {
	enum reply_kind kind;
	union {
		const struct pd *pd; /* READ: domain of its memory */
		struct pass *pass;   /* READ with `srqn`: fetches the memory */
	};
	/* The PSNs of the responses. Nobody advances them: replies_forget_old removes the reply in
	 * time, and a requester does not continue for 2^23 PSNs without a response that it waits
	 * for. */
	struct psn first;
	struct psn last;
	uint32_t msn;	   /* MSN after the request */
	uint32_t srqn;	   /* READ of another process's memory: its shared receive queue; else 0 */
	uint64_t iova;	   /* READ: address of the first response's payload */
	uint32_t rkey;	   /* READ */
	uint32_t length;   /* READ: bytes of all responses */
	uint64_t original; /* atomic: the former contents of memory, in host order */
	uint32_t sent;	   /* responses sent */
	bool repeated; /* for a duplicate request, or without payload: uses none of the resources */
	bool hurried;  /* it goes before those that are owed for the first time */
};

/* An acknowledgement or RNR NAK that is sent before a response that waits for its page. */
struct notice {
	struct psn psn; /* valid while the notice is due */
	uint32_t msn : 24;
	uint32_t syndrome : 8;
};

struct replies {
	/* The fields that an acknowledgement needs come first (lib/qp/qp_internal.h). */
	const struct peer *peer; /* set once */
	uint8_t service;	 /* OPCODE_RC or OPCODE_XRC; set once */

	uint8_t capability; /* of each answer: BTH_SACK_RESPONSE to a peer that understands
			 selective acknowledgements, else 0 */
	uint8_t nak_syndrome;
	bool ack_due;	 /* an acknowledgement up to ack_psn, which responder_age advances */
	bool nak_due;	 /* a NAK or RNR NAK for nak_psn, which is epsn until it is withdrawn */
	bool absent;	 /* a page of the next response was not in memory: only `notice` is sent */
	bool notice_due; /* valid while `absent`, and until the next engine poll */
	bool introduces; /* an introduction (transport/sack.h) is owed, with the next answer */
	struct psn ack_psn;
	uint32_t ack_msn;

	/*
	 * Answers that are still to be sent: a ring of twice as many entries as `resource`, [head,
	 * tail). Duplicates take no room from new requests, because the sender of a duplicate may
	 * have got the answer meanwhile.
	 */
	uint32_t head;
	uint32_t tail;

	struct psn nak_psn;
	uint32_t nak_msn;
	struct reply *pending;
	uint32_t repeats; /* repeated entries, at most mask + 1 */

	uint16_t resources; /* READs and atomics at a time: `said`, or more (transport/sack.h) */
	uint16_t said;	    /* max_dest_rd_atomic */
	/* A power of two, minus 1: the indices wrap. The rings are allocated when the first reply
	 * is owed, and grow until this is at least `resources`: a peer that asks for many resources
	 * and never READs uses no memory for them. They grow on, to twice as many at least, if
	 * duplicates fill them when a new ATOMIC WRITE or FLUSH comes. */
	uint32_t mask;

	/* The last requests: a ring of mask + 1 entries, the newest at newest - 1. */
	uint32_t newest;     /* counts up */
	uint32_t remembered; /* entries that are valid, at most `resources` and mask + 1 */
	/* If `introduces`: the PSN that was expected when the introduction was owed.
	 * replies_forget_old drops an old one. */
	struct psn introduction;
	struct reply *resource;
	struct counters *counters;
	uint32_t qpn;		    /* our own; windows are bound for it; set once */
	uint8_t introductions;	    /* that may still be owed to this peer */
	struct page_wait page_wait; /* wait of the next response */
	struct notice notice;	    /* valid while `notice_due` */
	uint32_t sacks;		    /* selective acknowledgements sent */
	const struct ooo *kept;	    /* what they tell of; NULL: this side sends none */
};

/**
 * Note that the requester has sent the packet `psn` again, which was executed. If its answer waits
 * for a page, the requester is told to wait as well. An acknowledgement of earlier packets does not
 * wait.
 *
 * @param is_acked
 *   A SEND or WRITE: it has no response.
 * @param min_rnr_timer
 *   An attribute of the queue pair.
 */
void replies_ask_to_wait(struct replies *replies, struct psn psn, bool is_acked,
			 uint8_t min_rnr_timer);

/** Set the attribute for READs and atomics at a time. Owed and stored replies stay, as far as there
 * is room. Control. 0 or -ENOMEM. */
int replies_init(struct replies *replies, uint32_t said);
void replies_fini(struct replies *replies);

/** Drop all owed and stored replies. */
void replies_clear(struct replies *replies);

/** A protection domain will be destroyed: replace it by `instead`, which has no keys, in all
 * replies that read its memory. */
void replies_forget_pd(struct replies *replies, const struct pd *pd, const struct pd *instead);

/** Return true if another new READ or atomic can be owed; else the requester has exceeded
 * max_rd_atomic. */
static inline bool replies_room(const struct replies *replies)
{
	return replies->tail - replies->head - replies->repeats < replies->resources;
}

/** Return true if anything is owed. */
static inline bool replies_due(const struct replies *replies)
{
	return replies->head != replies->tail || replies->ack_due || replies->nak_due;
}

/** Return true if a selective acknowledgement is owed. It does not wait for responses: the
 * requester shall send what is missing before they have left. */
bool replies_owe_sack(const struct replies *replies);

/** Return true if a response is owed. */
static inline bool replies_owe_response(const struct replies *replies)
{
	return replies->head != replies->tail;
}

/** Return true if an acknowledgement is all that is owed. */
static inline bool replies_owe_ack_only(const struct replies *replies)
{
	return replies->head == replies->tail && replies->ack_due && !replies->nak_due;
}

/** Allocate the rings, or larger ones. Return false if there is no memory. */
bool replies_grow(struct replies *replies);

/** After replies_room: return true if there is memory, too. */
static inline bool replies_reserve(struct replies *replies)
{
	return (replies->resource != NULL && (replies->remembered <= replies->mask ||
					      replies->remembered == replies->resources)) ||
	       replies_grow(replies);
}

/** Drop the requests whose duplicates could not be distinguished from new ones: those 2^23 PSNs and
 * more before `expected`. Must be called at least every 2^22 PSNs; replies_add does it too. */
void replies_forget_old(struct replies *replies, struct psn expected);

/** Owe and store a new reply. Only after replies_room and replies_reserve. */
void replies_add(struct replies *replies, const struct reply *reply);

/** Return true if one more READ response without payload fits into the present rings. */
static inline bool replies_room_for_empty_read(const struct replies *replies)
{
	return replies->repeats <= replies->mask &&
	       replies->tail - replies->head <= 2 * replies->mask + 1;
}

/** Return true if one more can be owed at all, in rings of at most `entries` or what they have now.
 */
static inline bool replies_reserve_among(struct replies *replies, uint32_t entries)
{
	if (replies->resource == NULL)
		return replies_grow(replies);
	return replies_room_for_empty_read(replies) ||
	       (replies->mask + 1 < entries && replies_grow(replies));
}

/** Return true if the answer of a new ATOMIC WRITE or FLUSH can be owed: duplicates that are owed
 * an answer take no room from as many new requests as there are resources. */
static inline bool replies_reserve_empty_read(struct replies *replies)
{
	return replies_reserve_among(replies, 2 * RTE_MAX(replies->resources, 1u));
}

/**
 * Owe the READ response without payload of an executed ATOMIC WRITE or FLUSH, unless it is still
 * owed, or there is no room. Nothing is stored for it: after later requests were executed, it can
 * be answered at any time.
 */
void replies_empty_read(struct replies *replies, struct psn psn, uint32_t msn);

/** Do the same for a duplicate of such a request, unless as many duplicates are owed an answer as
 * there are resources. */
void replies_repeat_empty_read(struct replies *replies, struct psn psn, uint32_t msn);

/** Return the stored request whose responses contain `psn`, or NULL. */
const struct reply *replies_find(const struct replies *replies, struct psn psn);

/** Return true if a READ by this key is still to be answered. */
bool replies_owe_read(const struct replies *replies, uint32_t rkey);

/**
 * Owe a stored reply, or its later part, again; unless it is still owed, or too many are already
 * owed again (its requester will ask once more).
 */
void replies_repeat(struct replies *replies, const struct reply *reply);

/** Return true if a READ of another process's memory is to be answered for the first time. */
bool replies_owe_passed(const struct replies *replies);

/** Set the SACK capability bits of each answer. */
void replies_set_capability(struct replies *replies, uint8_t capability);

/* Return true if the peer gets selective acknowledgements in place of sequence NAKs. */
static inline bool replies_sack(const struct replies *replies)
{
	return replies->capability != 0;
}

/** Owe an introduction, unless the peer is SACK-capable or has had enough of them. */
static inline void replies_introduce(struct replies *replies, struct psn expected)
{
	if (replies->introductions == 0 || replies_sack(replies))
		return;
	replies->introduces = true;
	replies->introduction = expected;
}

/** Owe an acknowledgement of everything up to `psn`. */
void replies_ack(struct replies *replies, struct psn psn, uint32_t msn);

/**
 * Owe a NAK or RNR NAK, after everything that is owed. A sequence NAK acknowledges everything
 * before its PSN, so it replaces an acknowledgement. Before an RNR NAK the acknowledgement is sent
 * as a packet of its own: a requester takes it for progress, and has all its RNR retries again.
 */
void replies_nak(struct replies *replies, uint8_t syndrome, struct psn psn, uint32_t msn);

/** Withdraw an owed NAK, because its packet has come. */
static inline void replies_withdraw_nak(struct replies *replies)
{
	replies->nak_due = false;
}

/** Withdraw an owed acknowledgement that has become too old. Return true if one was owed. */
bool replies_withdraw_ack(struct replies *replies);

/** Assert the invariants between two calls; for builds with assertions. */
void replies_check(const struct replies *replies);

/**
 * Send what is owed.
 *
 * @param budget
 *   The most packets to send.
 * @param more
 *   Set to true if the budget or the sink ended it.
 * @param fault
 *   Set to FAULT_ACCESS if a READ's memory no longer exists; a NAK is sent instead. For a duplicate
 *   READ this is no fault: its requester may have got the answer, and the memory may have been
 *   deregistered for that reason.
 * @return
 *   The number of packets sent.
 */
unsigned int replies_send(struct replies *replies, struct packet_sink *sink, unsigned int budget,
			  bool *more, enum fault *fault);

#endif
