/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/recovery.c: each sentence of recovery.h about timers and counters. */
#include <stddef.h>
#include <stdint.h>

#include "transport/recovery.h"
#include "test.h"

#define TIMEOUT_NS 1000u
#define NOW_NS	   UINT64_C(5000000)
#define RNR_CODE   12 /* 0.64 ms */
#define RNR_NS	   640000u

static struct recovery recovery;

static int set_up(TEST_STATE)
{
	recovery = (struct recovery){.timeout_ns = TIMEOUT_NS, .retry_cnt = 3, .rnr_retry = 2};
	recovery_reset(&recovery);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static void expect(enum recovery_state state, uint64_t deadline_ns)
{
	assert_int_equal(recovery.state, state);
	assert_int_equal(recovery.deadline_ns, deadline_ns);
}

TEST(recovery_reset__no_timer_runs_and_all_retries_are_left)
{
	expect(RECOVERY_SMOOTH, RECOVERY_NEVER);
	assert_int_equal(recovery.retries_left, 3);
	assert_int_equal(recovery.rnr_left, 2);
	assert_int_equal(recovery_expire(&recovery, false, UINT64_MAX - 1), RECOVERY_WAIT);
}

TEST(recovery_reset__forgets_the_peer)
{
	const struct recovery fresh = recovery;

	recovery.timed = RECOVERY_TIMED_PACKET;
	recovery.answered = true;
	recovery.sack_capable = true;
	recovery.probed = 1;
	recovery.srtt_ns = 9;
	recovery.min_rtt_ns = 9;
	recovery_reset(&recovery);
	assert_memory_equal(&recovery, &fresh, sizeof(fresh));
}

TEST(recovery_sent__starts_the_timer_with_the_first_packet_only)
{
	recovery_sent(&recovery, NOW_NS);
	expect(RECOVERY_SMOOTH, NOW_NS + TIMEOUT_NS);
	recovery_sent(&recovery, NOW_NS + 10);
	expect(RECOVERY_SMOOTH, NOW_NS + TIMEOUT_NS);
}

TEST(recovery_sent__a_timeout_of_zero_never_runs_out)
{
	recovery.timeout_ns = 0;
	recovery_sent(&recovery, NOW_NS);
	expect(RECOVERY_SMOOTH, RECOVERY_NEVER);
	assert_int_equal(recovery_expire(&recovery, false, UINT64_MAX - 1), RECOVERY_WAIT);
	/* A retransmission that is due does not wait for a timer. */
	recovery_lost(&recovery, NOW_NS);
	expect(RECOVERY_RESENDING, RECOVERY_NEVER);
}

TEST(recovery_progress__starts_the_timer_anew)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_progress(&recovery, NOW_NS + 900, true);
	expect(RECOVERY_SMOOTH, NOW_NS + 900 + TIMEOUT_NS);
}

TEST(recovery_progress__stops_the_timer_when_nothing_is_outstanding)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_progress(&recovery, NOW_NS + 900, false);
	expect(RECOVERY_SMOOTH, RECOVERY_NEVER);
}

TEST(recovery_progress__gives_the_retries_back)
{
	recovery_sent(&recovery, NOW_NS);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + TIMEOUT_NS), RECOVERY_RESEND);
	assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + RNR_NS), RECOVERY_RNR_OVER);
	recovery_progress(&recovery, NOW_NS, true);
	assert_int_equal(recovery.retries_left, 3);
	assert_int_equal(recovery.rnr_left, 2);
	assert_int_equal(recovery.state, RECOVERY_SMOOTH);
}

TEST(recovery_progress__does_not_end_a_wait_for_the_rnr_timer)
{
	recovery_sent(&recovery, NOW_NS);
	assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
	recovery_progress(&recovery, NOW_NS + 5, false);
	expect(RECOVERY_RNR_WAIT, NOW_NS + RNR_NS);
	recovery_progress(&recovery, NOW_NS + 6, true);
	expect(RECOVERY_RNR_WAIT, NOW_NS + RNR_NS);
	assert_int_equal(recovery.rnr_left, 2);
}

TEST(recovery_lost__uses_up_no_retry_and_lets_the_timer_run)
{
	recovery_sent(&recovery, NOW_NS);
	for (uint64_t i = 1; i <= 20; i++)
		recovery_lost(&recovery, NOW_NS + i);
	assert_int_equal(recovery.retries_left, recovery.retry_cnt);
	assert_int_equal(recovery.state, RECOVERY_RESENDING);
	assert_int_equal(recovery.deadline_ns, NOW_NS + TIMEOUT_NS);
}

TEST(recovery_lost__starts_a_timer_that_does_not_run)
{
	recovery_lost(&recovery, NOW_NS);
	assert_int_equal(recovery.deadline_ns, NOW_NS + TIMEOUT_NS);
}

TEST(recovery_release__starts_the_timers_that_were_held)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_time(&recovery, psn_make(7), NOW_NS);
	recovery_hold(&recovery);
	assert_int_equal(recovery.timed, RECOVERY_TIMED_NOTHING);
	assert_int_equal(recovery_deadline_ns(&recovery), RECOVERY_NEVER);
	recovery_release(&recovery, NOW_NS + 10);
	expect(RECOVERY_RESENDING, NOW_NS + 10 + TIMEOUT_NS);
	/* The wait for the RNR timer goes on. */
	assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
	recovery_hold(&recovery);
	recovery_release(&recovery, NOW_NS + 10);
	expect(RECOVERY_RNR_WAIT, NOW_NS + RNR_NS);
}

TEST(recovery_rnr__waits_for_the_peers_time)
{
	recovery_sent(&recovery, NOW_NS);
	assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS + 1));
	expect(RECOVERY_RNR_WAIT, NOW_NS + 1 + RNR_NS);
	/* The acknowledgement timer does not run meanwhile. */
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + TIMEOUT_NS), RECOVERY_WAIT);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + RNR_NS), RECOVERY_WAIT);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + 1 + RNR_NS), RECOVERY_RNR_OVER);
	assert_int_equal(recovery.deadline_ns, RECOVERY_NEVER);
	assert_int_not_equal(recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(recovery.retries_left, 3);
}

TEST(recovery_rnr__gives_the_other_retries_back)
{
	recovery_sent(&recovery, NOW_NS);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + TIMEOUT_NS), RECOVERY_RESEND);
	assert_int_equal(recovery.retries_left, 2);
	assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
	assert_int_equal(recovery.retries_left, 3);
	assert_int_equal(recovery.rnr_left, 1);
}

TEST(recovery_rnr__code_zero_is_the_longest_time)
{
	assert_true(recovery_rnr(&recovery, 0, NOW_NS));
	assert_int_equal(recovery.deadline_ns, NOW_NS + UINT64_C(655360000));
}

TEST(recovery_rnr__gives_up_after_its_own_retries)
{
	for (int i = 0; i < 2; i++) {
		assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
		assert_int_equal(recovery_expire(&recovery, false, NOW_NS + RNR_NS),
				 RECOVERY_RNR_OVER);
	}
	assert_false(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
	assert_int_equal(recovery.retries_left, 3);
}

TEST(recovery_rnr__seven_means_for_ever)
{
	recovery.rnr_retry = 7;
	recovery_reset(&recovery);
	for (int i = 0; i < 1000; i++) {
		assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
		assert_int_equal(recovery_expire(&recovery, false, NOW_NS + RNR_NS),
				 RECOVERY_RNR_OVER);
	}
}

TEST(recovery_rnr__six_means_six_times)
{
	recovery.rnr_retry = 6;
	recovery_reset(&recovery);
	for (int i = 0; i < 6; i++) {
		assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
		assert_int_equal(recovery_expire(&recovery, false, NOW_NS + RNR_NS),
				 RECOVERY_RNR_OVER);
	}
	assert_false(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
}

TEST(recovery_rnr__the_same_news_again_is_none)
{
	for (int i = 0; i < 9; i++)
		assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS + (uint64_t)i));
	expect(RECOVERY_RNR_WAIT, NOW_NS + RNR_NS);
	assert_int_equal(recovery.rnr_left, 1);
}

TEST(recovery_expire__sends_again_until_no_retry_is_left)
{
	uint64_t now_ns = NOW_NS;

	recovery_sent(&recovery, now_ns);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(recovery_expire(&recovery, false, now_ns + TIMEOUT_NS - 1),
				 RECOVERY_WAIT);
		now_ns += TIMEOUT_NS;
		assert_int_equal(recovery_expire(&recovery, false, now_ns), RECOVERY_RESEND);
		expect(RECOVERY_RESENDING, now_ns + TIMEOUT_NS);
	}
	assert_int_equal(recovery_expire(&recovery, false, now_ns + TIMEOUT_NS), RECOVERY_GIVE_UP);
}

TEST(recovery_expire__a_wait_before_its_end_changes_nothing)
{
	struct recovery before;

	recovery_sent(&recovery, NOW_NS);
	before = recovery;
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS), RECOVERY_WAIT);
	assert_memory_equal(&recovery, &before, sizeof(before));
}

TEST(recovery_retransmit__has_a_timer_of_its_own_that_doubles)
{
	uint64_t now_ns = NOW_NS;

	recovery.timeout_ns = UINT64_C(1) << 40;
	recovery_sent(&recovery, NOW_NS);
	recovery_retransmit(&recovery, NOW_NS, true);
	expect(RECOVERY_RESENDING, NOW_NS + recovery.timeout_ns);
	for (int i = 0; i < RECOVERY_RETRANSMIT_DOUBLINGS + 2; i++) {
		const int doublings =
			i < RECOVERY_RETRANSMIT_DOUBLINGS ? i : RECOVERY_RETRANSMIT_DOUBLINGS;

		now_ns += RECOVERY_RETRANSMIT_NS << doublings;
		assert_int_equal(recovery_deadline_ns(&recovery), now_ns);
		assert_int_equal(recovery_expire(&recovery, false, now_ns - 1), RECOVERY_WAIT);
		assert_int_equal(recovery_expire(&recovery, false, now_ns), RECOVERY_RETRANSMIT);
	}
	assert_int_equal(recovery.retries_left, 3);
	expect(RECOVERY_RESENDING, NOW_NS + recovery.timeout_ns);
}

TEST(recovery_retransmit__the_acknowledgement_timer_comes_first)
{
	recovery_retransmit(&recovery, NOW_NS, true);
	assert_int_equal(recovery_deadline_ns(&recovery), NOW_NS + TIMEOUT_NS);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + 2 * RECOVERY_RETRANSMIT_NS),
			 RECOVERY_RESEND);
	assert_int_equal(recovery.retransmit_ns, RECOVERY_NEVER);
}

TEST(recovery_retransmitted__the_next_one_waits_as_long_as_this_one_took)
{
	recovery.timeout_ns = UINT64_C(1) << 40;
	recovery_retransmit(&recovery, NOW_NS, true);
	recovery_retransmitted(&recovery, NOW_NS + 30000);
	/* Packets in flight may be lost, and nothing may report it. */
	assert_int_equal(recovery.waits_for, RECOVERY_FOR_ANSWER);
	assert_int_equal(recovery.retransmit_ns,
			 NOW_NS + 30000 + RECOVERY_RETRANSMIT_FACTOR * 30000);
	recovery_retransmit(&recovery, NOW_NS, true);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + RECOVERY_RETRANSMIT_FACTOR * 30000);
	/* A packet that was sent twice is not measured. */
	assert_int_equal(recovery_expire(&recovery, false, recovery.retransmit_ns),
			 RECOVERY_RETRANSMIT);
	recovery_retransmitted(&recovery, NOW_NS + 900000);
	recovery_retransmit(&recovery, NOW_NS, true);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + RECOVERY_RETRANSMIT_FACTOR * 30000);
	recovery_retransmitted(&recovery, NOW_NS + 1);
	recovery_retransmit(&recovery, NOW_NS, true);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + RECOVERY_RETRANSMIT_MIN_NS);
}

/* If the acknowledgement timer is not used, nothing but a retransmission has a timer. */
TEST(recovery_retransmitted__without_a_timeout_no_timer_is_left)
{
	recovery.timeout_ns = 0;
	recovery_sent(&recovery, NOW_NS);
	recovery_retransmit(&recovery, NOW_NS, true);
	assert_true(recovery_deadline_ns(&recovery) != RECOVERY_NEVER);
	recovery_retransmitted(&recovery, NOW_NS + 10);
	assert_true(recovery_deadline_ns(&recovery) == RECOVERY_NEVER);
}

TEST(recovery_defer__starts_the_timer_anew)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_defer(&recovery, NOW_NS + 10);
	expect(RECOVERY_SMOOTH, NOW_NS + 10 + RECOVERY_DEFER_MIN_NS);
	recovery.timeout_ns = RECOVERY_DEFER_MIN_NS + 1;
	recovery_defer(&recovery, NOW_NS + 10);
	expect(RECOVERY_SMOOTH, NOW_NS + 10 + RECOVERY_DEFER_MIN_NS + 1);
}

TEST(recovery_sent__a_probe_goes_out_long_before_the_timer)
{
	recovery.timeout_ns = UINT64_C(1) << 30;
	recovery_sent(&recovery, NOW_NS);
	assert_int_equal(recovery_deadline_ns(&recovery), NOW_NS + RECOVERY_RETRANSMIT_NS);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + RECOVERY_RETRANSMIT_NS),
			 RECOVERY_RETRANSMIT);
	recovery_probe(&recovery, (struct psn){0}, NOW_NS);
	assert_int_equal(recovery.retries_left, 3);
	/* The peer is slow, so the next retransmission waits longer. */
	assert_int_equal(recovery_deadline_ns(&recovery), NOW_NS + 3 * RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, true);
	assert_int_equal(recovery_deadline_ns(&recovery), NOW_NS + 2 * RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, false);
	assert_int_equal(recovery_deadline_ns(&recovery), RECOVERY_NEVER);
}

#define LAST	    ((struct psn){7})
#define BEHIND_LAST ((struct psn){8})

/* Send the packet LAST, and answer it after this time. */
static void answer_after(uint64_t took_ns)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_time(&recovery, LAST, NOW_NS);
	recovery_answered(&recovery, BEHIND_LAST, NOW_NS + took_ns);
	recovery_progress(&recovery, NOW_NS + took_ns, false);
}

/* Return how long a probe waits now. */
static uint64_t probe_wait_ns(void)
{
	recovery_sent(&recovery, NOW_NS);
	return recovery_deadline_ns(&recovery) - NOW_NS;
}

TEST(recovery_answered__a_probe_waits_for_what_is_usual)
{
	recovery.timeout_ns = UINT64_C(1) << 40;
	answer_after(5 * RECOVERY_RETRANSMIT_NS);
	assert_int_equal(probe_wait_ns(), RECOVERY_RETRANSMIT_FACTOR * 5 * RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, false);
	/* One faster answer does not shorten the time at once. */
	answer_after(1 * RECOVERY_RETRANSMIT_NS);
	assert_int_equal(probe_wait_ns(), RECOVERY_RETRANSMIT_FACTOR * 4 * RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, false);
	for (int i = 0; i < 100; i++)
		answer_after(10);
	assert_int_equal(probe_wait_ns(), RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, false);
	answer_after(UINT64_C(1) << 35);
	assert_int_equal(probe_wait_ns(), RECOVERY_RETRANSMIT_MAX_NS);
	recovery_progress(&recovery, NOW_NS, false);
	/* A long pause of the peer is soon forgotten. */
	for (int i = 0; i < 17; i++)
		answer_after(10);
	assert_int_equal(probe_wait_ns(), RECOVERY_RETRANSMIT_NS);
	recovery_reset(&recovery);
	assert_int_equal(probe_wait_ns(), RECOVERY_RETRANSMIT_NS);
}

TEST(recovery_answered__one_packet_at_a_time_is_timed)
{
	recovery.timeout_ns = UINT64_C(1) << 40;
	recovery_sent(&recovery, NOW_NS);
	recovery_time(&recovery, LAST, NOW_NS);
	recovery_time(&recovery, BEHIND_LAST, NOW_NS + RECOVERY_RETRANSMIT_NS);
	/* An answer to an earlier packet does not answer the timed one, but it is better than no
	 * measurement. */
	recovery_answered(&recovery, LAST, NOW_NS + RECOVERY_RETRANSMIT_NS);
	assert_int_equal(recovery.srtt_ns, RECOVERY_RETRANSMIT_NS);
	recovery_answered(&recovery, BEHIND_LAST, NOW_NS + 2 * RECOVERY_RETRANSMIT_NS);
	assert_int_equal(recovery.srtt_ns, 2 * RECOVERY_RETRANSMIT_NS);
	recovery_answered(&recovery, psn_add(BEHIND_LAST, 1), NOW_NS + 9 * RECOVERY_RETRANSMIT_NS);
	assert_int_equal(recovery.srtt_ns, 2 * RECOVERY_RETRANSMIT_NS);
}

static void lose(void)
{
	recovery_lost(&recovery, NOW_NS);
}

static void mend(void)
{
	recovery_retransmit(&recovery, NOW_NS, true);
}

static void be_told_to_wait(void)
{
	assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
}

static void probe_twice(void)
{
	recovery_probe(&recovery, LAST, NOW_NS);
	assert_int_equal(recovery_expire(&recovery, false, recovery.retransmit_ns),
			 RECOVERY_RETRANSMIT);
}

static void time_out(void)
{
	assert_int_equal(recovery_expire(&recovery, false, recovery.deadline_ns), RECOVERY_RESEND);
}

TEST(recovery_answered__what_was_sent_twice_is_not_timed)
{
	void (*const twice[])(void) = {lose, mend, be_told_to_wait, probe_twice, time_out};

	for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
		recovery.timeout_ns = UINT64_C(1) << 40;
		recovery_reset(&recovery);
		recovery_sent(&recovery, NOW_NS);
		recovery_time(&recovery, LAST, NOW_NS);
		twice[i]();
		recovery_answered(&recovery, BEHIND_LAST, NOW_NS + 5 * RECOVERY_RETRANSMIT_NS);
		assert_true(recovery.srtt_ns < 5 * RECOVERY_RETRANSMIT_NS);
	}
}

/* Send a probe, and answer it after `took_ns`. */
static void probe_after(uint64_t wait_ns, uint64_t took_ns)
{
	const uint64_t probe_ns = NOW_NS + wait_ns;

	recovery_sent(&recovery, NOW_NS);
	recovery_time(&recovery, LAST, NOW_NS);
	assert_int_equal(recovery_expire(&recovery, false, probe_ns), RECOVERY_RETRANSMIT);
	recovery_probe(&recovery, psn_add(LAST, -3), probe_ns);
	recovery_answered(&recovery, BEHIND_LAST, probe_ns + took_ns);
	recovery_progress(&recovery, probe_ns + took_ns, false);
}

/* Otherwise the wait would grow without end on a network that loses much. */
TEST(recovery_probe__of_what_was_lost_lets_no_other_wait)
{
	recovery.timeout_ns = UINT64_C(1) << 40;
	answer_after(10);
	for (int i = 0; i < 100; i++)
		probe_after(RECOVERY_RETRANSMIT_NS, 10);
	assert_int_equal(probe_wait_ns(), RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, false);
	/* Answers to packets take at least as long as the answer to a probe. */
	probe_after(RECOVERY_RETRANSMIT_NS, 2 * RECOVERY_RETRANSMIT_NS);
	assert_int_equal(probe_wait_ns(), RECOVERY_RETRANSMIT_FACTOR * 2 * RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, false);
	/* The first measured answer replaces the guess. */
	recovery_reset(&recovery);
	probe_after(RECOVERY_RETRANSMIT_NS, 10);
	assert_int_equal(probe_wait_ns(), 2 * RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, false);
	answer_after(10);
	assert_int_equal(recovery.srtt_ns, 10);
}

/* A retransmission is sent twice, until the timer allows the time that an answer takes. */
TEST(recovery_expire__probes_that_come_too_early_come_later)
{
	const uint64_t takes_ns = 7 * RECOVERY_RETRANSMIT_NS;
	int probes = 0;

	recovery.timeout_ns = UINT64_C(1) << 40;
	for (int i = 0; i < 10; i++) {
		recovery_sent(&recovery, NOW_NS);
		recovery_time(&recovery, LAST, NOW_NS);
		while (recovery.retransmit_ns < NOW_NS + takes_ns) {
			const uint64_t probe_ns = recovery.retransmit_ns;

			assert_int_equal(recovery_expire(&recovery, false, probe_ns),
					 RECOVERY_RETRANSMIT);
			recovery_probe(&recovery, LAST, probe_ns);
			recovery.retransmit_ns = RECOVERY_NEVER;
			probes++;
		}
		recovery_answered(&recovery, BEHIND_LAST, NOW_NS + takes_ns);
		recovery_progress(&recovery, NOW_NS + takes_ns, false);
	}
	assert_int_equal(probes, 1);
	assert_int_equal(recovery.srtt_ns, takes_ns);
}

TEST(recovery_sent__no_probes_beside_a_short_timer)
{
	recovery.timeout_ns = RECOVERY_PROBE_WAITS * RECOVERY_RETRANSMIT_NS;
	recovery_sent(&recovery, NOW_NS);
	assert_int_equal(recovery_deadline_ns(&recovery), NOW_NS + recovery.timeout_ns);
	/* A fast answer to a selective retransmission does not shorten the least time before a
	 * probe. */
	recovery_retransmit(&recovery, NOW_NS, true);
	recovery_retransmitted(&recovery, NOW_NS + 10);
	assert_int_equal(recovery_deadline_ns(&recovery), NOW_NS + 10 + RECOVERY_PROBE_MIN_NS);
}

TEST(recovery_retransmit__ends_with_progress_and_with_an_rnr_nak)
{
	recovery_retransmit(&recovery, NOW_NS, true);
	recovery_progress(&recovery, NOW_NS + 5, true);
	assert_int_equal(recovery.retransmit_ns, RECOVERY_NEVER);
	/* Only a part was acknowledged, so the retransmission goes on. Its timer is as long as that
	 * answer took. */
	recovery_retransmit(&recovery, NOW_NS + 5, false);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + 5 + RECOVERY_RETRANSMIT_MIN_NS);
	expect(RECOVERY_SMOOTH, NOW_NS + 5 + TIMEOUT_NS);
	assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
	assert_int_equal(recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(recovery_deadline_ns(&recovery), NOW_NS + RNR_NS);
}

TEST(recovery_pause__keeps_the_time_that_is_left)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_lost(&recovery, NOW_NS + 100);
	recovery_pause(&recovery, NOW_NS + 300);
	expect(RECOVERY_PAUSED, RECOVERY_NEVER);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + 99999), RECOVERY_WAIT);
	/* Another engine poll in which nothing leaves. */
	recovery_pause(&recovery, NOW_NS + 100000);
	recovery_sent(&recovery, NOW_NS + 200000);
	expect(RECOVERY_RESENDING, NOW_NS + 200000 + TIMEOUT_NS - 300);
	assert_int_equal(recovery.sent_ns, NOW_NS + 200000);
	assert_int_equal(recovery.retries_left, recovery.retry_cnt);
}

/* A queue pair in SQD may get another timeout while its packet waits. */
TEST(recovery_set_timeout__gives_a_paused_timer_all_of_it)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_lost(&recovery, NOW_NS + 100);
	recovery_pause(&recovery, NOW_NS + 300);
	recovery_set_timeout(&recovery, TIMEOUT_NS);
	assert_int_equal(recovery.rest_ns, TIMEOUT_NS - 300);
	recovery_set_timeout(&recovery, 2 * TIMEOUT_NS);
	recovery_sent(&recovery, NOW_NS + 200000);
	expect(RECOVERY_RESENDING, NOW_NS + 200000 + 2 * TIMEOUT_NS);
}

TEST(recovery_pause__not_of_a_timer_that_has_expired)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_pause(&recovery, NOW_NS + TIMEOUT_NS);
	expect(RECOVERY_SMOOTH, NOW_NS + TIMEOUT_NS);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + TIMEOUT_NS), RECOVERY_RESEND);
	assert_int_equal(recovery.retries_left, recovery.retry_cnt - 1);
}

TEST(recovery_pause__not_where_no_timer_runs_or_the_peers)
{
	recovery_pause(&recovery, NOW_NS);
	expect(RECOVERY_SMOOTH, RECOVERY_NEVER);
	assert_true(recovery_rnr(&recovery, RNR_CODE, NOW_NS));
	recovery_pause(&recovery, NOW_NS);
	expect(RECOVERY_RNR_WAIT, NOW_NS + RNR_NS);
}

/* A retransmission that has not left cannot be lost, and takes no time. */
TEST(recovery_pause__stops_the_retransmission_timer)
{
	recovery.timeout_ns = 0;
	recovery_retransmit(&recovery, NOW_NS, true);
	recovery_pause(&recovery, NOW_NS + 10);
	assert_true(recovery_deadline_ns(&recovery) == RECOVERY_NEVER);
	recovery_sent(&recovery, 2 * NOW_NS);
	expect(RECOVERY_RESENDING, RECOVERY_NEVER);
	assert_int_equal(recovery.retransmit_ns, 2 * NOW_NS + RECOVERY_RETRANSMIT_NS);
	assert_int_equal(recovery.retransmit_tries, 0);
	recovery_retransmitted(&recovery, 2 * NOW_NS + 30000);
	assert_int_equal(recovery.retransmit_wait_ns, RECOVERY_RETRANSMIT_FACTOR * 30000);
}

TEST(recovery_pause__ends_with_progress_and_with_a_new_report)
{
	recovery.sack_capable = true;
	recovery.srtt_ns = 20000;
	recovery.timeout_ns = UINT64_C(1) << 40;
	recovery_sent(&recovery, NOW_NS);
	recovery_pause(&recovery, NOW_NS + 10);
	/* What was left of the timer is not mistaken for the time of the newest packet. */
	recovery_progress(&recovery, NOW_NS + 20, true);
	expect(RECOVERY_SMOOTH, NOW_NS + 20 + recovery.timeout_ns);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + 20 + 30000);
	recovery_pause(&recovery, NOW_NS + 30);
	recovery_lost(&recovery, NOW_NS + 40);
	expect(RECOVERY_RESENDING, NOW_NS + 30 + recovery.timeout_ns);
	recovery_pause(&recovery, NOW_NS + 40);
	recovery_progress(&recovery, NOW_NS + 50, false);
	expect(RECOVERY_SMOOTH, RECOVERY_NEVER);
	assert_true(recovery_deadline_ns(&recovery) == RECOVERY_NEVER);
}

/* An answer that acknowledges nothing new. */
TEST(recovery_told__starts_the_timer_of_the_probe_anew)
{
	recovery.timeout_ns = UINT64_C(1) << 40;
	recovery_told(&recovery, NOW_NS);
	assert_int_equal(recovery.retransmit_ns, RECOVERY_NEVER);
	recovery_sent(&recovery, NOW_NS);
	recovery_told(&recovery, NOW_NS + 10);
	expect(RECOVERY_SMOOTH, NOW_NS + recovery.timeout_ns);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + 10 + RECOVERY_RETRANSMIT_NS);
	be_told_to_wait();
	recovery_told(&recovery, NOW_NS + 20);
	assert_int_equal(recovery.retransmit_ns, RECOVERY_NEVER);
}

TEST(recovery_hasten__probes_now_and_uses_up_no_retry)
{
	recovery.timeout_ns = UINT64_C(1) << 40;
	recovery_sent(&recovery, NOW_NS);
	for (int i = 0; i < 8; i++)
		assert_int_equal(recovery_expire(&recovery, false, recovery.retransmit_ns),
				 RECOVERY_RETRANSMIT);
	assert_true(recovery.retransmit_ns > NOW_NS + 100 * RECOVERY_RETRANSMIT_NS);
	recovery_hasten(&recovery, NOW_NS + 1);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + 1);
	assert_int_equal(recovery_expire(&recovery, false, NOW_NS + 1), RECOVERY_RETRANSMIT);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + 1 + 2 * RECOVERY_RETRANSMIT_NS);
	assert_int_equal(recovery.retries_left, 3);
}

TEST(recovery_hasten__does_not_begin_a_timer)
{
	recovery_hasten(&recovery, NOW_NS);
	assert_int_equal(recovery.retransmit_ns, RECOVERY_NEVER);
	recovery_sent(&recovery, NOW_NS);
	be_told_to_wait();
	recovery_hasten(&recovery, NOW_NS + 1);
	assert_int_equal(recovery.retransmit_ns, RECOVERY_NEVER);
	expect(RECOVERY_RNR_WAIT, recovery.deadline_ns);
}
