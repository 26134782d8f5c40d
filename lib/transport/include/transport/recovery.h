/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when a requester retransmits, and when it gives up (IBTA 9.7.5.2 and 9.7.6). One deadline
 * serves two timers:
 *
 * - The acknowledgement timer runs while packets are unacknowledged. It starts with the first of
 * them, and again with each acknowledgement that advances. When it expires, everything
 * unacknowledged is retransmitted, and one retry is used up.
 *
 * - The RNR timer runs instead after an RNR NAK. Nothing is sent until it expires.
 *
 * A third timer has a deadline of its own: the retransmission timer runs during a selective
 * retransmission (transport/loss.h). When it expires, the retransmission was lost too, and is
 * sent once more. Its time is a few times the duration of the last selective retransmission, and
 * doubles each time. While nothing is known to be missing, this timer finds losses that no later
 * packet shows: after a while without an answer, the oldest packet is retransmitted alone (a
 * probe). Neither uses up retries. There are no probes if the acknowledgement timer never expires,
 * or expires so soon that it finds such losses itself.
 *
 * The time before a probe is measured, because a network may be emulated, and a peer may sleep. One
 * packet at a time is timed from its transmission to its acknowledgement, except packets that were
 * sent twice, because nobody knows which transmission the answer is to (Karn). A probe is timed
 * too: an answer takes at least that long, whichever transmission it is to. If a probe is sent
 * before anything was measured, the next one waits twice as long, until something is measured. Then
 * an answer to an older packet is also used, because on a network with many losses hardly any
 * packet is acknowledged before something is retransmitted. Later a probe alone is no reason to
 * wait longer, because most of them are for lost packets.
 *
 * A SACK-capable peer (LOSS_PEER_SACK) needs no such waiting: its answer to
 * a probe shows all that is missing, and a probe that was not needed costs one packet. So the
 * retransmission timer waits for it one and a half times as long as an answer took, from the newest
 * packet on, and at least a third of that from the newest answer on. It doubles that time with each
 * probe in a row. If the path becomes longer, all probes are too early; after a few, the answer to
 * a packet is measured although it was sent twice.
 *
 * A retry is used up only by a packet that left and was not acknowledged before the timer expired,
 * which may have run before for the same loss. A packet that
 * must be sent again may have to wait: for the pacer (transport/pacer.h), or for a page that is not
 * in memory. Until it leaves, the peer has nothing to answer, so the timers pause. Then they go on
 * with the time that was left, so that a loss that is reported again and again still ends. A port
 * that takes no packets is no reason to pause: it counts as a peer that does not answer. Unless it
 * knows that its other end has not taken what was sent (transport/backlog.h): then the timer is
 * restarted. An expired timer is excused if the peer was perhaps not asked for an answer, because
 * the packet that would have asked waits for a page.
 *
 * A PSN sequence NAK, and a response that shows that an earlier one was lost (implied NAK), cause a
 * retransmission at once. They use up no retry, but do not restart the timer either: a loss that is
 * reported again and again, as on a network that reorders and duplicates, ends when the timer
 * expires. An acknowledgement that advances restores all retries. An RNR NAK restores retry_cnt,
 * and uses up one RNR retry.
 */
#ifndef TRANSPORT_RECOVERY_H
#define TRANSPORT_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

#define RECOVERY_NEVER	     UINT64_MAX
#define RECOVERY_RNR_FOREVER 7 /* rnr_retry: no limit */

/* Time of the retransmission timer before a selective retransmission was measured; then its least
 * and most time. */
#define RECOVERY_RETRANSMIT_NS	   UINT64_C(1000000)
#define RECOVERY_RETRANSMIT_MIN_NS UINT64_C(20000)
#define RECOVERY_RETRANSMIT_MAX_NS UINT64_C(100000000)
/* Least time without an answer before a probe, because peers may be slow. */
#define RECOVERY_PROBE_MIN_NS UINT64_C(100000)
/* Least time without an answer before a probe to a SACK-capable peer. */
#define RECOVERY_SACK_PROBE_MIN_NS UINT64_C(10000)
/* No probes are sent if the acknowledgement timer is not longer than this many waits for one. */
#define RECOVERY_PROBE_WAITS 4
/* The retransmission timer is this many times the measured duration of a selective retransmission;
 * the wait before a probe is this many times the measured duration until an answer. */
#define RECOVERY_RETRANSMIT_FACTOR 4
/* A slower answer replaces the measured duration; a faster one reduces it by the difference,
 * divided by this. */
#define RECOVERY_SRTT_PART 4
/* A SACK-capable peer: after so many probes in a row that ended the measurement of their packet,
 * and no measurement since, the path has become longer. */
#define RECOVERY_PROBED_MAX 4
/* The retransmission timer doubles at most this many times. */
#define RECOVERY_RETRANSMIT_DOUBLINGS 10
/* Least time of a restarted acknowledgement timer. */
#define RECOVERY_DEFER_MIN_NS UINT64_C(1000000)

enum recovery_state {
	RECOVERY_SMOOTH,    /* the newest acknowledgement was progress */
	RECOVERY_RESENDING, /* retransmitting since the last progress: further reports of the same
			       loss are ignored */
	RECOVERY_RNR_WAIT,  /* the peer was not ready: waiting for its timer */
	RECOVERY_PAUSED,    /* the oldest packet must be sent again, and may not leave yet: no timer
			       runs (recovery_pause) */
};

/* The event that is timed since since_ns. */
enum recovery_timed {
	RECOVERY_TIMED_NOTHING,
	RECOVERY_TIMED_PACKET,	       /* a packet that was sent once, until its acknowledgement */
	RECOVERY_TIMED_PROBE,	       /* a probe, until its acknowledgement */
	RECOVERY_TIMED_RETRANSMISSION, /* a selective retransmission, until its first answer */
};

/* The answer that must come before retransmit_ns. */
enum recovery_waits_for {
	RECOVERY_FOR_RETRANSMISSION, /* the answer to a selective retransmission */
	RECOVERY_FOR_ANSWER,	     /* any answer: a probe follows */
};

struct recovery {
	/* attributes of the queue pair */
	uint64_t timeout_ns; /* 0: the acknowledgement timer never expires */
	uint8_t retry_cnt;
	uint8_t rnr_retry;

	uint8_t retries_left;
	uint8_t rnr_left;
	enum recovery_state state;
	uint64_t deadline_ns; /* deadline of the running timer, or RECOVERY_NEVER */

	uint64_t retransmit_ns; /* deadline of the retransmission timer, or RECOVERY_NEVER */
	uint64_t since_ns;	/* when the timed packet was sent, or the retransmission began */
	union {
		uint64_t sent_ns; /* time of the newest engine poll that sent packets */
		uint64_t rest_ns; /* in RECOVERY_PAUSED: what the acknowledgement timer has left */
	};
	uint8_t retransmit_tries; /* how often its timer has expired */
	uint8_t waits_for;	  /* enum recovery_waits_for */
	uint8_t timed;		  /* enum recovery_timed */
	bool answered;	   /* a packet was timed that is not a probe, or had an answer before it */
	bool sack_capable; /* the peer sends selective acknowledgements */
	uint8_t probed;	   /* first probes of a packet since the last measurement; at most
			      RECOVERY_PROBED_MAX */
	/* Valid only while a packet or probe is timed, which ends when una passes it
	 * (recovery_answered): una <= timed_psn < top. */
	struct psn timed_psn;
	/* The next three times are at most twice RECOVERY_RETRANSMIT_MAX_NS. */
	uint32_t srtt_ns; /* smoothed round trip; it takes a longer one at once; 0: not measured */
	uint32_t min_rtt_ns;	     /* the shortest round trip; UINT32_MAX: not measured */
	uint32_t retransmit_wait_ns; /* first time of a selective retransmission; 0: not measured */
};

/* Return when recovery_expire must be called. */
static inline uint64_t recovery_deadline_ns(const struct recovery *recovery)
{
	return recovery->retransmit_ns < recovery->deadline_ns ? recovery->retransmit_ns
							       : recovery->deadline_ns;
}

/** Return to the start: no timer, all retries. The attributes stay. */
void recovery_reset(struct recovery *recovery);

/** Set the acknowledgement timer's length. A paused timer gets all of it. */
void recovery_set_timeout(struct recovery *recovery, uint64_t timeout_ns);

/** Note that a packet was sent: start the acknowledgement timer unless it runs, or let paused
 * timers go on. */
void recovery_sent(struct recovery *recovery, uint64_t now_ns);

/** Note that the oldest packet must be sent again, and that nothing could leave in this engine
 * poll. No answer is due: the timers stand still until the next packet leaves. */
void recovery_pause(struct recovery *recovery, uint64_t now_ns);

/** Let paused timers go on: the oldest packet has left, or need not be sent again any more. */
void recovery_unpause(struct recovery *recovery, uint64_t now_ns);

/**
 * Note that an acknowledgement has advanced.
 *
 * @param outstanding
 *   Packets are still unacknowledged.
 */
void recovery_progress(struct recovery *recovery, uint64_t now_ns, bool outstanding);

/** Note that packets up to `last` were sent, and that one for the first time: it may be timed. */
static inline void recovery_time(struct recovery *recovery, struct psn last, uint64_t now_ns)
{
	if (recovery->timed != RECOVERY_TIMED_NOTHING || recovery->waits_for != RECOVERY_FOR_ANSWER)
		return;
	recovery->timed = RECOVERY_TIMED_PACKET;
	recovery->timed_psn = last;
	recovery->since_ns = now_ns;
}

/** Note that a probe is sent: the packet `una`, once more. */
void recovery_probe(struct recovery *recovery, struct psn una, uint64_t now_ns);

/**
 * Note that a probe is sent to a SACK-capable peer: `una` is the oldest packet.
 *
 * A probe ends the measurement of its packet, and probes that are always too early end all of them.
 * So until a packet was measured, time the answer to the probe. Later most probes are for lost
 * packets. But if RECOVERY_PROBED_MAX follow each other without a measurement, the path has become
 * longer: time the answer from the newest packet that was sent before the probe. `una` may be
 * older, so this is the least that a round trip can take.
 */
void recovery_probe_sack_peer(struct recovery *recovery, struct psn una, uint64_t now_ns);

/** Note that everything before `una` is acknowledged; call it before recovery_progress. */
void recovery_answered(struct recovery *recovery, struct psn una, uint64_t now_ns);

/** Note that the timed packet has come, although something before it is missing. */
void recovery_came(struct recovery *recovery, uint64_t now_ns);

/** Note that the timed packet is lost: it is not timed any more. */
static inline void recovery_untimed(struct recovery *recovery)
{
	recovery->timed = RECOVERY_TIMED_NOTHING;
}

/** Note that the packets [from, to) were sent again: an answer to them is not timed, because nobody
 * knows which transmission it is to. */
static inline void recovery_sent_again(struct recovery *recovery, struct psn from, struct psn to)
{
	if (recovery->timed == RECOVERY_TIMED_PACKET && !psn_before(recovery->timed_psn, from) &&
	    psn_before(recovery->timed_psn, to))
		recovery_untimed(recovery);
}

/** Note an answer of a SACK-capable peer: wait for the next one. */
void recovery_told(struct recovery *recovery, uint64_t now_ns);

/** Note that an answer cannot be stored yet: nothing is sent or received, and no timer runs, except
 * that of a peer that was not ready. */
void recovery_hold(struct recovery *recovery);

/** Note that the answer can be stored now: it must be requested again. */
void recovery_release(struct recovery *recovery, uint64_t now_ns);

/** Stop timing a selective retransmission: its first answer is not known to be one. */
static inline void recovery_unmeasured(struct recovery *recovery)
{
	if (recovery->timed == RECOVERY_TIMED_RETRANSMISSION)
		recovery->timed = RECOVERY_TIMED_NOTHING;
}

/** Stop all timers: nothing is in flight. */
static inline void recovery_idle(struct recovery *recovery)
{
	recovery->deadline_ns = RECOVERY_NEVER;
	recovery->retransmit_ns = RECOVERY_NEVER;
}

/** Note that a loss was reported: everything behind it is retransmitted. */
void recovery_lost(struct recovery *recovery, uint64_t now_ns);

/** Note that a selective retransmission begins, or continues after its timer served a probe. */
void recovery_retransmit(struct recovery *recovery, uint64_t now_ns, bool begins);

/** Note that a selective retransmission has ended. */
void recovery_retransmitted(struct recovery *recovery, uint64_t now_ns);

/** Process an RNR NAK with this timer code. Return false if no RNR retry is left. */
bool recovery_rnr(struct recovery *recovery, uint8_t timer_code, uint64_t now_ns);

/** Return true if the acknowledgement timer has expired: recovery_expire would use up a retry. */
static inline bool recovery_is_over(const struct recovery *recovery, uint64_t now_ns)
{
	return now_ns >= recovery->deadline_ns && recovery->state != RECOVERY_RNR_WAIT;
}

/** Probe at once: packets reach the peer again, after a time in which none could, and the time
 * between two probes has doubled again and again. No retry is used up. */
void recovery_hasten(struct recovery *recovery, uint64_t now_ns);

/** Restart an expired acknowledgement timer, because its time does not count (transport/backlog.h).
 */
void recovery_defer(struct recovery *recovery, uint64_t now_ns);

/* The action that recovery_expire asks for. */
enum recovery_verdict {
	RECOVERY_WAIT,	     /* no deadline has come */
	RECOVERY_RESEND,     /* the acknowledgement timer expired: go back */
	RECOVERY_RNR_OVER,   /* the RNR timer expired: go back; nothing was lost */
	RECOVERY_GIVE_UP,    /* no retry left */
	RECOVERY_RETRANSMIT, /* the retransmission timer expired: send the selective retransmission
				again, or a probe */
};

/** Process the time. If `excused`, an expired acknowledgement timer uses up no retry. In
 * RECOVERY_PAUSED nothing expires. */
enum recovery_verdict recovery_expire(struct recovery *recovery, bool excused, uint64_t now_ns);

#endif
