/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/swift.c: the window for a row of round trips. */
#include <stdint.h>
#include <string.h>

#include "transport/cc.h"
#include "transport/loss.h"
#include "transport/pacer.h"
#include "test.h"

#define BASE_NS	 UINT64_C(10000)
#define START_NS UINT64_C(1000000)

static struct cc_paths paths;
static struct pacer pacer;
static struct scoreboard board;
static struct loss loss;
static struct cc *cc;
static uint64_t now_ns;

static int set_up(TEST_STATE)
{
	static const uint8_t gid[16] = {[15] = 1};
	const struct cc_attr attr = {.kind = CC_SWIFT, .link_mbps = 100000, .paths = &paths};

	memset(&paths, 0, sizeof(paths));
	pacer = (struct pacer){0};
	loss = (struct loss){.board = &board};
	scoreboard_init(&board);
	loss_init(&loss, psn_make(0));
	assert_int_equal(cc_create(&attr, &pacer, &loss, &cc), 0);
	pacer.cc = cc;
	cc_connect(cc, gid);
	now_ns = START_NS;
	/* The path without a queue. */
	cc_path_note(cc->path, BASE_NS, now_ns);
	/* The window is obeyed from the first packet on. */
	cc_sent(cc, psn_make(0), 1, 1000, false, now_ns);
	return 0;
}

static int tear_down(TEST_STATE)
{
	cc_destroy(cc);
	scoreboard_fini(&board);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* A round trip in which the whole window was used. */
static void round_trip(uint64_t rtt_ns)
{
	now_ns += rtt_ns;
	cc->ops->answered(cc, rtt_ns, pacer.window, now_ns);
}

static void set_window(double cwnd)
{
	cc->swift.cwnd = cwnd;
	cc->swift.starts = false;
	cc->timed = false;
	pacer.window = cwnd < 1 ? 1 : (uint32_t)cwnd;
}

static void assert_near(double value, double expected)
{
	assert_true(value > 0.999 * expected && value < 1.001 * expected);
}

/* The target at a window so large that flow scaling adds nothing. */
#define TARGET_NS (BASE_NS + SWIFT_QUEUE_NS)

TEST(swift_answered__a_new_connection_doubles_its_window)
{
	round_trip(BASE_NS);
	round_trip(BASE_NS);
	assert_int_equal(pacer.window, 4 * SWIFT_CWND_FIRST);
	/* The window doubles until a round trip is too long. */
	set_window(128);
	cc->swift.starts = true;
	round_trip(TARGET_NS + 1);
	round_trip(BASE_NS);
	assert_in_range(pacer.window, 127, 129);
}

/* A host's entry is free when its last queue pair is gone, and can then be another host's. */
TEST(cc_destroy__leaves_the_entry_of_its_host)
{
	struct cc_path *const path = cc->path;

	assert_int_equal(path->users, 1);
	assert_int_equal(tear_down(NULL), 0);
	assert_int_equal(path->users, 0);
	assert_int_equal(set_up(NULL), 0);
}

TEST(cc_reset__leaves_the_entry_of_its_host)
{
	const struct cc_path *path = cc->path;

	cc_reset(cc);
	assert_int_equal(path->users, 0);
	assert_null(cc->path);
}

TEST(cc_reset__measures_a_host_without_an_entry_anew)
{
	cc_path_put(cc->path);
	cc->path = NULL;
	round_trip(BASE_NS);
	assert_int_equal(cc->alone.min_rtt_ns, BASE_NS);
	cc_reset(cc);
	cc_sent(cc, psn_make(0), 1, 1000, false, now_ns);
	round_trip(2 * BASE_NS);
	assert_int_equal(cc->alone.min_rtt_ns, 2 * BASE_NS);
}

/* While the window doubles, no queue is expected: nothing is to be measured. */
TEST(swift_answered__does_not_slow_down_at_the_start)
{
	for (int i = 0; i < 6; i++) {
		round_trip(BASE_NS);
		assert_false(cc->swift.slows);
	}
	assert_true(cc->swift.starts);
	assert_true(cc->swift.cwnd > SWIFT_SLOW_CWND);
}

TEST(swift_answered__below_the_target_one_packet_a_round_trip)
{
	set_window(200);
	round_trip(TARGET_NS - 1);
	assert_near(cc->swift.cwnd, 201);
	round_trip(TARGET_NS - 1);
	assert_near(cc->swift.cwnd, 202);
}

/* The requester did not use the window, so the round trip tells nothing about a larger one. */
TEST(swift_answered__does_not_grow_unused)
{
	set_window(200);
	now_ns += BASE_NS;
	cc->ops->answered(cc, BASE_NS, 10, now_ns);
	assert_near(cc->swift.cwnd, 200);
}

TEST(swift_answered__above_the_target_by_the_excess)
{
	const uint64_t rtt_ns = 2 * TARGET_NS;

	set_window(200);
	round_trip(rtt_ns);
	assert_near(cc->swift.cwnd, 200 * (1 - SWIFT_BETA * 0.5));
}

TEST(swift_answered__at_most_by_half)
{
	set_window(200);
	round_trip(100 * TARGET_NS);
	assert_near(cc->swift.cwnd, 100);
}

TEST(swift_answered__once_in_a_round_trip)
{
	set_window(400);
	round_trip(100 * TARGET_NS);
	now_ns += 1000;
	cc->ops->answered(cc, 100 * TARGET_NS, 200, now_ns);
	assert_near(cc->swift.cwnd, 200);
	now_ns += 100 * TARGET_NS;
	cc->ops->answered(cc, 100 * TARGET_NS, 200, now_ns);
	assert_near(cc->swift.cwnd, 100);
}

/* Flow scaling: the smaller the window, the longer the round trip may be. */
TEST(swift_answered__a_small_window_has_a_higher_target)
{
	const uint64_t rtt_ns = TARGET_NS + (uint64_t)SWIFT_RANGE_NS / 4;

	set_window(100);
	round_trip(rtt_ns);
	assert_true(cc->swift.cwnd < 100);
	/* Next to the end of the range it adds next to nothing. */
	set_window(99);
	round_trip(TARGET_NS + 1000);
	assert_true(cc->swift.cwnd < 99);
	set_window(0.5);
	round_trip(rtt_ns);
	assert_true(cc->swift.cwnd > 0.5);
	set_window(0.05);
	round_trip(TARGET_NS + (uint64_t)SWIFT_RANGE_NS - 10);
	assert_true(cc->swift.cwnd > 0.05);
	set_window(0.05);
	round_trip(TARGET_NS + (uint64_t)SWIFT_RANGE_NS + 10);
	assert_true(cc->swift.cwnd < 0.05);
}

/* Below one packet, a packet leaves each so many round trips. */
TEST(swift_sent__paces_below_one_packet)
{
	set_window(0.25);
	cc->swift.rtt_ns = 40000;
	cc_sent(cc, loss.next, 1, 1000, false, now_ns);
	assert_int_equal(cc->wait_ns, now_ns + 160000);
	pacer_poll(&pacer, now_ns + 159999);
	assert_true(pacer_holds(&pacer));
	assert_int_equal(pacer.deadline_ns, now_ns + 160000);
	pacer_poll(&pacer, now_ns + 160000);
	assert_false(pacer_holds(&pacer));
	assert_int_equal(pacer.window, 1);
}

TEST(swift_sent__not_from_one_packet_on)
{
	set_window(1);
	cc->swift.rtt_ns = 40000;
	cc_sent(cc, loss.next, 1, 1000, false, now_ns);
	assert_true(cc->wait_ns <= now_ns);
	/* A READ counts with its responses. */
	set_window(16);
	cc_sent(cc, loss.next, 64, 100, false, now_ns);
	assert_int_equal(cc->wait_ns, now_ns + 160000);
}

TEST(swift_lost__halves_once_in_a_round_trip)
{
	set_window(100);
	cc->swift.rtt_ns = 10000;
	loss.losses++;
	cc_poll(cc, now_ns);
	assert_near(cc->swift.cwnd, 50);
	cc_poll(cc, now_ns + 1);
	loss.losses++;
	cc_poll(cc, now_ns + 2);
	assert_near(cc->swift.cwnd, 50);
	loss.losses++;
	cc_poll(cc, now_ns + 10000);
	assert_near(cc->swift.cwnd, 25);
}

TEST(swift_lost__again_and_again_leaves_the_least_window)
{
	set_window(100);
	cc->swift.rtt_ns = 10000;
	for (int i = 1; i <= SWIFT_RETRIES; i++) {
		loss.losses++;
		cc_poll(cc, now_ns + (uint64_t)i * 10000);
	}
	assert_near(cc->swift.cwnd, SWIFT_CWND_MIN);
	assert_int_equal(pacer.window, 1);
	/* An answer ends the series of losses. */
	now_ns += 1000000;
	round_trip(BASE_NS);
	assert_near(cc->swift.cwnd, SWIFT_CWND_MIN + SWIFT_AI);
}

/* The time to the next packet follows the window, not the one at the last packet. */
TEST(swift_answered__opens_what_waits)
{
	set_window(SWIFT_CWND_MIN);
	cc->swift.rtt_ns = 200000;
	cc_sent(cc, loss.next, 1, 1000, false, now_ns);
	assert_int_equal(cc->wait_ns, now_ns + 20000000);
	round_trip(BASE_NS);
	assert_true(cc->wait_ns <= now_ns);
}

/* A round trip of a second does not stop the queue pair for minutes. */
TEST(swift_sent__waits_for_a_limited_time)
{
	set_window(SWIFT_CWND_MIN);
	cc->swift.rtt_ns = 1000000000;
	cc_sent(cc, loss.next, 64, 1000, false, now_ns);
	assert_int_equal(cc->wait_ns, now_ns + SWIFT_WAIT_MAX_NS);
}

/*
 * Send for so long to a host that takes `base_ns` and up to `more_ns`, whatever the window is, as
 * an emulated machine does. Return the number of packets. One packet in each flight is timed.
 */
static double send_to_late_host(uint64_t base_ns, uint64_t more_ns, uint64_t for_ns)
{
	const uint64_t end_ns = now_ns + for_ns;
	uint64_t random = 1, psn = 1;
	double sent = 0;

	while (now_ns < end_ns) {
		const uint32_t flight = pacer.window;
		uint64_t rtt_ns;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		rtt_ns = base_ns + (random >> 33) % more_ns;
		loss.una = loss.next = loss.top = psn_make((uint32_t)psn & 0xffffff);
		cc_sent(cc, loss.next, 1, 1000, false, now_ns);
		cc_poll(cc, now_ns);
		now_ns += rtt_ns;
		cc->timed = false;
		cc->ops->answered(cc, rtt_ns, flight, now_ns);
		sent += flight;
		psn += flight;
		if (cc->wait_ns > now_ns)
			now_ns = cc->wait_ns;
	}
	return sent;
}

/* The window does not matter to such a host. It takes two packets in a millisecond from a window of
 * five, and that is what it gets at least after the first second. */
TEST(swift_answered__goes_on_with_a_host_whose_delay_varies)
{
	cc->path->min_rtt_ns = 180000;
	send_to_late_host(300000, 5000000, 1000000000);
	assert_true(cc->path->is_late);
	assert_true(send_to_late_host(300000, 5000000, 1000000000) > 2000);
	/* When the host is quick again, it is not late any more. */
	send_to_late_host(180000, 5000, 10000000000);
	assert_false(cc->path->is_late);
}

/* Without a single short round trip, too. */
TEST(swift_answered__goes_on_with_a_host_that_became_slow)
{
	send_to_late_host(2000000, 100000, 1000000000);
	assert_true(cc->path->is_late);
	assert_true(send_to_late_host(2000000, 100000, 1000000000) >= 450);
}

/* Slow start has ended. Two round trips later a slowdown begins: one more packet, whose
 * acknowledgement is requested, then two at a time. */
TEST(swift_answered__slows_down_after_slow_start)
{
	set_window(200);
	round_trip(TARGET_NS - 1);
	round_trip(TARGET_NS - 1);
	assert_false(cc->swift.slows);
	round_trip(TARGET_NS - 1);
	assert_true(cc->swift.slows);
	assert_int_equal(pacer.window, 203);
	assert_true(cc_times_next(cc));
	cc_sent(cc, loss.next, 1, 1000, false, now_ns);
	assert_int_equal(pacer.window, SWIFT_SLOW_CWND);
	/* This packet was sent before the queue was gone. */
	round_trip(BASE_NS / 2);
	assert_int_equal(pacer.window, SWIFT_SLOW_CWND);
	now_ns += TARGET_NS;
	round_trip(BASE_NS / 2);
	assert_int_equal(pacer.window, 203);
	assert_int_equal(cc->path->min_rtt_ns, BASE_NS / 2);
}

static void slow_down(void)
{
	set_window(200);
	cc->path->due_ns = now_ns;
	round_trip(TARGET_NS - 1);
	assert_true(cc->swift.slows);
	cc_sent(cc, loss.next, 1, 1000, false, now_ns);
}

TEST(swift_poll__ends_a_slowdown_without_answers)
{
	slow_down();
	cc_poll(cc, now_ns + TARGET_NS);
	assert_int_equal(pacer.window, SWIFT_SLOW_CWND);
	cc_poll(cc, now_ns + (1 + SWIFT_SLOW_MAX_RTTS) * TARGET_NS);
	assert_int_equal(pacer.window, 201);
}

TEST(swift_lost__ends_a_slowdown)
{
	slow_down();
	loss.losses++;
	cc_poll(cc, now_ns + 1);
	assert_false(cc->swift.slows);
	assert_int_equal(pacer.window, 100);
}

/* A round trip without a queue was measured between two slowdowns: there is nothing to find out. */
TEST(swift_answered__does_not_slow_down_without_a_queue)
{
	slow_down();
	now_ns += TARGET_NS;
	round_trip(BASE_NS);
	assert_false(cc->swift.slows);
	now_ns += 20 * BASE_NS;
	round_trip(BASE_NS);
	now_ns = cc->path->due_ns;
	round_trip(TARGET_NS - 1);
	assert_false(cc->swift.slows);
	/* The next time it is in doubt again. */
	now_ns = cc->path->due_ns;
	round_trip(TARGET_NS - 1);
	assert_true(cc->swift.slows);
}

/* The first packets behind a slowdown find no queue, whether or not there is one otherwise. */
TEST(swift_answered__slows_down_again_if_only_the_first_packets_were_quick)
{
	slow_down();
	now_ns += TARGET_NS;
	round_trip(BASE_NS);
	assert_false(cc->swift.slows);
	round_trip(BASE_NS);
	now_ns = cc->path->due_ns;
	round_trip(TARGET_NS - 1);
	assert_true(cc->swift.slows);
}

/* Another queue pair to the host slows down. The packets of both meet only for two round trips. */
TEST(swift_answered__joins_a_slowdown_at_once_or_not_at_all)
{
	const uint64_t rtt_ns = TARGET_NS - 1;

	for (uint64_t late = 0; late < 2; late++) {
		cc->swift.slows = false;
		set_window(200);
		cc->path->due_ns = now_ns + 100 * rtt_ns;
		cc->path->slow_ns = now_ns - rtt_ns - late;
		round_trip(rtt_ns);
		assert_int_equal(cc->swift.slows, !late);
	}
}

/* Two flows share a link that serves a packet each 100 ns. The round trip settles near the target,
 * and the link is never idle. */
TEST(swift_answered__settles_near_the_target)
{
	double least = 1e9, most = 0;

	set_window(8);
	for (int i = 0; i < 2000; i++) {
		const double queue_ns = 2 * cc->swift.cwnd * 100 - (double)BASE_NS;
		const uint64_t rtt_ns = BASE_NS + (queue_ns > 0 ? (uint64_t)queue_ns : 0);

		round_trip(rtt_ns);
		if (i >= 1000) {
			least = RTE_MIN(least, queue_ns);
			most = RTE_MAX(most, queue_ns);
		}
	}
	assert_true(least > 0.5 * SWIFT_QUEUE_NS);
	assert_true(most < 1.2 * SWIFT_QUEUE_NS);
}
