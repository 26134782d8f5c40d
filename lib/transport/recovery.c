/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides when a requester retransmits, and when it gives up: timers and retry counters. */
#include "transport/recovery.h"

#include <rte_branch_prediction.h>

#include "wire/headers.h"

static uint64_t recovery_wait_ns(const struct recovery *recovery)
{
	return recovery->retransmit_wait_ns != 0 ? recovery->retransmit_wait_ns
						 : RECOVERY_RETRANSMIT_NS;
}

/* Peers may be slow: never probe sooner than the least time. */
static uint64_t recovery_probe_wait_ns(const struct recovery *recovery)
{
	uint64_t wait_ns = recovery_wait_ns(recovery);

	if (recovery->sack_capable && recovery->srtt_ns != 0) {
		wait_ns = recovery->srtt_ns + recovery->srtt_ns / 2;
		return wait_ns < RECOVERY_SACK_PROBE_MIN_NS ? RECOVERY_SACK_PROBE_MIN_NS : wait_ns;
	}
	if (wait_ns < RECOVERY_PROBE_MIN_NS)
		wait_ns = RECOVERY_PROBE_MIN_NS;
	if (wait_ns < RECOVERY_RETRANSMIT_FACTOR * recovery->srtt_ns)
		wait_ns = RECOVERY_RETRANSMIT_FACTOR * recovery->srtt_ns;
	return wait_ns < RECOVERY_RETRANSMIT_MAX_NS ? wait_ns : RECOVERY_RETRANSMIT_MAX_NS;
}

/* Return when a probe is due. A SACK-capable peer answers everything at once: from its newest
 * answer on less time is enough, if the newest packet has had its time. */
static uint64_t recovery_probe_due_ns(const struct recovery *recovery, uint64_t wait_ns,
				      uint64_t now_ns)
{
	const uint64_t sent_ns = recovery->sent_ns + wait_ns;
	const uint64_t answered_ns = now_ns + wait_ns / 3;

	if (!recovery->sack_capable || recovery->srtt_ns == 0)
		return now_ns + wait_ns;
	return sent_ns > answered_ns ? sent_ns : answered_ns;
}

static void recovery_arm_probe(struct recovery *recovery, uint64_t now_ns)
{
	const uint64_t wait_ns = recovery_probe_wait_ns(recovery);

	recovery->waits_for = RECOVERY_FOR_ANSWER;
	recovery->retransmit_tries = 0;
	recovery->retransmit_ns = RECOVERY_PROBE_WAITS * wait_ns < recovery->timeout_ns
					  ? recovery_probe_due_ns(recovery, wait_ns, now_ns)
					  : RECOVERY_NEVER;
}

static void recovery_arm_retransmit(struct recovery *recovery, uint64_t now_ns)
{
	const uint64_t wait_ns = recovery->sack_capable ? recovery_probe_wait_ns(recovery)
							: recovery_wait_ns(recovery);

	recovery->retransmit_ns = now_ns + (wait_ns << recovery->retransmit_tries);
}

static void recovery_arm(struct recovery *recovery, uint64_t now_ns)
{
	recovery->deadline_ns =
		recovery->timeout_ns == 0 ? RECOVERY_NEVER : now_ns + recovery->timeout_ns;
	/* If the acknowledgement timer is never used, each sent packet comes here; do not restart
	 * the timer of a selective retransmission. */
	if (recovery->retransmit_ns == RECOVERY_NEVER)
		recovery_arm_probe(recovery, now_ns);
}

/* Return to the normal state: all retry counters full, all timers off. */
static void recovery_calm(struct recovery *recovery)
{
	recovery->state = RECOVERY_SMOOTH;
	recovery->retries_left = recovery->retry_cnt;
	recovery->rnr_left = recovery->rnr_retry;
	recovery->deadline_ns = RECOVERY_NEVER;
	recovery->retransmit_ns = RECOVERY_NEVER;
}

void recovery_reset(struct recovery *recovery)
{
	recovery_calm(recovery);
	recovery->timed = RECOVERY_TIMED_NOTHING;
	recovery->answered = false;
	recovery->sack_capable = false;
	recovery->probed = 0;
	recovery->srtt_ns = 0;
	recovery->min_rtt_ns = UINT32_MAX;
}

void recovery_set_timeout(struct recovery *recovery, uint64_t timeout_ns)
{
	if (recovery->state == RECOVERY_PAUSED && timeout_ns != recovery->timeout_ns)
		recovery->rest_ns = timeout_ns;
	recovery->timeout_ns = timeout_ns;
}

void recovery_unpause(struct recovery *recovery, uint64_t now_ns)
{
	const uint64_t rest_ns = recovery->rest_ns;

	if (recovery->state != RECOVERY_PAUSED)
		return;
	recovery->state = RECOVERY_RESENDING;
	recovery->sent_ns = now_ns;
	recovery->deadline_ns = recovery->timeout_ns == 0 ? RECOVERY_NEVER : now_ns + rest_ns;
	if (recovery->timed == RECOVERY_TIMED_RETRANSMISSION)
		recovery->since_ns = now_ns;
	if (recovery->waits_for == RECOVERY_FOR_RETRANSMISSION)
		recovery_arm_retransmit(recovery, now_ns);
	else
		recovery_arm_probe(recovery, now_ns);
}

void recovery_pause(struct recovery *recovery, uint64_t now_ns)
{
	const bool counts = recovery->deadline_ns != RECOVERY_NEVER;

	if (recovery->state == RECOVERY_RNR_WAIT || recovery->state == RECOVERY_PAUSED ||
	    recovery_deadline_ns(recovery) == RECOVERY_NEVER || now_ns >= recovery->deadline_ns)
		return;
	recovery->state = RECOVERY_PAUSED;
	recovery->rest_ns = counts ? recovery->deadline_ns - now_ns : recovery->timeout_ns;
	recovery_idle(recovery);
}

void recovery_sent(struct recovery *recovery, uint64_t now_ns)
{
	if (recovery->deadline_ns == RECOVERY_NEVER)
		recovery_unpause(recovery, now_ns);
	recovery->sent_ns = now_ns;
	if (recovery->deadline_ns == RECOVERY_NEVER)
		recovery_arm(recovery, now_ns);
}

void recovery_answered(struct recovery *recovery, struct psn una, uint64_t now_ns)
{
	/* No probe waits longer than this: a peer that did not answer for longer counts as this
	 * slow. */
	uint64_t took_ns = RECOVERY_RETRANSMIT_MAX_NS / RECOVERY_RETRANSMIT_FACTOR;
	bool is_probe;

	if (recovery->timed != RECOVERY_TIMED_PACKET && recovery->timed != RECOVERY_TIMED_PROBE)
		return;
	is_probe = recovery->timed == RECOVERY_TIMED_PROBE;
	if (took_ns > now_ns - recovery->since_ns)
		took_ns = now_ns - recovery->since_ns;
	/* No answer was measured before. An answer to an earlier transmission is better than a
	 * guess. */
	if (unlikely(!recovery->answered && !is_probe)) {
		recovery->answered = true;
		recovery->srtt_ns = (uint32_t)took_ns;
	}
	if (likely(!psn_before(recovery->timed_psn, una)))
		return;
	recovery->timed = RECOVERY_TIMED_NOTHING;
	recovery->probed = 0;
	if (took_ns > recovery->srtt_ns)
		recovery->srtt_ns = (uint32_t)took_ns;
	else if (!is_probe)
		recovery->srtt_ns -= (recovery->srtt_ns - (uint32_t)took_ns) / RECOVERY_SRTT_PART;
	if (took_ns < recovery->min_rtt_ns && !is_probe)
		recovery->min_rtt_ns = (uint32_t)took_ns;
}

void recovery_came(struct recovery *recovery, uint64_t now_ns)
{
	recovery_answered(recovery, psn_add(recovery->timed_psn, 1), now_ns);
}

void recovery_told(struct recovery *recovery, uint64_t now_ns)
{
	if (recovery->state != RECOVERY_RNR_WAIT && recovery->deadline_ns != RECOVERY_NEVER)
		recovery_arm_probe(recovery, now_ns);
}

void recovery_probe(struct recovery *recovery, struct psn una, uint64_t now_ns)
{
	if (!recovery->answered)
		recovery->srtt_ns = (uint32_t)(2 * recovery_probe_wait_ns(recovery) /
					       RECOVERY_RETRANSMIT_FACTOR);
	recovery->waits_for = RECOVERY_FOR_RETRANSMISSION;
	recovery->timed = RECOVERY_TIMED_PROBE;
	recovery->timed_psn = una;
	recovery->since_ns = now_ns;
}

void recovery_probe_sack_peer(struct recovery *recovery, struct psn una, uint64_t now_ns)
{
	const bool measured = recovery->min_rtt_ns != UINT32_MAX;

	if (recovery->retransmit_tries > 1)
		return;
	if (recovery->probed < RECOVERY_PROBED_MAX)
		recovery->probed++;
	if (measured && recovery->probed < RECOVERY_PROBED_MAX)
		return;
	recovery->timed = RECOVERY_TIMED_PROBE;
	recovery->timed_psn = una;
	recovery->since_ns = measured ? recovery->sent_ns : now_ns;
	/* The shortest round trip was that of the old path. */
	recovery->min_rtt_ns = UINT32_MAX;
}

void recovery_progress(struct recovery *recovery, uint64_t now_ns, bool outstanding)
{
	const uint64_t rnr_deadline_ns = recovery->deadline_ns;

	if (unlikely(recovery->state == RECOVERY_PAUSED))
		recovery_unpause(recovery, now_ns);
	if (recovery->state == RECOVERY_RNR_WAIT) {
		/* A late answer to an older packet does not end the wait of an RNR NAK. */
		recovery_calm(recovery);
		recovery->state = RECOVERY_RNR_WAIT;
		recovery->deadline_ns = rnr_deadline_ns;
		return;
	}
	recovery_calm(recovery);
	if (outstanding)
		recovery_arm(recovery, now_ns);
}

void recovery_lost(struct recovery *recovery, uint64_t now_ns)
{
	recovery_sent(recovery, now_ns);
	recovery->state = RECOVERY_RESENDING;
	recovery->timed = RECOVERY_TIMED_NOTHING;
}

void recovery_hold(struct recovery *recovery)
{
	recovery->timed = RECOVERY_TIMED_NOTHING;
	if (recovery->state != RECOVERY_RNR_WAIT)
		recovery_idle(recovery);
}

void recovery_release(struct recovery *recovery, uint64_t now_ns)
{
	if (recovery->state != RECOVERY_RNR_WAIT)
		recovery_lost(recovery, now_ns);
}

/* Return true if a SACK-capable peer has had no time to answer the newest packets: its timer is
 * restarted only now, and not with each packet. */
static bool recovery_is_early(struct recovery *recovery, uint64_t now_ns)
{
	uint64_t due_ns;

	if (!recovery->sack_capable || recovery->waits_for != RECOVERY_FOR_ANSWER ||
	    recovery->retransmit_tries > 0)
		return false;
	due_ns = recovery->sent_ns + recovery_probe_wait_ns(recovery);
	if (due_ns <= now_ns)
		return false;
	recovery->retransmit_ns = due_ns;
	return true;
}

/* Note the first answer to a selective retransmission. If it was sent twice, it is unknown which
 * transmission the answer is to. */
static void recovery_measure(struct recovery *recovery, uint64_t now_ns)
{
	uint64_t wait_ns = RECOVERY_RETRANSMIT_FACTOR * (now_ns - recovery->since_ns);

	if (recovery->timed != RECOVERY_TIMED_RETRANSMISSION)
		return;
	recovery->timed = RECOVERY_TIMED_NOTHING;
	if (wait_ns < RECOVERY_RETRANSMIT_MIN_NS)
		wait_ns = RECOVERY_RETRANSMIT_MIN_NS;
	if (wait_ns > RECOVERY_RETRANSMIT_MAX_NS)
		wait_ns = RECOVERY_RETRANSMIT_MAX_NS;
	recovery->retransmit_wait_ns = (uint32_t)wait_ns;
}

void recovery_retransmit(struct recovery *recovery, uint64_t now_ns, bool begins)
{
	if (begins) {
		recovery->since_ns = now_ns;
		recovery->retransmit_tries = 0;
		recovery_lost(recovery, now_ns);
		recovery->timed = RECOVERY_TIMED_RETRANSMISSION;
	} else {
		recovery_measure(recovery, now_ns);
		recovery->timed = RECOVERY_TIMED_NOTHING;
	}
	recovery->waits_for = RECOVERY_FOR_RETRANSMISSION;
	recovery_arm_retransmit(recovery, now_ns);
}

void recovery_retransmitted(struct recovery *recovery, uint64_t now_ns)
{
	recovery_measure(recovery, now_ns);
	recovery->retransmit_ns = RECOVERY_NEVER;
	if (recovery->deadline_ns != RECOVERY_NEVER)
		recovery_arm_probe(recovery, now_ns);
}

bool recovery_rnr(struct recovery *recovery, uint8_t timer_code, uint64_t now_ns)
{
	/* The peer reports the same loss again, because nothing was sent since the first report. */
	if (recovery->state == RECOVERY_RNR_WAIT)
		return true;
	if (recovery->rnr_retry != RECOVERY_RNR_FOREVER) {
		if (recovery->rnr_left == 0)
			return false;
		recovery->rnr_left--;
	}
	/* The peer answers, so restore the retries for a peer that does not. */
	recovery->retries_left = recovery->retry_cnt;
	recovery->state = RECOVERY_RNR_WAIT;
	recovery->timed = RECOVERY_TIMED_NOTHING;
	recovery->deadline_ns = now_ns + rnr_timer_ns(timer_code);
	recovery->retransmit_ns = RECOVERY_NEVER;
	return true;
}

void recovery_hasten(struct recovery *recovery, uint64_t now_ns)
{
	if (recovery->state == RECOVERY_RNR_WAIT || recovery->retransmit_ns == RECOVERY_NEVER)
		return;
	recovery->retransmit_tries = 0;
	if (now_ns < recovery->retransmit_ns)
		recovery->retransmit_ns = now_ns;
}

void recovery_defer(struct recovery *recovery, uint64_t now_ns)
{
	recovery->deadline_ns =
		now_ns + (recovery->timeout_ns > RECOVERY_DEFER_MIN_NS ? recovery->timeout_ns
								       : RECOVERY_DEFER_MIN_NS);
}

enum recovery_verdict recovery_expire(struct recovery *recovery, bool excused, uint64_t now_ns)
{
	if (now_ns < recovery->deadline_ns) {
		if (now_ns < recovery->retransmit_ns || recovery_is_early(recovery, now_ns))
			return RECOVERY_WAIT;
		if (recovery->retransmit_tries < RECOVERY_RETRANSMIT_DOUBLINGS)
			recovery->retransmit_tries++;
		/* recovery_probe_sack_peer counts from the first probe on. */
		if (!recovery->sack_capable || recovery->timed != RECOVERY_TIMED_PROBE)
			recovery->timed = RECOVERY_TIMED_NOTHING;
		recovery_arm_retransmit(recovery, now_ns);
		return RECOVERY_RETRANSMIT;
	}
	recovery->retransmit_ns = RECOVERY_NEVER;
	if (recovery->state == RECOVERY_RNR_WAIT) {
		recovery->state = RECOVERY_RESENDING;
		recovery->deadline_ns = RECOVERY_NEVER;
		return RECOVERY_RNR_OVER;
	}
	if (!excused) {
		if (recovery->retries_left == 0)
			return RECOVERY_GIVE_UP;
		recovery->retries_left--;
	}
	recovery->state = RECOVERY_RESENDING;
	recovery->timed = RECOVERY_TIMED_NOTHING;
	recovery_arm(recovery, now_ns);
	return RECOVERY_RESEND;
}
