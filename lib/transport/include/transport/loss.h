/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of loss: a requester's packets in flight, what is known about each of them, and what is
 * sent again. Requester and completer report events to it and ask it what to send; they keep
 * nothing of this themselves. doc/developer/loss.md describes how the parts work together.
 */
#ifndef TRANSPORT_LOSS_H
#define TRANSPORT_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "base/psn.h"
#include "transport/loss_peer.h"
#include "transport/recovery.h"
#include "transport/sack.h"
#include "transport/scoreboard.h"

#define LOSS_WINDOW_MAX \
	256 /* packets; enough for 1 MiB at the largest MTU, and less than the ports' rings */
#define LOSS_WINDOW_LIMIT                                                       \
	8192 /* the longest window: of a queue pair that is created with it, or \
		towards a SACK-capable peer */
/* Losses do not reduce the window below this; a window that is created smaller stays as it is. */
#define LOSS_WINDOW_MIN	 4
#define LOSS_WINDOW_STEP 8

/* Most packets that are sent again after one NAK: the number doubles up to here if adjacent packets
 * were lost. */
#define LOSS_RUN_MAX 32u

/*
 * The packets that are being sent again. There are two kinds. After going back, `next` is at una,
 * and everything is sent again. A selective retransmission sends only what the scoreboard calls
 * missing, from una on, while `next` stays where it is. It ends when una reaches its end, or when
 * the requester goes back.
 */
enum loss_state {
	LOSS_NONE, /* nothing: next == top, and of the PSNs below only una, next, top are valid */
	LOSS_SETTLED,	   /* nothing, but not everything that was in flight is acknowledged yet */
	LOSS_WENT_BACK,	   /* everything, because the peer sent a NAK */
	LOSS_STARTED_OVER, /* everything, for another reason */
	/* selective retransmissions */
	LOSS_REQUEST, /* a packet that the peer has reported as missing: its answer shows what kind
			 of peer it is */
	LOSS_RNR, /* the peer was not ready for the packet at una: as LOSS_REQUEST, but nothing was
		     lost */
	LOSS_RESPONSE, /* the request of a response that is missing */
	LOSS_PROBE,    /* nothing is known to be missing, but no answer comes */
	LOSS_SACKED,   /* all that the scoreboard calls missing: the peer is SACK-capable
			  (loss_sack.h) */
};

/*
 * Each stored PSN is between una and top, which are less than 2^23 apart. loss_on_ack advances una,
 * and in every state but LOSS_NONE also `next`, `executed`, `recovery_point` and the scoreboard
 * (loss_advance). `from` and `to` are valid until una reaches `to`.
 */
struct loss {
	/* rarely used */
	uint16_t max_responses;	    /* the peer's responder resources: max_rd_atomic */
	uint16_t allowed_responses; /* most of them at a time: max_responses, or more towards a
				       SACK-capable peer (transport/sack.h) */
	uint32_t window_max; /* limit of the window: 1 to LOSS_WINDOW_LIMIT, or 0 for the default
			      */
	uint32_t losses;     /* how often packets were lost; congestion control compares it */
	uint32_t resent; /* packets of a selective retransmission that were sent: before the first,
			    an answer is to the first transmission, and tells nothing about it.
			    Valid only during one */
	/* These are not valid in LOSS_NONE. Each is between una and top. */
	struct psn executed; /* the peer has executed everything before it; responses are missing
				if it is behind una */
	struct psn recovery_point; /* losses before this PSN have already reduced the window */
	/* Valid only during a selective retransmission, which ends when una reaches `to`
	 * (loss_settle). */
	struct psn from; /* una at its beginning; not used in LOSS_SACKED */
	struct psn to;	 /* its end; una < to <= next */
	/* NULL until loss_reserve is called, for the first loss or a SACK-capable peer. Valid in
	 * all states but LOSS_NONE, and towards a SACK-capable peer. */
	struct scoreboard *board;

	/* From here on is what each packet needs (lib/qp/qp_internal.h). */
	struct psn una;	    /* oldest PSN that is not acknowledged */
	struct psn next;    /* PSN of the next packet to send; una <= next <= top */
	struct psn top;	    /* one past the newest PSN ever sent: below it packets are sent again */
	uint32_t window;    /* most packets that may be unacknowledged */
	uint32_t acked;	    /* packets acknowledged since the window last grew */
	uint32_t responses; /* READ segments and atomics that are sent and not answered */
	uint8_t state;	    /* enum loss_state */
	uint8_t peer;	    /* enum loss_peer */
	uint8_t run;	    /* packets of the newest LOSS_REQUEST */
	uint8_t asks;	    /* the byte of the BTH that asks for an acknowledgement: BTH_ACK_REQ
			       and, if `sack`, BTH_SACK_REQUEST with the advertised window */
	bool limited;	    /* the window has held a packet back since it last grew */
	uint8_t sack_use : 7; /* enum sack_use; set once */
	bool sack : 1;	      /* it takes part in selective acknowledgements */
	bool grows;	      /* window_max is the default, which may grow */
	uint8_t back; /* while next is before top: LOSS_WENT_BACK or LOSS_STARTED_OVER, also during
			 a selective retransmission */

	struct recovery recovery;
};

/* The request at una, as the completer knows it. */
struct loss_request {
	bool wants_response;   /* it is answered by a response, and not by an acknowledgement */
	uint32_t segment_psns; /* a READ: PSNs from una to the end of its segment; else 0 */
	bool segment_began;    /* a response of this segment has come */
	struct psn last;
};

/* Packets to send again. */
struct loss_range {
	struct psn from;
	struct psn to;
	bool is_executed; /* their request has come: only its responses are missing */
};

/* Attributes of the queue pair. */
struct loss_attr {
	uint64_t timeout_ns; /* 0: the acknowledgement timer never expires */
	uint32_t max_responses;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
};

/** Set the attributes. They apply to the next packets. */
void loss_set_attr(struct loss *loss, const struct loss_attr *attr);

/** Start over at `first`. The attributes of the queue pair stay. */
void loss_init(struct loss *loss, struct psn first);

/** Free what loss_reserve has allocated. Only loss_init may follow. */
void loss_fini(struct loss *loss);

/**
 * Allocate what the first loss needs: most queue pairs never lose a packet. Each event that may
 * leave LOSS_NONE comes here first.
 *
 * @return
 *   False if there is no memory: the event counts as lost on its way, and timers go on. A queue
 *   pair without a timeout calls this when the timeout is set.
 */
bool loss_reserve(struct loss *loss);

/** Stop: nothing more is sent or received, and no timer runs. */
static inline void loss_stop(struct loss *loss)
{
	recovery_reset(&loss->recovery);
}

/** Leave LOSS_NONE: the PSNs that are not valid there become so. Only after loss_reserve. */
void loss_begin(struct loss *loss);

/* Return the number of packets sent and not acknowledged. */
static inline uint32_t loss_outstanding(const struct loss *loss)
{
	return (uint32_t)psn_diff(loss->next, loss->una);
}

/* Return how many packets may still be in the network: loss_open lets the window be longer than
 * window_max by those that are known to have come or to be lost. */
static inline uint32_t loss_in_network(const struct loss *loss)
{
	const uint32_t outstanding = loss_outstanding(loss);
	const uint32_t settled =
		loss->window > loss->window_max ? loss->window - loss->window_max : 0;

	return outstanding > settled ? outstanding - settled : 0;
}

/* Return true if no packet that was ever sent is unacknowledged. */
static inline bool loss_idle(const struct loss *loss)
{
	return psn_eq(loss->una, loss->top);
}

/* Return true while a larger window is advertised that is not used yet. */
static inline bool loss_is_widening(const struct loss *loss)
{
	return loss->board != NULL && loss->board->widening;
}

/* Return the most packets that may be unacknowledged. */
static inline uint32_t loss_advertised_window(const struct loss *loss)
{
	return loss->board != NULL ? loss->board->advertised_window : loss->window_max;
}

static inline bool loss_full(const struct loss *loss)
{
	return loss_outstanding(loss) >= loss->window;
}

/* Note that the window holds a packet back. */
static inline void loss_limit(struct loss *loss)
{
	loss->limited = true;
}

/* Return true if a selective retransmission has not ended. */
static inline bool loss_is_selective(const struct loss *loss)
{
	return loss->state >= LOSS_REQUEST;
}

/* Return true if una waits for responses although the peer has executed more. */
static inline bool loss_awaits_responses(const struct loss *loss)
{
	return loss->state != LOSS_NONE && psn_before(loss->una, loss->executed);
}

/* Note that the packet `next` was sent. It stands for `count` PSNs (a READ segment stands for its
 * responses). */
static inline void loss_sent(struct loss *loss, uint32_t count)
{
	loss->next = psn_add(loss->next, (int32_t)count);
	if (psn_before(loss->top, loss->next))
		loss->top = loss->next;
}

/* Do the same for a packet that was sent for the first time. */
static inline void loss_sent_new(struct loss *loss, uint32_t count)
{
	loss->next = psn_add(loss->top, (int32_t)count);
	loss->top = loss->next;
}

/** Find the next packets to send again selectively. Return false if there are none. */
bool loss_next(const struct loss *loss, struct loss_range *range);

/** Note that these packets were sent again; perhaps more than loss_next named. */
void loss_sent_again(struct loss *loss, struct psn from, uint32_t count);

/* Return true if nothing new may be sent, because the peer may drop it, or was not ready for
 * earlier packets. */
static inline bool loss_holds(const struct loss *loss)
{
	return loss->state == LOSS_RNR ||
	       (loss->state == LOSS_REQUEST && loss_peer_is_unknown(loss->peer));
}

/**
 * Let the window towards a SACK-capable peer follow the measured rate, and advertise a larger one
 * if it has held packets back. A receiver keeps packets as far ahead as its peer has announced in
 * an executed packet. So a larger window is first advertised, and used when a packet that
 * advertises it is acknowledged.
 *
 * @param is_round
 *   A whole window was acknowledged since the last time.
 */
void loss_widen(struct loss *loss, bool is_round, uint64_t now_ns);

/**
 * Return to the usual window for some time. A receiver that has no receive requests is slower than
 * this requester: what is sent ahead of it waits there, and each message is refused anew.
 */
void loss_shrink(struct loss *loss, uint64_t now_ns);

/** Set the window towards a SACK-capable peer, by what is known of the packets in flight. */
void loss_open(struct loss *loss, uint64_t now_ns);

/** The peer has introduced itself (transport/sack.h): take part from now on, if this side may. */
void loss_on_introduction(struct loss *loss);

/** Note the capability bits of an answer, which differ from the one before. Return false if there
 * is no memory: note it again with the next answer. */
bool loss_on_capability(struct loss *loss, uint8_t capability);

/** Do what loss_on_ack does in other states than LOSS_NONE, before una advances. */
void loss_advance(struct loss *loss, struct psn psn);

/* Note that everything before `psn` is complete; una < psn <= top. A packet that is now known to
 * have come is not sent again. */
static inline void loss_on_ack(struct loss *loss, struct psn psn, uint64_t now_ns)
{
	if (unlikely(loss->state != LOSS_NONE))
		loss_advance(loss, psn);
	loss->acked += (uint32_t)psn_diff(psn, loss->una);
	loss->una = psn;
	if (loss->acked >= loss->window) {
		loss->acked = 0;
		loss->window += LOSS_WINDOW_STEP;
		if (loss->window > loss->window_max)
			loss->window = loss->window_max;
		if (unlikely(loss->limited || loss_is_widening(loss)))
			loss_widen(loss, true, now_ns);
	}
	recovery_answered(&loss->recovery, psn, now_ns);
	recovery_progress(&loss->recovery, now_ns, loss_outstanding(loss) > 0);
}

/** React to a sequence NAK: the peer misses the packet at una. `oldest` is its request. */
void loss_on_nak(struct loss *loss, const struct loss_request *oldest, uint64_t now_ns);

/** React to a NAK for a packet behind una, while responses before it are missing. Return true if
 * everything is now sent again. */
bool loss_on_nak_ahead(struct loss *loss, uint64_t now_ns);

/** React to an RNR NAK for the packet at una, with this timer code. Return false if no RNR retry is
 * left. */
bool loss_on_rnr(struct loss *loss, uint8_t timer_code, uint64_t now_ns);

/** Note a response behind missing ones: everything up to its PSN is executed. Only after
 * loss_reserve. */
void loss_on_out_of_order(struct loss *loss, struct psn psn, bool kept);

/**
 * Find out what the newest answer has changed, in other states than LOSS_NONE.
 *
 * @param oldest
 *   The request at una.
 * @param acknowledged
 *   The answer was an acknowledgement, and not a response or a NAK.
 * @return
 *   True if missing responses are requested now (implied NAK).
 */
bool loss_settle(struct loss *loss, const struct loss_request *oldest, bool acknowledged,
		 uint64_t now_ns);

/** Stop, because an answer cannot be stored before a page is in memory: nothing is received or
 * sent. loss_release starts over. */
void loss_hold(struct loss *loss);
void loss_release(struct loss *loss, uint64_t now_ns);

/* Return true if nothing may be sent before the peer's RNR timer has expired. */
static inline bool loss_waits_for_peer(const struct loss *loss)
{
	return loss->recovery.state == RECOVERY_RNR_WAIT;
}

/** Return true if the oldest packet must be sent again, and has not left since that is known. */
bool loss_owes_oldest(const struct loss *loss);

/** Note that nothing left in an engine poll, in other states than LOSS_NONE: pause the timers while
 * the oldest packet waits to be sent again. */
void loss_on_still_poll(struct loss *loss, uint64_t now_ns);

/*
 * Note that a poll of the requester has ended.
 *
 * @param top
 *   loss->top before it.
 * @param sends
 *   It has sent something, or could not because the port is full.
 */
static inline void loss_on_poll(struct loss *loss, struct psn top, bool sends, uint64_t now_ns)
{
	/* Start the timer also if the port is stuck: this is like a peer that does not answer. Stop
	 * it if nothing is in flight: a port that was stuck before local work has sent nothing that
	 * could be answered. */
	if (sends)
		recovery_sent(&loss->recovery, now_ns);
	else if (loss_idle(loss))
		recovery_idle(&loss->recovery);
	else if (unlikely(loss->state != LOSS_NONE))
		loss_on_still_poll(loss, now_ns);
	/* Measure the round trip of the last packet that is sent for the first time. */
	if (!psn_eq(loss->top, top))
		recovery_time(&loss->recovery, psn_add(loss->top, -1), now_ns);
}

/* The outcome of a deadline. */
enum loss_timeout {
	LOSS_TIMEOUT_NONE,    /* nothing that is counted */
	LOSS_TIMEOUT_PROBE,   /* no answer for a while: the oldest packet is sent again */
	LOSS_TIMEOUT_TAIL,    /* the same, and the peer is SACK-capable: call loss_sack_probe */
	LOSS_TIMEOUT_EXPIRED, /* the acknowledgement timer expired: everything is sent again */
	LOSS_TIMEOUT_GIVE_UP, /* the same, and no retry is left */
};

/**
 * Process the time.
 *
 * @param excused
 *   The peer may have nothing to answer, because of us: no retry is counted, and no loss.
 */
enum loss_timeout loss_on_timer(struct loss *loss, bool excused, uint64_t now_ns);

/* Return when loss_on_timer must be called. */
static inline uint64_t loss_deadline_ns(const struct loss *loss)
{
	return recovery_deadline_ns(&loss->recovery);
}

#endif
