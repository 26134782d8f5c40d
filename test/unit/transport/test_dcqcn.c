/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/dcqcn.c: cuts and increases of the rate, as the paper has them. */
#include <stdint.h>

#include "transport/cc.h"
#include "transport/loss.h"
#include "transport/pacer.h"
#include "test.h"

#define LINK_KBPS 40000000u
#define START_NS  UINT64_C(1000000)

/* The defaults. */
#define CC_NOTIFY_NS   UINT64_C(50000)
#define DCQCN_ALPHA_NS UINT64_C(55000)
#define DCQCN_TIMER_NS UINT64_C(55000)
#define DCQCN_APART_NS UINT64_C(4000)
#define DCQCN_BYTES    10000000u
#define DCQCN_G	       (1.0 / 256)
#define DCQCN_FAST     5
#define DCQCN_AI_KBPS  40000u
#define DCQCN_HAI_KBPS 400000u
#define DCQCN_MIN_KBPS 10000u

static struct pacer pacer;
static struct scoreboard board;
static struct loss loss;
static struct cc *cc;
static struct cc_params params;

static int set_up(TEST_STATE)
{
	const struct cc_attr attr = {
		.kind = CC_DCQCN, .link_mbps = LINK_KBPS / 1000, .params = &params};

	params = cc_params_normal;
	pacer = (struct pacer){0};
	loss = (struct loss){.board = &board};
	scoreboard_init(&board);
	loss_init(&loss, psn_make(0));
	assert_int_equal(cc_create(&attr, &pacer, &loss, &cc), 0);
	pacer.cc = cc;
	return 0;
}

static int tear_down(TEST_STATE)
{
	cc_destroy(cc);
	scoreboard_fini(&board);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void assert_near(double value, double expected)
{
	assert_true(value > 0.999 * expected && value < 1.001 * expected);
}

TEST(dcqcn_notified__the_first_halves_the_rate)
{
	assert_true(cc_notified(cc, START_NS));
	assert_int_equal(pacer.rate_kbps, LINK_KBPS / 2);
	assert_int_equal(cc->dcqcn.target_kbps, LINK_KBPS);
	assert_near(cc->dcqcn.alpha, 1);
}

/* Each cut is from the present rate; alpha stays 1 while notifications come in every interval. */
TEST(dcqcn_notified__each_cuts_by_half_of_alpha)
{
	for (uint64_t i = 0; i < 4; i++)
		assert_true(cc_notified(cc, START_NS + i * CC_NOTIFY_NS));
	assert_near(pacer.rate_kbps, LINK_KBPS / 16.0);
	assert_near(cc->dcqcn.target_kbps, LINK_KBPS / 8.0);
}

TEST(dcqcn_notified__raises_alpha)
{
	cc_notified(cc, START_NS);
	cc->dcqcn.alpha = 0.5;
	cc_notified(cc, START_NS + CC_NOTIFY_NS);
	assert_near(cc->dcqcn.alpha, (1 - DCQCN_G) * 0.5 + DCQCN_G);
}

TEST(dcqcn_notified__not_twice_at_once)
{
	assert_true(cc_notified(cc, START_NS));
	assert_false(cc_notified(cc, START_NS + DCQCN_APART_NS - 1));
	assert_int_equal(pacer.rate_kbps, LINK_KBPS / 2);
	assert_true(cc_notified(cc, START_NS + DCQCN_APART_NS));
}

TEST(dcqcn_notified__not_below_the_slowest_rate)
{
	for (uint64_t i = 0; i < 100; i++)
		cc_notified(cc, START_NS + i * DCQCN_APART_NS);
	assert_int_equal(pacer.rate_kbps, DCQCN_MIN_KBPS);
}

/* The pacer did not count packets before the cut, so no burst is saved up. */
TEST(dcqcn_notified__leaves_no_burst)
{
	cc_notified(cc, START_NS);
	pacer_poll(&pacer, START_NS);
	assert_true(pacer_holds(&pacer));
	assert_in_range(pacer.deadline_ns, START_NS + 1, START_NS + 2);
}

TEST(dcqcn_poll__alpha_falls_without_notifications)
{
	cc_notified(cc, START_NS);
	cc_poll(cc, START_NS + DCQCN_ALPHA_NS - 1);
	assert_near(cc->dcqcn.alpha, 1);
	cc_poll(cc, START_NS + DCQCN_ALPHA_NS);
	assert_near(cc->dcqcn.alpha, 1 - DCQCN_G);
	cc_poll(cc, START_NS + 3 * DCQCN_ALPHA_NS);
	assert_near(cc->dcqcn.alpha, (1 - DCQCN_G) * (1 - DCQCN_G) * (1 - DCQCN_G));
}

/* Fast recovery: five steps, each half of the way to the rate before the cut. */
TEST(dcqcn_poll__fast_recovery_comes_back)
{
	double kbps = LINK_KBPS / 4.0;

	cc_notified(cc, START_NS);
	cc_notified(cc, START_NS + CC_NOTIFY_NS);
	for (uint64_t i = 1; i <= DCQCN_FAST; i++) {
		cc_poll(cc, START_NS + CC_NOTIFY_NS + i * DCQCN_TIMER_NS);
		kbps = (kbps + LINK_KBPS / 2.0) / 2;
		assert_near(pacer.rate_kbps, kbps);
	}
	assert_int_equal(cc->dcqcn.target_kbps, LINK_KBPS / 2);
	/* After that the target rises, too. */
	cc_poll(cc, START_NS + CC_NOTIFY_NS + (DCQCN_FAST + 1) * DCQCN_TIMER_NS);
	assert_int_equal(cc->dcqcn.target_kbps, LINK_KBPS / 2 + DCQCN_AI_KBPS);
	/* The next notification begins fast recovery anew. */
	cc_notified(cc, START_NS + CC_NOTIFY_NS + (DCQCN_FAST + 2) * DCQCN_TIMER_NS);
	assert_int_equal(cc->dcqcn.timer_steps, 0);
	assert_int_equal(cc->dcqcn.byte_steps, 0);
}

TEST(dcqcn_sent__the_byte_counter_raises_too)
{
	cc_notified(cc, START_NS);
	for (int i = 0; i < 9999; i++)
		cc_responded(cc, 1000, START_NS);
	assert_int_equal(pacer.rate_kbps, LINK_KBPS / 2);
	cc_responded(cc, 1000, START_NS);
	assert_int_equal(cc->dcqcn.byte_steps, 1);
	assert_near(pacer.rate_kbps, LINK_KBPS * 0.75);
}

/* After fast recovery of timer and byte counter, each step is larger than the last one. */
TEST(dcqcn_raise__hyper_increase)
{
	uint32_t before;

	cc_notified(cc, START_NS);
	cc_notified(cc, START_NS + CC_NOTIFY_NS);
	cc->dcqcn.timer_steps = DCQCN_FAST + 1;
	cc->dcqcn.byte_steps = DCQCN_FAST;
	before = cc->dcqcn.target_kbps;
	cc->dcqcn.bytes = DCQCN_BYTES - 1;
	cc_responded(cc, 1, START_NS);
	assert_int_equal(cc->dcqcn.target_kbps, before + DCQCN_HAI_KBPS);
	cc->dcqcn.timer_steps = DCQCN_FAST + 2;
	cc->dcqcn.bytes = DCQCN_BYTES - 1;
	cc_responded(cc, 1, START_NS);
	assert_int_equal(cc->dcqcn.target_kbps, before + 3 * DCQCN_HAI_KBPS);
}

/* At the link's rate nothing is limited or counted any more, and the next cut starts from the
 * initial state. */
TEST(dcqcn_poll__a_long_pause_sets_it_free)
{
	cc_notified(cc, START_NS);
	pacer_poll(&pacer, START_NS + UINT64_C(10000000000));
	assert_int_equal(pacer.rate_kbps, 0);
	assert_false(pacer_holds(&pacer));
	assert_true(cc->timer_ns == UINT64_MAX);
	cc_notified(cc, START_NS + UINT64_C(20000000000));
	assert_int_equal(pacer.rate_kbps, LINK_KBPS / 2);
}

/* A held packet is looked at again when the rate may rise. */
TEST(pacer_holds__not_longer_than_to_the_next_increase)
{
	for (uint64_t i = 0; i < 20; i++)
		cc_notified(cc, START_NS + i * CC_NOTIFY_NS);
	pacer_poll(&pacer, START_NS + 20 * CC_NOTIFY_NS);
	while (!pacer_holds(&pacer))
		pacer_sent(&pacer, 4000);
	assert_true(pacer.deadline_ns == cc->timer_ns);
}

/* The pacer keeps what it has counted for the application's limit, so a burst is not sent twice. */
TEST(dcqcn_notified__keeps_what_a_limit_has_counted)
{
	pacer_set(&pacer, LINK_KBPS / 100, 0, 1000);
	pacer_poll(&pacer, START_NS);
	while (!pacer_holds(&pacer))
		pacer_sent(&pacer, 1000);
	cc_notified(cc, START_NS);
	assert_true(pacer.paid_ns >= START_NS + PACER_BURST_NS);
}

/* Notify twice, the second time after `steps` of the timer. */
static void notify_after(uint64_t steps)
{
	cc_notified(cc, START_NS);
	cc_poll(cc, START_NS + steps * DCQCN_TIMER_NS);
	cc_notified(cc, START_NS + steps * DCQCN_TIMER_NS + CC_NOTIFY_NS);
}

TEST(dcqcn_notified__begins_as_the_parameters_say)
{
	params.initial_alpha_value = 512;
	assert_true(cc_notified(cc, START_NS));
	assert_near(pacer.rate_kbps, 0.75 * LINK_KBPS);
	cc_reset(cc);
	params.rate_to_set_on_first_cnp = 3000;
	assert_true(cc_notified(cc, START_NS));
	assert_int_equal(pacer.rate_kbps, 3000000);
	assert_int_equal(cc->dcqcn.target_kbps, 3000000);
	cc_reset(cc);
	/* Not above the rate at which the queue pair is free. */
	params.rate_to_set_on_first_cnp = 1000000;
	assert_true(cc_notified(cc, START_NS));
	assert_int_equal(pacer.rate_kbps, 0);
}

TEST(dcqcn_notified__cuts_as_the_parameters_say)
{
	params.rpg_gd = 12;
	assert_true(cc_notified(cc, START_NS));
	assert_near(pacer.rate_kbps, 0.75 * LINK_KBPS);
	params.rpg_min_dec_fac = 90;
	assert_true(cc_notified(cc, START_NS + CC_NOTIFY_NS));
	assert_near(pacer.rate_kbps, 0.9 * 0.75 * LINK_KBPS);
	params.rpg_min_rate = 35000;
	assert_true(cc_notified(cc, START_NS + 2 * CC_NOTIFY_NS));
	assert_int_equal(pacer.rate_kbps, 35000000);
	params.rate_reduce_monitor_period = 100;
	assert_false(cc_notified(cc, START_NS + 2 * CC_NOTIFY_NS + 99999));
	assert_true(cc_notified(cc, START_NS + 2 * CC_NOTIFY_NS + 100000));
}

/* QCN keeps the target if only the timer has raised the rate. */
TEST(dcqcn_notified__keeps_the_target)
{
	params.clamp_tgt_rate = 0;
	params.clamp_tgt_rate_after_time_inc = 0;
	notify_after(1);
	assert_int_equal(cc->dcqcn.target_kbps, LINK_KBPS);
	cc_reset(cc);
	params.clamp_tgt_rate_after_time_inc = 1;
	notify_after(1);
	assert_near(cc->dcqcn.target_kbps, 0.75 * LINK_KBPS);
	cc_reset(cc);
	notify_after(0);
	assert_int_equal(cc->dcqcn.target_kbps, LINK_KBPS);
	cc_reset(cc);
	params.clamp_tgt_rate_after_time_inc = 0;
	cc_notified(cc, START_NS);
	cc->dcqcn.byte_steps = 1;
	cc_notified(cc, START_NS + CC_NOTIFY_NS);
	assert_int_equal(cc->dcqcn.target_kbps, LINK_KBPS / 2);
}

TEST(dcqcn_raise__as_the_parameters_say)
{
	params.rpg_time_reset = 200;
	params.rpg_threshold = 1;
	params.rpg_ai_rate = 1000;
	params.rpg_max_rate = 20000;
	cc_notified(cc, START_NS);
	assert_int_equal(pacer.rate_kbps, 10000000);
	cc_notified(cc, START_NS + CC_NOTIFY_NS);
	cc_poll(cc, START_NS + CC_NOTIFY_NS + 199999);
	assert_int_equal(pacer.rate_kbps, 5000000);
	cc_poll(cc, START_NS + CC_NOTIFY_NS + 200000);
	assert_int_equal(pacer.rate_kbps, 7500000);
	cc_poll(cc, START_NS + CC_NOTIFY_NS + 400000);
	assert_int_equal(cc->dcqcn.target_kbps, 11000000);
	/* From 20 Gb/s on it is free. */
	cc_poll(cc, START_NS + UINT64_C(1000000000));
	assert_int_equal(pacer.rate_kbps, 0);
}

TEST(dcqcn_sent__without_the_byte_counter)
{
	params.rpg_byte_reset = 0;
	cc_notified(cc, START_NS);
	for (int i = 0; i < 100; i++)
		cc_responded(cc, DCQCN_BYTES, START_NS);
	assert_int_equal(pacer.rate_kbps, LINK_KBPS / 2);
	/* A smaller one counts what was sent meanwhile only once. */
	params.rpg_byte_reset = 2 * DCQCN_BYTES;
	cc_responded(cc, DCQCN_BYTES, START_NS);
	params.rpg_byte_reset = 1000;
	cc_responded(cc, 1, START_NS);
	assert_int_equal(cc->dcqcn.byte_steps, 1);
}

/* A pause of days with the shortest times ends at once. */
TEST(dcqcn_poll__a_long_pause_is_cheap)
{
	params.dce_tcp_rtt = 1;
	params.rpg_time_reset = 131071;
	params.rpg_ai_rate = 1;
	cc_notified(cc, START_NS);
	cc_poll(cc, START_NS + UINT64_C(3) * 86400 * 1000000000);
	assert_true(cc->dcqcn.alpha >= 0 && cc->dcqcn.alpha < 1e-9);
	assert_int_equal(pacer.rate_kbps, 0);
}
