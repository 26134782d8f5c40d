/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a requester sends again, and when it gives up (IBTA 9.7.5.2 and 9.7.6). One deadline serves
 * two timers:
 *
 * - the acknowledgement timer runs while packets are unacknowledged. It starts with the first of
 * them, and anew whenever an acknowledgement moves on. When it runs out everything unacknowledged
 * is sent again, and a retry is used up.
 * - the RNR timer runs instead after an RNR NAK. Nothing is sent until it runs out.
 *
 * A third has a deadline of its own: the repair timer runs while something that was missing is sent
 * again by itself (transport/flight.h). When it runs out, the repair was lost too, and goes out
 * once more. It waits a few times as long as the last repair took, and twice as long each time.
 * While nothing is known to be missing it finds the losses that nothing came behind: after a while
 * without an answer the oldest packet is sent again alone (a probe). Neither uses up retries. There
 * are no probes where the acknowledgement timer is as short, or never runs out.
 *
 * How long a probe has to wait is measured: a wire may be emulated, and a peer sleep. One packet at
 * a time is timed from when it is sent to its acknowledgement, but for those that were sent twice,
 * of which nobody knows to which sending the answer is (Karn). A probe is timed as well: answers
 * take no less than that, whichever sending it is to. Where one goes out before anything could be
 * measured, the next one waits twice as long, until something is; what comes meanwhile for older
 * packets will do, as on a wire that loses much hardly any packet is acknowledged before something
 * is sent again. Later no probe is a reason to wait longer by itself: there, most of them are for
 * what was lost.
 *
 * A PSN sequence NAK, and a response that shows that an earlier one was lost (implied NAK), send
 * again at once. They use up no retry, but do not start the timer anew either: a loss that is
 * reported over and over, as on a network that reorders and repeats, ends when the timer says so.
 * Retries are given back whenever an acknowledgement moves on; an RNR NAK gives back those that
 * are not its own.
 */
#ifndef TRANSPORT_RECOVERY_H
#define TRANSPORT_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

#define RECOVERY_NEVER	     UINT64_MAX
#define RECOVERY_RNR_FOREVER 7 /* rnr_retry: no limit */

/* How long a repair may take, before one was measured, at least and at most. */
#define RECOVERY_REPAIR_NS     UINT64_C(1000000)
#define RECOVERY_REPAIR_MIN_NS UINT64_C(20000)
#define RECOVERY_REPAIR_MAX_NS UINT64_C(100000000)
/* How long without an answer before a probe, at least: peers may be slow. */
#define RECOVERY_PROBE_MIN_NS UINT64_C(100000)
/* Acknowledgement timers of fewer such waits need no probes. */
#define RECOVERY_PROBE_WAITS 4
/* A measured one times this; also a measured answer, for a probe. */
#define RECOVERY_REPAIR_FACTOR 4
/* Slower answers count at once, and faster ones by this part. */
#define RECOVERY_ANSWER_PART 4
/* Its wait doubles so often, at most. */
#define RECOVERY_REPAIR_DOUBLINGS 10

enum recovery_state {
	RECOVERY_SMOOTH,    /* the newest acknowledgement was progress */
	RECOVERY_RESENDING, /* sending again since the last progress: further signs of the same loss
			       are not news */
	RECOVERY_RNR_WAIT,  /* the peer was not ready: waiting for its timer */
};

struct recovery {
	/* attributes of the queue pair */
	uint64_t timeout_ns; /* 0: the acknowledgement timer never runs out */
	uint8_t retry_cnt;
	uint8_t rnr_retry;

	uint8_t retries_left;
	uint8_t rnr_left;
	enum recovery_state state;
	uint64_t deadline_ns; /* of the timer that runs; RECOVERY_NEVER when none does */

	uint64_t repair_ns;	 /* deadline of the repair timer, or RECOVERY_NEVER */
	uint64_t since_ns;	 /* the repair began, or what is timed was sent */
	uint64_t answer_ns;	 /* what an answer takes; 0: none was measured */
	uint64_t repair_wait_ns; /* that the first wait of a repair takes; 0: none was measured */
	uint8_t repair_tries;	 /* waits of this repair that ran out */
	bool measured;	  /* the time until this repair's first answer is known, or cannot be */
	bool probing;	  /* repair_ns is for a probe */
	bool timing;	  /* a packet is timed, */
	bool probed;	  /* which is a probe */
	bool answered;	  /* one was timed that is no probe, or had an answer before it */
	bool page_absent; /* what una stands for was answered, and a page that the answer belongs
			     into is not in memory: answers are dropped until it is */
	struct psn timed; /* only while `timing`, which ends when una passes it
			     (recovery_answered): una <= timed < top */
};

/* When recovery_expire wants to be called. */
static inline uint64_t recovery_deadline_ns(const struct recovery *recovery)
{
	return recovery->repair_ns < recovery->deadline_ns ? recovery->repair_ns
							   : recovery->deadline_ns;
}

/** Back to the start: no timer, all retries. The attributes stay. */
void recovery_reset(struct recovery *recovery);

/** A packet was sent: start the acknowledgement timer unless it runs. */
void recovery_sent(struct recovery *recovery, uint64_t now_ns);

/**
 * An acknowledgement moved on.
 *
 * @param outstanding
 *   Packets are still unacknowledged.
 */
void recovery_progress(struct recovery *recovery, uint64_t now_ns, bool outstanding);

/** Packets up to `last` were sent, and that one for the first time: it may be timed. */
static inline void recovery_time(struct recovery *recovery, struct psn last, uint64_t now_ns)
{
	if (recovery->timing || !recovery->probing)
		return;
	recovery->timing = true;
	recovery->probed = false;
	recovery->timed = last;
	recovery->since_ns = now_ns;
}

/** A probe is sent: the packet `una`, once more. */
void recovery_probe(struct recovery *recovery, struct psn una, uint64_t now_ns);

/** Everything before `una` is acknowledged; comes before recovery_progress. */
void recovery_answered(struct recovery *recovery, struct psn una, uint64_t now_ns);

/** An answer cannot be stored yet: nothing is sent or taken in, and no timer runs but that of a
 * peer that was not ready. */
void recovery_hold(struct recovery *recovery);

/** It can be, by now: it is to be asked for again. */
void recovery_release(struct recovery *recovery, uint64_t now_ns);

/** Nothing is in flight: no timer runs. */
static inline void recovery_idle(struct recovery *recovery)
{
	recovery->deadline_ns = RECOVERY_NEVER;
	recovery->repair_ns = RECOVERY_NEVER;
}

/** A loss was reported: what follows is sent again. */
void recovery_lost(struct recovery *recovery, uint64_t now_ns);

/** Something is sent again by itself. Also while that goes on, where the timer is for a probe. */
void recovery_repair(struct recovery *recovery, uint64_t now_ns, bool begins);

/** A repair has done its work. */
void recovery_repaired(struct recovery *recovery, uint64_t now_ns);

/** An RNR NAK came with this timer code. false when no RNR retry was left: give up. */
bool recovery_rnr(struct recovery *recovery, uint8_t timer_code, uint64_t now_ns);

/* What to do when recovery_expire is called. */
enum recovery_verdict {
	RECOVERY_WAIT,	   /* the deadline is not reached */
	RECOVERY_RESEND,   /* the acknowledgement timer ran out: send again */
	RECOVERY_RNR_OVER, /* the RNR timer ran out: send again, nothing was lost */
	RECOVERY_GIVE_UP,  /* no retry left */
	RECOVERY_REPAIR,   /* the repair timer ran out: send the repair again, or a probe */
};

/** Time has passed. */
enum recovery_verdict recovery_expire(struct recovery *recovery, uint64_t now_ns);

#endif
