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

#define RECOVERY_NEVER	     UINT64_MAX
#define RECOVERY_RNR_FOREVER 7 /* rnr_retry: no limit */

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

	enum recovery_state state;
	uint8_t retries_left;
	uint8_t rnr_left;
	uint64_t deadline_ns; /* of the timer that runs; RECOVERY_NEVER when none does */
};

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

/** A loss was reported: what follows is sent again. */
void recovery_lost(struct recovery *recovery, uint64_t now_ns);

/** An RNR NAK came with this timer code. false when no RNR retry was left: give up. */
bool recovery_rnr(struct recovery *recovery, uint8_t timer_code, uint64_t now_ns);

/* What to do when recovery_expire is called. */
enum recovery_verdict {
	RECOVERY_WAIT,	   /* the deadline is not reached */
	RECOVERY_RESEND,   /* the acknowledgement timer ran out: send again */
	RECOVERY_RNR_OVER, /* the RNR timer ran out: send again, nothing was lost */
	RECOVERY_GIVE_UP,  /* no retry left */
};

/** Time has passed. */
enum recovery_verdict recovery_expire(struct recovery *recovery, uint64_t now_ns);

#endif
