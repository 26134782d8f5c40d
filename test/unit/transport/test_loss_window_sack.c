/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/loss_window.c: the window of a peer that sends SACKs follows the rate. */
#include "completer_sack_rig.h"
#include "test.h"

TEST_FIXTURE(completer_sack_set_up, completer_rig_tear_down);

/* Let 600 packets have come in the time from NOW_NS on, while the window held packets back. */
static void rate(uint64_t now_ns)
{
	rig.board.rated_ns = NOW_NS;
	rig.board.rated_psn = psn_add(rig.loss.una, -600);
	rig.board.rated_came = 0;
	loss_limit(&rig.loss);
	loss_widen(&rig.loss, true, now_ns);
	assert_false(rig.loss.limited);
}

TEST(completer_receive__a_refusal_returns_to_the_usual_window_for_some_time)
{
	const unsigned int rounds = 64;

	rig.loss.window_max = rig.loss.window = rig.board.advertised_window = 4 * LOSS_WINDOW_MAX;
	post(1, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	refuse_once(1);
	assert_int_equal(rig.loss.window_max, LOSS_WINDOW_MAX);
	EXPECT_SENT(1);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 1, .syndrome = ACK, .capability = CAPABILITY);
	expect_success(1);
	/* A thousand packets come in each round trip. */
	rig.loss.recovery.min_rtt_ns = rig.loss.recovery.srtt_ns = 1000;
	rig.board.rate = 1000;
	for (unsigned int round = 0; round < rounds; round++) {
		rate(NOW_NS + 1000);
		assert_int_equal(rig.loss.window_max, LOSS_WINDOW_MAX);
	}
	rate(NOW_NS + 1000);
	assert_true(rig.loss.window_max > LOSS_WINDOW_MAX);
}

/* The requester announces twice the window or four times, if the peer may keep so many packets, and
 * the whole window has been used. */
TEST(loss_widen__announces_a_longer_window)
{
	static const struct {
		uint32_t far, srtt_ns, advertised;
		bool widening;
		uint8_t steps;
	} cases[] = {{LOSS_WINDOW_MAX, 1000, LOSS_WINDOW_MAX, false, 0},
		     {2 * LOSS_WINDOW_MAX, 1000, LOSS_WINDOW_MAX, false, 1},
		     {4 * LOSS_WINDOW_MAX, 1000, LOSS_WINDOW_MAX, false, 2},
		     {LOSS_WINDOW_LIMIT, 1000, LOSS_WINDOW_MAX, false, 2},
		     /* Another one is not announced to the end yet. */
		     {LOSS_WINDOW_LIMIT, 1000, LOSS_WINDOW_MAX, true, 0},
		     /* The window is shorter, or there is a queue. */
		     {LOSS_WINDOW_LIMIT, 1000, LOSS_WINDOW_LIMIT, false, 0},
		     {LOSS_WINDOW_LIMIT, 1500, LOSS_WINDOW_MAX, false, 0}};
	const uint8_t asks = rig.loss.asks;

	/* The peer has told so in its first answer. */
	assert_int_equal(rig.board.far, LOSS_WINDOW_MAX << 4);
	rig.loss.recovery.min_rtt_ns = 1000;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rig.loss.asks = asks;
		rig.loss.recovery.srtt_ns = cases[i].srtt_ns;
		rig.board.far = cases[i].far;
		rig.board.advertised_window = cases[i].advertised;
		rig.board.widening = cases[i].widening;
		rig.board.announced = rig.loss.una;
		rate(NOW_NS + 1000);
		assert_int_equal(rig.loss.asks, asks + cases[i].steps);
		assert_int_equal(rig.board.widening, cases[i].widening || cases[i].steps > 0);
	}
}

/* The window follows what comes in a round trip, with as much again while there is no queue. */
TEST(loss_widen__follows_the_rate)
{
	uint32_t ratings_before;

	rig.loss.window_max = rig.loss.window = rig.board.advertised_window = LOSS_WINDOW_LIMIT;
	rig.loss.recovery.min_rtt_ns = rig.loss.recovery.srtt_ns = 1000;
	rate(NOW_NS + 1000);
	assert_int_equal(rig.loss.window_max, 2 * 600 + 150);
	assert_int_equal(rig.loss.window, 2 * 600 + 150);
	/* What was counted does not count again. */
	ratings_before = rig.board.ratings;
	loss_limit(&rig.loss);
	loss_widen(&rig.loss, true, NOW_NS + 2000);
	assert_int_equal(rig.board.ratings, ratings_before);
	/* There is a queue. */
	rig.loss.recovery.srtt_ns = 1500;
	rate(NOW_NS + 1000);
	assert_int_equal(rig.loss.window_max, 600 + 150);
	/* Slower ones do not count at once: losses hold packets back. */
	rate(NOW_NS + 3000);
	assert_int_equal(rig.loss.window_max, 600 + 150);
	/* The eight ratings of before count as long as the eight that follow. */
	for (unsigned int ratings = 4; ratings < 20; ratings++) {
		rate(NOW_NS + 2000);
		assert_int_equal(rig.loss.window_max, ratings < 16 ? 600 + 150 : 300 + 75);
	}
	/* Not less than the usual window. */
	for (unsigned int i = 0; i < 16; i++)
		rate(NOW_NS + 7000);
	assert_int_equal(rig.loss.window_max, LOSS_WINDOW_MAX);
}

/* A path that has become longer looks like a queue that no window is short enough for. */
TEST(loss_widen__doubts_the_shortest_round_trip_after_many_of_the_shortest_windows)
{
	const unsigned int rounds = 64;

	rig.loss.recovery.min_rtt_ns = 1000;
	for (unsigned int i = 0; i < 2 * rounds; i++) {
		/* Once there is no queue. */
		rig.loss.recovery.srtt_ns = i == rounds - 1 ? 1000 : 20000;
		rate(NOW_NS + 20000);
		assert_int_equal(rig.loss.window_max, LOSS_WINDOW_MAX);
		assert_int_equal(rig.loss.recovery.min_rtt_ns,
				 i == 2 * rounds - 1 ? UINT32_MAX : 1000);
	}
	/* The path is measured anew, and the window follows it. */
	rig.loss.recovery.min_rtt_ns = rig.loss.recovery.srtt_ns = 20000;
	rig.board.advertised_window = LOSS_WINDOW_LIMIT;
	rate(NOW_NS + 20000);
	assert_int_equal(rig.loss.window_max, 2 * 600 + 150);
}
