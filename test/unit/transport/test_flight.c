/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of transport/flight.h: PSNs and packets in the air, across the wrap of PSNs. */
#include <stddef.h>
#include <stdint.h>

#include "transport/flight.h"
#include "test.h"

/* Two packets before PSNs wrap. */
#define FIRST 0xfffffeu

static struct flight flight;

static int set_up(TEST_STATE)
{
	flight = (struct flight){.max_responses = 3};
	flight_init(&flight, psn_make(FIRST));
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static void expect(uint32_t una, uint32_t next, uint32_t top)
{
	assert_int_equal(flight.una.v, una);
	assert_int_equal(flight.next.v, next);
	assert_int_equal(flight.top.v, top);
}

TEST(flight_init__nothing_is_in_the_air)
{
	flight_sent(&flight, 9);
	flight.responses = 2;
	flight.window = 7;
	flight_init(&flight, psn_make(5));
	expect(5, 5, 5);
	assert_int_equal(flight_outstanding(&flight), 0);
	assert_int_equal(flight.responses, 0);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX);
	/* An attribute of the queue pair, not of the flight. */
	assert_int_equal(flight.max_responses, 3);
}

TEST(flight_sent__moves_on_over_the_wrap)
{
	flight_sent(&flight, 1);
	expect(FIRST, 0xffffff, 0xffffff);
	flight_sent(&flight, 4);
	expect(FIRST, 3, 3);
	assert_int_equal(flight_outstanding(&flight), 5);
}

TEST(flight_sent__again_does_not_move_the_top)
{
	flight_sent(&flight, 10);
	flight_rewind(&flight, true);
	flight_sent(&flight, 4);
	expect(FIRST, 2, 8);
	flight_sent(&flight, 7);
	expect(FIRST, 9, 9);
}

TEST(flight_full__at_the_window)
{
	flight_sent(&flight, FLIGHT_WINDOW_MAX - 1);
	assert_false(flight_full(&flight));
	flight_sent(&flight, 1);
	assert_true(flight_full(&flight));
	/* A READ's responses may reach beyond it. */
	flight_sent(&flight, 63);
	assert_true(flight_full(&flight));
	flight_acked(&flight, psn_make(FIRST + 64));
	assert_false(flight_full(&flight));
}

TEST(flight_acked__moves_the_oldest_over_the_wrap)
{
	flight_sent(&flight, 6);
	flight_acked(&flight, psn_make(1));
	expect(1, 4, 4);
	assert_int_equal(flight_outstanding(&flight), 3);
}

TEST(flight_acked__what_was_to_be_sent_again_is_skipped)
{
	flight_sent(&flight, 6);
	flight_rewind(&flight, true);
	flight_sent(&flight, 1);
	flight_acked(&flight, psn_make(2));
	expect(2, 2, 4);
	assert_int_equal(flight_outstanding(&flight), 0);
}

TEST(flight_rewind__goes_back_to_the_oldest)
{
	flight_sent(&flight, 6);
	flight.responses = 2;
	flight_acked(&flight, psn_make(0));
	flight_rewind(&flight, false);
	expect(0, 0, 4);
	assert_int_equal(flight.responses, 0);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX);
}

TEST(flight_rewind__a_loss_halves_the_window_down_to_its_least)
{
	flight_rewind(&flight, true);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
	for (int i = 0; i < 10; i++)
		flight_rewind(&flight, true);
	assert_true(flight.window >= FLIGHT_WINDOW_MIN);
	assert_true(flight.window <= 2 * FLIGHT_WINDOW_MIN);
}

TEST(flight_acked__a_window_acknowledged_widens_the_window)
{
	flight_rewind(&flight, true);
	flight_sent(&flight, FLIGHT_WINDOW_MAX);
	flight_acked(&flight, psn_make(FIRST + FLIGHT_WINDOW_MAX / 2 - 1));
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
	flight_acked(&flight, psn_make(FIRST + FLIGHT_WINDOW_MAX / 2));
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2 + FLIGHT_WINDOW_STEP);
}

TEST(flight_acked__the_window_has_a_limit)
{
	for (int i = 0; i < 10; i++) {
		flight_sent(&flight, FLIGHT_WINDOW_MAX);
		flight_acked(&flight, flight.next);
		assert_int_equal(flight.window, FLIGHT_WINDOW_MAX);
	}
}

/* Each window that a queue pair may be made with opens, and narrows within its limits. */
TEST(flight_init__takes_each_window, .bare = true)
{
	for (uint32_t max = 1; max <= FLIGHT_WINDOW_LIMIT; max++) {
		const uint32_t least = max < FLIGHT_WINDOW_MIN ? max : FLIGHT_WINDOW_MIN;

		flight = (struct flight){.window_max = max};
		flight_init(&flight, psn_make(FIRST));
		assert_false(flight_full(&flight));
		flight_sent(&flight, max);
		assert_true(flight_full(&flight));
		for (int i = 0; i < 12; i++) {
			flight_rewind(&flight, true);
			assert_in_range(flight.window, least, max);
		}
		for (uint32_t i = 0; flight.window < max; i++) {
			assert_in_range(i, 0, max);
			flight_sent(&flight, flight.window);
			flight_acked(&flight, flight.next);
		}
		assert_int_equal(flight.window, max);
		flight_init(&flight, psn_make(5));
		assert_int_equal(flight.window_max, max);
	}
}

TEST(flight_retransmit__narrows_the_window_once_for_one_flight)
{
	flight_sent(&flight, 20);
	flight_acked(&flight, psn_make(FIRST + 3));
	flight_retransmit(&flight, RETRANSMIT_REQUEST, psn_make(FIRST + 4));
	expect((FIRST + 3) & PSN_MASK, (FIRST + 20) & PSN_MASK, (FIRST + 20) & PSN_MASK);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
	flight_acked(&flight, psn_make(FIRST + 10));
	flight_retransmit(&flight, RETRANSMIT_REQUEST, psn_make(FIRST + 11));
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
	flight_sent(&flight, 5);
	flight_acked(&flight, psn_make(FIRST + 20));
	flight_retransmit(&flight, RETRANSMIT_REQUEST, psn_make(FIRST + 21));
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 4);
}

/* So many PSNs without a loss. */
static void age(uint32_t psns)
{
	while (psns > 0) {
		const uint32_t n = psns < FLIGHT_WINDOW_MAX ? psns : FLIGHT_WINDOW_MAX;

		flight_sent(&flight, n);
		flight_acked(&flight, flight.next);
		psns -= n;
	}
}

TEST(flight_retransmit__narrows_the_window_however_long_nothing_was_lost, .bare = true)
{
	static const uint32_t quiet[] = {0,	   1000,	   (1u << 23) - 1,
					 1u << 23, (1u << 23) + 1, (1u << 24) - 10};

	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
		set_up(state);
		/* Also where a loss has set the mark before. */
		flight_sent(&flight, 20);
		flight_retransmit(&flight, RETRANSMIT_REQUEST, psn_add(flight.una, 1));
		flight_acked(&flight, flight.next);
		flight.retransmit = RETRANSMIT_NONE;
		flight.window = FLIGHT_WINDOW_MAX;
		age(quiet[i]);
		flight_sent(&flight, 20);
		flight_retransmit(&flight, RETRANSMIT_REQUEST, psn_add(flight.una, 1));
		assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
	}
}

TEST(flight_acked__moves_a_retransmission_along)
{
	flight_sent(&flight, 20);
	flight_retransmit(&flight, RETRANSMIT_REQUEST, psn_add(flight.una, 10));
	flight_acked(&flight, psn_make(FIRST + 3));
	assert_int_equal(flight.retransmit_next.v, psn_make(FIRST + 3).v);
	flight.retransmit_next = psn_make(FIRST + 8);
	flight_acked(&flight, psn_make(FIRST + 5));
	assert_int_equal(flight.retransmit_next.v, psn_make(FIRST + 8).v);
}

TEST(flight_holds__only_while_an_unknown_peer_is_tried)
{
	flight_sent(&flight, 20);
	assert_false(flight_holds(&flight));
	flight_retransmit(&flight, RETRANSMIT_RESPONSE, psn_make(FIRST + 1));
	assert_false(flight_holds(&flight));
	flight_retransmit(&flight, RETRANSMIT_REQUEST, psn_make(FIRST + 1));
	assert_true(flight_holds(&flight));
	flight_peer_keeps(&flight);
	assert_false(flight_holds(&flight));
	flight.peer = FLIGHT_PEER_UNKNOWN;
	flight_rewind(&flight, true);
	assert_false(flight_holds(&flight));
}
