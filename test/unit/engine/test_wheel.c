/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/wheel.c. */
#include <stdlib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/wheel.h"
#include "fake_device.h"
#include "test.h"

#define SLOT_NS	 (UINT64_C(1) << WHEEL_SLOT_SHIFT)
#define ROUND_NS (WHEEL_SLOTS * SLOT_NS)
#define START_NS UINT64_C(123456789)
#define QPS	 200
#define MANY_QPS 10000

static struct wheel wheel;
static struct qp qp, other;

static int set_up(TEST_STATE)
{
	static const uint8_t mac[6];

	wheel_init(&wheel, START_NS);
	fake_qp_init(&qp, mac);
	fake_qp_init(&other, mac);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

TEST(wheel_fire__not_before_the_deadline_and_soon_after)
{
	const uint64_t deadline = START_NS + 1000000;

	wheel_set(&wheel, &qp, deadline);
	assert_null(wheel_fire(&wheel, deadline - 1));
	assert_null(wheel_fire(&wheel, deadline));
	assert_ptr_equal(wheel_fire(&wheel, deadline + SLOT_NS), &qp);
	assert_null(wheel_fire(&wheel, deadline + SLOT_NS));
	assert_false(qp.sched.is_timed);
}

TEST(wheel_set__an_earlier_deadline_counts)
{
	wheel_set(&wheel, &qp, START_NS + 100 * SLOT_NS);
	wheel_set(&wheel, &qp, START_NS + 10 * SLOT_NS);
	assert_ptr_equal(wheel_fire(&wheel, START_NS + 12 * SLOT_NS), &qp);
	assert_int_equal(wheel.entries, 0);
}

TEST(wheel_set__a_later_deadline_is_left_for_firing)
{
	wheel_set(&wheel, &qp, START_NS + 10 * SLOT_NS);
	wheel_set(&wheel, &qp, START_NS + 100 * SLOT_NS);
	assert_int_equal(wheel.entries, 1);
	assert_ptr_equal(wheel_fire(&wheel, START_NS + 12 * SLOT_NS), &qp);
}

TEST(wheel_set__no_deadline_sets_nothing)
{
	wheel_set(&wheel, &qp, UINT64_MAX);
	assert_int_equal(wheel.entries, 0);
}

TEST(wheel_set__the_past_fires_next)
{
	wheel_set(&wheel, &qp, 1);
	assert_ptr_equal(wheel_fire(&wheel, START_NS + SLOT_NS), &qp);
}

/* Further than a round: it comes round early, to be set again, and never late. */
TEST(wheel_set__far_deadlines_go_round)
{
	const uint64_t deadline = START_NS + 5 * ROUND_NS / 2;
	uint64_t now = START_NS;
	unsigned int rounds = 0;

	wheel_set(&wheel, &qp, deadline);
	while (now < deadline + 2 * SLOT_NS) {
		now += SLOT_NS;
		if (!wheel_fire(&wheel, now))
			continue;
		rounds++;
		if (now >= deadline)
			break;
		wheel_set(&wheel, &qp, deadline);
	}
	assert_true(now >= deadline && now <= deadline + SLOT_NS);
	assert_in_range(rounds, 2, 4);
}

TEST(wheel_fire__after_a_long_sleep_gives_all)
{
	wheel_set(&wheel, &qp, START_NS + 3 * SLOT_NS);
	wheel_set(&wheel, &other, START_NS + 900 * SLOT_NS);
	assert_non_null(wheel_fire(&wheel, START_NS + 40 * ROUND_NS));
	assert_non_null(wheel_fire(&wheel, START_NS + 40 * ROUND_NS));
	assert_null(wheel_fire(&wheel, START_NS + 40 * ROUND_NS));
	/* The wheel goes on from that time. */
	wheel_set(&wheel, &qp, START_NS + 40 * ROUND_NS + 2 * SLOT_NS);
	assert_null(wheel_fire(&wheel, START_NS + 40 * ROUND_NS + SLOT_NS));
	assert_ptr_equal(wheel_fire(&wheel, START_NS + 40 * ROUND_NS + 3 * SLOT_NS), &qp);
}

TEST(wheel_remove__takes_out_of_the_middle)
{
	struct qp third;

	fake_qp_init(&third, qp.dst_mac);
	wheel_set(&wheel, &qp, START_NS + 5 * SLOT_NS);
	wheel_set(&wheel, &other, START_NS + 5 * SLOT_NS);
	wheel_set(&wheel, &third, START_NS + 5 * SLOT_NS);
	wheel_remove(&wheel, &other);
	wheel_remove(&wheel, &other);
	assert_ptr_equal(wheel_fire(&wheel, START_NS + ROUND_NS), &qp);
	assert_ptr_equal(wheel_fire(&wheel, START_NS + ROUND_NS), &third);
	assert_null(wheel_fire(&wheel, START_NS + ROUND_NS));
}

TEST(wheel_next_ns__tells_how_long_to_sleep)
{
	assert_int_equal(wheel_next_ns(&wheel, START_NS, 777), 777);
	wheel_set(&wheel, &qp, START_NS + 10 * SLOT_NS);
	assert_in_range(wheel_next_ns(&wheel, START_NS, 1 << 30), 10 * SLOT_NS, 11 * SLOT_NS);
	assert_int_equal(wheel_next_ns(&wheel, START_NS, SLOT_NS), SLOT_NS);
	assert_int_equal(wheel_next_ns(&wheel, START_NS + 20 * SLOT_NS, SLOT_NS), 0);
}

/* Compare with a sorted list: every deadline fires in the first slot that begins after it. */
TEST(wheel_fire__as_a_sorted_list_would)
{
	static struct qp qps[QPS];
	uint64_t now = START_NS;

	srand(4791);
	for (int i = 0; i < QPS; i++) {
		fake_qp_init(&qps[i], qp.dst_mac);
		qps[i].deadline_ns = START_NS + (uint64_t)rand() % ROUND_NS;
		wheel_set(&wheel, &qps[i], qps[i].deadline_ns);
	}
	while (now < START_NS + ROUND_NS + SLOT_NS) {
		const uint64_t before = now;
		struct qp *fired;

		now += (uint64_t)rand() % (20 * SLOT_NS);
		while ((fired = wheel_fire(&wheel, now)) != NULL) {
			assert_true(fired->deadline_ns < now);
			assert_true(fired->deadline_ns + SLOT_NS > (before & ~(SLOT_NS - 1)));
			fired->timeouts++;
		}
	}
	for (int i = 0; i < QPS; i++)
		assert_int_equal(qps[i].timeouts, 1);
}

/* Many paced queue pairs: each fires again and again, soon after its deadline, and never before. */
TEST(wheel_fire__holds_ten_thousand_paced_queue_pairs)
{
	static struct qp qps[MANY_QPS];
	const uint64_t end = START_NS + 3 * ROUND_NS;
	uint64_t now = START_NS, late_ns = 0;
	unsigned int fired = 0;
	struct qp *each;

	srand(4791);
	for (int i = 0; i < MANY_QPS; i++) {
		fake_qp_init(&qps[i], qp.dst_mac);
		qps[i].deadline_ns = START_NS + (uint64_t)rand() % 1000000;
		wheel_set(&wheel, &qps[i], qps[i].deadline_ns);
	}
	assert_int_equal(wheel.entries, MANY_QPS);
	while (now < end) {
		now += (uint64_t)rand() % (2 * SLOT_NS);
		while ((each = wheel_fire(&wheel, now)) != NULL) {
			assert_true(each->deadline_ns < now);
			late_ns = RTE_MAX(late_ns, now - each->deadline_ns);
			each->timeouts++;
			fired++;
			/* The time between its packets: 0.1 to 2 ms. */
			each->deadline_ns = now + 100000 + (uint64_t)(each - qps) * 190;
			wheel_set(&wheel, each, each->deadline_ns);
		}
	}
	/* An entry fires at most a slot and an engine poll late. */
	assert_true(late_ns <= 3 * SLOT_NS);
	assert_int_equal(wheel.entries, MANY_QPS);
	for (int i = 0; i < MANY_QPS; i++) {
		const uint64_t period_ns = 100000 + (uint64_t)i * 190;

		assert_in_range(qps[i].timeouts, (end - START_NS) / (period_ns + 3 * SLOT_NS) - 1,
				(end - START_NS) / period_ns + 2);
	}
	print_message("%u firings\n", fired);
}
