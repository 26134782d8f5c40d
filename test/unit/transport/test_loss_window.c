/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of transport/loss.h: PSNs and packets in flight, and the window, across the wrap of PSNs.
 */
#include <stddef.h>
#include <stdint.h>

#include "transport/loss.h"
#include "transport/sack.h"
#include "wire/headers.h"
#include "test.h"

/* PSNs wrap after two packets. */
#define FIRST 0xfffffeu

static struct scoreboard board;
static struct loss loss;

static int set_up(TEST_STATE)
{
	/* A scoreboard of zeros has no memory. */
	scoreboard_fini(&board);
	loss = (struct loss){.board = &board, .max_responses = 3};
	loss_init(&loss, psn_make(FIRST));
	return 0;
}

static int tear_down(TEST_STATE)
{
	scoreboard_fini(&board);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Report that a go-back-N peer misses the oldest packet: everything is sent again. */
static void go_back(void)
{
	if (psn_eq(loss.next, loss.una))
		loss_sent(&loss, 1);
	assert_true(loss_on_nak_ahead(&loss, 0));
}

/* Report that a peer that keeps the others misses the oldest packet. */
static void nak(void)
{
	const struct loss_request oldest = {.last = psn_add(loss.una, 9)};

	loss_on_nak(&loss, &oldest, 0);
	assert_int_equal(loss.state, LOSS_REQUEST);
}

/* Acknowledge the oldest packets; nothing is missing. */
static void acknowledge(struct psn psn)
{
	const struct loss_request oldest = {.last = psn_add(psn, 9)};

	loss_on_ack(&loss, psn, 0);
	if (loss.state != LOSS_NONE)
		loss_settle(&loss, &oldest, true, 0);
}

static void expect(uint32_t una, uint32_t next, uint32_t top)
{
	assert_int_equal(loss.una.v, una);
	assert_int_equal(loss.next.v, next);
	assert_int_equal(loss.top.v, top);
}

TEST(loss_init__nothing_is_in_the_air)
{
	loss_sent(&loss, 9);
	loss.responses = 2;
	loss.window = 7;
	loss_init(&loss, psn_make(5));
	expect(5, 5, 5);
	assert_int_equal(loss_outstanding(&loss), 0);
	assert_int_equal(loss.responses, 0);
	assert_int_equal(loss.window, LOSS_WINDOW_MAX);
	/* The attributes of the queue pair stay. */
	assert_int_equal(loss.max_responses, 3);
}

TEST(loss_init__forgets_the_peer)
{
	loss_sent(&loss, 20);
	nak();
	loss.limited = true;
	loss.back = LOSS_WENT_BACK;
	board.rounds = 9;
	board.rated_ns = 9;
	board.rate = 9;
	board.rate_before = 9;
	loss_init(&loss, psn_make(5));
	assert_false(loss.limited);
	assert_int_equal(loss.back, LOSS_STARTED_OVER);
	assert_int_equal(board.rounds, 0);
	assert_int_equal(board.rated_ns, 0);
	assert_int_equal(board.rate, 0);
	assert_int_equal(board.rate_before, 0);
	assert_true(scoreboard_is_empty(&board));
}

TEST(loss_set_attr__is_obeyed)
{
	loss_set_attr(&loss, &(struct loss_attr){.timeout_ns = 5000,
						 .max_responses = 7,
						 .retry_cnt = 6,
						 .rnr_retry = 5});
	assert_int_equal(loss.allowed_responses, 7);
	loss_init(&loss, psn_make(5));
	assert_int_equal(loss.recovery.timeout_ns, 5000);
	assert_int_equal(loss.recovery.retries_left, 6);
	assert_int_equal(loss.recovery.rnr_left, 5);
}

TEST(loss_on_capability__of_sacks_allows_more_responses)
{
	loss.sack = true;
	assert_true(loss_on_capability(&loss, BTH_SACK_RESPONSE));
	assert_int_equal(loss.allowed_responses, sack_resources(loss.max_responses));
	assert_true(loss_on_capability(&loss, 0));
	assert_int_equal(loss.allowed_responses, loss.max_responses);
}

TEST(loss_sent__moves_on_over_the_wrap)
{
	loss_sent(&loss, 1);
	expect(FIRST, 0xffffff, 0xffffff);
	loss_sent(&loss, 4);
	expect(FIRST, 3, 3);
	assert_int_equal(loss_outstanding(&loss), 5);
}

TEST(loss_sent__again_does_not_move_the_top)
{
	loss_sent(&loss, 10);
	go_back();
	loss_sent(&loss, 4);
	expect(FIRST, 2, 8);
	loss_sent(&loss, 7);
	expect(FIRST, 9, 9);
}

TEST(loss_full__at_the_window)
{
	loss_sent(&loss, LOSS_WINDOW_MAX - 1);
	assert_false(loss_full(&loss));
	loss_sent(&loss, 1);
	assert_true(loss_full(&loss));
	/* A READ's responses may reach beyond the window. */
	loss_sent(&loss, 63);
	assert_true(loss_full(&loss));
	loss_on_ack(&loss, psn_make(FIRST + 64), 0);
	assert_false(loss_full(&loss));
}

TEST(loss_on_ack__moves_the_oldest_over_the_wrap)
{
	loss_sent(&loss, 6);
	loss_on_ack(&loss, psn_make(1), 0);
	expect(1, 4, 4);
	assert_int_equal(loss_outstanding(&loss), 3);
}

TEST(loss_on_ack__what_was_to_be_sent_again_is_skipped)
{
	loss_sent(&loss, 6);
	go_back();
	loss_sent(&loss, 1);
	loss_on_ack(&loss, psn_make(2), 0);
	expect(2, 2, 4);
	assert_int_equal(loss_outstanding(&loss), 0);
}

TEST(loss_on_nak_ahead__goes_back_to_the_oldest)
{
	loss_sent(&loss, 6);
	loss.responses = 2;
	loss_on_ack(&loss, psn_make(0), 0);
	go_back();
	expect(0, 0, 4);
	assert_int_equal(loss.responses, 0);
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
	/* An answer that cannot be stored yet was not lost. */
	loss_hold(&loss);
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
}

/* What is behind a refused packet waits for it. */
TEST(loss_on_rnr__ends_another_retransmission)
{
	const struct loss_request oldest = {.last = psn_make(FIRST + 3), .segment_psns = 4};
	struct loss_range range;

	loss.recovery.rnr_retry = RECOVERY_RNR_FOREVER;
	loss.peer = LOSS_PEER_KEEPS;
	loss_sent(&loss, 20);
	loss_on_nak(&loss, &oldest, 0);
	assert_true(loss_next(&loss, &range));
	assert_int_equal(psn_diff(range.to, range.from), 4);
	assert_true(loss_on_rnr(&loss, 1, 0));
	assert_true(loss_next(&loss, &range));
	assert_int_equal(psn_diff(range.to, range.from), 1);
}

/* The peer may drop what is behind a refused packet: only a later answer shows it. */
TEST(loss_on_rnr__of_what_was_sent_again_does_not_tell_what_peer_it_is)
{
	loss.recovery.rnr_retry = RECOVERY_RNR_FOREVER;
	loss_sent(&loss, 20);
	nak();
	loss_sent_again(&loss, loss.una, 1);
	assert_true(loss_on_rnr(&loss, 1, 0));
	assert_int_equal(loss.peer, LOSS_PEER_UNKNOWN);
}

/* While the peer is not ready, it is not asked, and nothing is found to be missing. */
TEST(loss_on_nak_ahead__nothing_while_the_peer_is_not_ready)
{
	loss_sent(&loss, 6);
	loss.recovery.rnr_retry = 7;
	assert_true(loss_on_rnr(&loss, 14, 0));
	assert_false(loss_on_nak_ahead(&loss, 0));
}

TEST(loss_on_nak_ahead__ends_another_retransmission)
{
	struct psn from, to;

	loss.peer = LOSS_PEER_KEEPS;
	loss_sent(&loss, 20);
	nak();
	assert_true(scoreboard_first(&board, RANGE_MISSING, &from, &to));
	go_back();
	assert_false(scoreboard_first(&board, RANGE_MISSING, &from, &to));
}

TEST(loss_on_nak_ahead__does_not_count_what_was_acknowledged_before)
{
	loss_sent(&loss, LOSS_WINDOW_MAX);
	acknowledge(psn_make(FIRST + LOSS_WINDOW_MAX - 1));
	go_back();
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
	loss_sent(&loss, 1);
	acknowledge(loss.next);
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
}

TEST(loss_hold__forgets_the_responses_that_have_come)
{
	loss_sent(&loss, 6);
	loss_on_out_of_order(&loss, psn_make(1), true);
	assert_int_equal(loss.board->count[RANGE_CAME], 1);
	loss_hold(&loss);
	assert_true(scoreboard_is_empty(loss.board));
	assert_false(loss_awaits_responses(&loss));
}

TEST(loss_on_nak_ahead__a_loss_halves_the_window_down_to_its_least)
{
	go_back();
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
	for (int i = 0; i < 10; i++)
		go_back();
	assert_true(loss.window >= LOSS_WINDOW_MIN);
	assert_true(loss.window <= 2 * LOSS_WINDOW_MIN);
}

TEST(loss_on_ack__a_window_acknowledged_widens_the_window)
{
	go_back();
	loss_sent(&loss, LOSS_WINDOW_MAX);
	loss_on_ack(&loss, psn_make(FIRST + LOSS_WINDOW_MAX / 2 - 1), 0);
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
	loss_on_ack(&loss, psn_make(FIRST + LOSS_WINDOW_MAX / 2), 0);
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2 + LOSS_WINDOW_STEP);
}

TEST(loss_init__does_not_count_what_was_acknowledged_before)
{
	loss_sent(&loss, 2);
	loss_on_ack(&loss, psn_make(FIRST + 1), 0);
	assert_int_equal(loss.acked, 1);
	loss_init(&loss, psn_make(FIRST));
	assert_int_equal(loss.acked, 0);
}

TEST(loss_on_ack__the_window_has_a_limit)
{
	for (int i = 0; i < 10; i++) {
		loss_sent(&loss, LOSS_WINDOW_MAX);
		loss_on_ack(&loss, loss.next, 0);
		assert_int_equal(loss.window, LOSS_WINDOW_MAX);
	}
}

/* Each window that a queue pair may be made with opens, and narrows within its limits. */
TEST(loss_init__takes_each_window, .bare = true)
{
	for (uint32_t max = 1; max <= LOSS_WINDOW_LIMIT; max++) {
		const uint32_t least = max < LOSS_WINDOW_MIN ? max : LOSS_WINDOW_MIN;

		loss = (struct loss){.board = &board, .window_max = max};
		loss_init(&loss, psn_make(FIRST));
		assert_false(loss_full(&loss));
		loss_sent(&loss, max);
		assert_true(loss_full(&loss));
		for (int i = 0; i < 12; i++) {
			go_back();
			assert_in_range(loss.window, least, max);
		}
		for (uint32_t i = 0; loss.window < max; i++) {
			assert_in_range(i, 0, max);
			loss_sent(&loss, loss.window);
			loss_on_ack(&loss, loss.next, 0);
		}
		assert_int_equal(loss.window, max);
		loss_init(&loss, psn_make(5));
		assert_int_equal(loss.window_max, max);
	}
}

TEST(loss_on_nak__narrows_the_window_once_for_one_flight)
{
	loss.peer = LOSS_PEER_KEEPS;
	loss_sent(&loss, 20);
	acknowledge(psn_make(FIRST + 3));
	nak();
	expect((FIRST + 3) & PSN_MASK, (FIRST + 20) & PSN_MASK, (FIRST + 20) & PSN_MASK);
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
	acknowledge(psn_make(FIRST + 10));
	nak();
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
	loss_sent(&loss, 5);
	acknowledge(psn_make(FIRST + 20));
	nak();
	assert_int_equal(loss.window, LOSS_WINDOW_MAX / 4);
}

/* Send and acknowledge this many PSNs without a loss. */
static void age(uint32_t psns)
{
	while (psns > 0) {
		const uint32_t n = psns < LOSS_WINDOW_MAX ? psns : LOSS_WINDOW_MAX;

		loss_sent(&loss, n);
		loss_on_ack(&loss, loss.next, 0);
		psns -= n;
	}
}

TEST(loss_on_nak__narrows_the_window_however_long_nothing_was_lost, .bare = true)
{
	static const uint32_t quiet[] = {0,	   1000,	   (1u << 23) - 1,
					 1u << 23, (1u << 23) + 1, (1u << 24) - 10};

	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
		set_up(state);
		/* The same holds if a loss has set recovery_point before. */
		loss.peer = LOSS_PEER_KEEPS;
		loss_sent(&loss, 20);
		nak();
		acknowledge(loss.next);
		loss.window = LOSS_WINDOW_MAX;
		age(quiet[i]);
		loss_sent(&loss, 20);
		nak();
		assert_int_equal(loss.window, LOSS_WINDOW_MAX / 2);
	}
}

TEST(loss_next__names_what_is_not_acknowledged_yet)
{
	struct loss_range range;

	loss.peer = LOSS_PEER_KEEPS;
	loss_sent(&loss, 70);
	for (uint32_t run = 1; run <= 8; run *= 2) {
		const struct psn una = loss.una;

		nak();
		for (uint32_t i = 0; i < run; i++) {
			assert_true(loss_next(&loss, &range));
			assert_int_equal(range.from.v, psn_add(una, (int32_t)i).v);
			assert_int_equal(range.to.v, psn_add(una, (int32_t)run).v);
			assert_false(range.is_executed);
			if (run == 8 && i == 2)
				loss_on_ack(&loss, psn_add(una, 5), 0);
			else
				loss_sent_again(&loss, range.from, 1);
			if (run == 8 && i == 2)
				break;
		}
		if (run == 8)
			break;
		assert_false(loss_next(&loss, &range));
		/* The peer answered it by a NAK for the next packet. */
		loss_on_ack(&loss, psn_add(una, (int32_t)run), 0);
	}
	/* Five packets were only late. */
	assert_true(loss_next(&loss, &range));
	assert_int_equal(range.from.v, loss.una.v);
	assert_int_equal(psn_diff(range.to, range.from), 3);
}

/* Two packets are to be sent again, but the answers to the first ones come before they are. */
TEST(loss_on_nak__sends_no_fewer_again_than_before)
{
	loss.peer = LOSS_PEER_KEEPS;
	loss_sent(&loss, 70);
	nak();
	loss_sent_again(&loss, loss.una, 1);
	loss_on_ack(&loss, psn_add(loss.una, 1), 0);
	nak();
	assert_int_equal(psn_diff(loss.to, loss.una), 2);
	loss_on_ack(&loss, loss.to, 0);
	nak();
	assert_int_equal(psn_diff(loss.to, loss.una), 2);
}

TEST(loss_sent_again__of_a_longer_request_ends_with_it)
{
	struct loss_range range;

	loss.peer = LOSS_PEER_KEEPS;
	loss_sent(&loss, 70);
	nak();
	assert_int_equal(psn_diff(loss.to, loss.una), 1);
	loss_sent_again(&loss, loss.una, 64);
	assert_int_equal(psn_diff(loss.to, loss.una), 64);
	assert_false(loss_next(&loss, &range));
}

TEST(loss_on_out_of_order__what_came_is_not_asked_for)
{
	const struct loss_request oldest = {
		.wants_response = true, .last = psn_make(FIRST + 63), .segment_psns = 64};
	struct loss_range range;

	loss_sent(&loss, 64);
	loss_on_out_of_order(&loss, psn_make(FIRST + 9), true);
	loss_on_out_of_order(&loss, psn_make(FIRST + 5), true);
	loss_on_out_of_order(&loss, psn_make(FIRST + 4), false);
	assert_true(loss_awaits_responses(&loss));
	assert_int_equal(loss.executed.v, psn_make(FIRST + 10).v);
	assert_true(loss_settle(&loss, &oldest, false, 0));
	assert_true(loss_next(&loss, &range));
	assert_int_equal(range.from.v, psn_make(FIRST).v);
	assert_int_equal(range.to.v, psn_make(FIRST + 5).v);
	assert_true(range.is_executed);
	/* Missing responses are requested once. */
	assert_false(loss_settle(&loss, &oldest, false, 0));
}

/* The pool had no more room for the response. */
TEST(loss_settle__asks_for_what_came_and_was_not_kept)
{
	const struct loss_request oldest = {
		.wants_response = true, .last = psn_make(FIRST + 63), .segment_psns = 64};
	struct loss_range range;

	loss_sent(&loss, 64);
	loss_on_out_of_order(&loss, psn_make(FIRST + 5), true);
	loss_on_out_of_order(&loss, psn_make(FIRST + 9), true);
	assert_true(loss_settle(&loss, &oldest, false, 0));
	loss_on_ack(&loss, psn_make(FIRST + 5), 0);
	assert_true(loss_settle(&loss, &oldest, false, 0));
	assert_true(loss_next(&loss, &range));
	assert_int_equal(range.from.v, psn_make(FIRST + 5).v);
	assert_int_equal(range.to.v, psn_make(FIRST + 9).v);
}

/* Responses 0 and 1 are requested again. Then 1 comes late, and once more with other bytes, so that
 * neither is kept; and 0 comes. */
TEST(loss_on_timer__sends_a_response_again_that_was_dropped_after_it_came)
{
	const struct loss_request oldest = {.wants_response = true, .last = psn_make(FIRST + 2)};
	const struct psn one = psn_add(loss.una, 1);
	struct loss_range range;

	loss_sent(&loss, 3);
	loss_on_out_of_order(&loss, psn_add(one, 1), true);
	assert_true(loss_settle(&loss, &oldest, false, 0));
	loss_sent_again(&loss, loss.una, 2);
	loss_on_out_of_order(&loss, one, true);
	loss_on_out_of_order(&loss, one, false);
	loss_on_ack(&loss, one, 0);
	loss_settle(&loss, &oldest, false, 0);
	loss_on_timer(&loss, false, loss_deadline_ns(&loss));
	assert_true(loss_next(&loss, &range));
	assert_int_equal(range.from.v, one.v);
}

TEST(loss_on_timer__sends_what_was_sent_again_once_more)
{
	struct loss_range range;

	loss.peer = LOSS_PEER_KEEPS;
	loss_sent(&loss, 20);
	nak();
	loss_sent_again(&loss, loss.una, 1);
	assert_false(loss_next(&loss, &range));
	assert_int_equal(loss_on_timer(&loss, false, loss_deadline_ns(&loss)), LOSS_TIMEOUT_NONE);
	assert_true(loss_next(&loss, &range));
	assert_int_equal(range.from.v, loss.una.v);
}

TEST(loss_holds__only_while_an_unknown_peer_is_tried)
{
	loss_sent(&loss, 20);
	assert_false(loss_holds(&loss));
	nak();
	assert_true(loss_holds(&loss));
	loss.peer = LOSS_PEER_DOUBTED;
	assert_true(loss_holds(&loss));
	loss.peer = LOSS_PEER_KEEPS;
	assert_false(loss_holds(&loss));
	loss.peer = LOSS_PEER_UNKNOWN;
	go_back();
	assert_false(loss_holds(&loss));
}

/* The request of a second gap has not left yet: the time until its answer is still measured. */
TEST(loss_settle__measures_each_retransmission)
{
	const struct loss_request oldest = {
		.wants_response = true, .last = psn_make(FIRST + 63), .segment_psns = 64};

	loss_sent(&loss, 64);
	loss_on_out_of_order(&loss, psn_make(FIRST + 5), true);
	assert_true(loss_settle(&loss, &oldest, false, 0));
	loss_sent_again(&loss, loss.una, 5);
	loss_on_ack(&loss, psn_make(FIRST + 6), 0);
	loss_settle(&loss, &oldest, false, 0);
	loss_on_out_of_order(&loss, psn_make(FIRST + 9), true);
	assert_true(loss_settle(&loss, &oldest, false, 0));
	loss_on_out_of_order(&loss, psn_make(FIRST + 20), true);
	assert_false(loss_settle(&loss, &oldest, false, 0));
	assert_int_equal(loss.recovery.timed, RECOVERY_TIMED_RETRANSMISSION);
}
