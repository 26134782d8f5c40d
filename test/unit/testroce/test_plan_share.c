/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a plan that its threads get. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mode.h"
#include "plan.h"
#include "test.h"

static struct plan plan;
static char error[256];

static int setup(TEST_STATE)
{
	plan_init(&plan);
	error[0] = '\0';
	return 0;
}

TEST_FIXTURE(setup, NULL);

static int check(void)
{
	return plan_check(&plan, error, sizeof(error));
}

TEST(plan_share__of_one_thread_is_the_whole)
{
	struct plan share;

	plan.messages = 17;
	plan.region_bytes = 12345;
	plan_share(&plan, 0, &share);
	assert_memory_equal(&share, &plan, sizeof(plan));
}

/* All parts together are the whole, and each thread and queue pair has a part of it. */
TEST(plan_share__divides_queue_pairs_and_messages)
{
	static const uint64_t numbers[] = {1, 2, 3, 7, 31, 32, 100, PLAN_QPS_MAX};

	for (size_t i = 0; i < 8 * 8 * PLAN_THREADS_MAX; i++) {
		uint64_t qps = 0, messages = 0;

		plan.threads = i / 64 + 1;
		plan.qps = numbers[i % 8];
		plan.messages = numbers[i / 8 % 8];
		if (plan.threads > plan.qps || plan.messages < plan.threads) {
			assert_int_equal(check(), -EINVAL);
			continue;
		}
		assert_int_equal(check(), 0);
		for (uint64_t thread = 0; thread < plan.threads; thread++) {
			struct plan share;

			plan_share(&plan, thread, &share);
			assert_int_equal(share.threads, 1);
			assert_in_range(share.qps, plan.qps / plan.threads,
					plan.qps / plan.threads + 1);
			assert_in_range(share.messages, 1, plan.messages);
			assert_in_range(share.messages, plan.messages / plan.qps * share.qps,
					(plan.messages / plan.qps + 1) * share.qps);
			qps += share.qps;
			messages += share.messages;
		}
		assert_int_equal(qps, plan.qps);
		assert_int_equal(messages, plan.messages);
	}
}

TEST(plan_share__a_timed_test_stays_timed)
{
	struct plan share;

	plan.threads = 2;
	plan.qps = 5;
	plan_share(&plan, 1, &share);
	assert_int_equal(share.messages, 0);
	assert_int_equal(share.duration_ns, plan.duration_ns);
}

TEST(plan_share__divides_the_region_by_queue_pairs)
{
	struct plan first, second;

	plan.threads = 2;
	plan.qps = 3;
	plan.region_bytes = 3 << 20;
	plan_share(&plan, 0, &first);
	plan_share(&plan, 1, &second);
	assert_int_equal(first.region_bytes, 2 << 20);
	assert_int_equal(second.region_bytes, 1 << 20);
	/* 0 would be the default, which is more. */
	plan.region_bytes = 1;
	plan_share(&plan, 1, &second);
	assert_int_equal(second.region_bytes, 1);
	plan.region_bytes = 0;
	plan_share(&plan, 0, &first);
	assert_int_equal(first.region_bytes, 0);
	/* All threads together have a disk of the default size. */
	plan.mode = MODE_STORAGE;
	plan.qps = 4;
	plan_share(&plan, 0, &first);
	assert_int_equal(first.region_bytes, PLAN_DISK_DEFAULT / 2);
}

static uint64_t spread_of(const struct plan *of, uint64_t depth)
{
	const struct slots slots = plan_slots(of, depth);

	return slots_bytes(&slots);
}

/* Without --region all threads together use the memory of a test of one thread. */
TEST(plan_share__divides_the_default_memory)
{
	static const uint64_t depths[] = {1, 8, 100, 101, 200};

	plan.size_bytes = 1 << 20;
	plan.qps = 8;
	plan.depth = 100;
	for (uint64_t threads = 1; threads <= 8; threads *= 2) {
		plan.threads = threads;
		for (size_t i = 0; i < 5; i++) {
			uint64_t bytes = 0;

			for (uint64_t thread = 0; thread < threads; thread++) {
				struct plan share;

				plan_share(&plan, thread, &share);
				bytes += spread_of(&share, depths[i]);
			}
			assert_int_equal(bytes, spread_of(&plan, depths[i]));
		}
	}
	assert_int_equal(spread_of(&plan, 100), PLAN_SPREAD_DEFAULT);
	assert_int_equal(spread_of(&plan, 1), 8 << 20);
}

TEST(plan_share__seeds_differ)
{
	struct plan first, second;

	plan.threads = plan.qps = 2;
	plan_share(&plan, 0, &first);
	plan_share(&plan, 1, &second);
	assert_int_not_equal(first.seed, second.seed);
}

TEST(plan_check_shares__each_thread_needs_a_queue_pair_and_a_message)
{
	plan.threads = 3;
	plan.qps = 2;
	assert_int_equal(check(), -EINVAL);
	assert_non_null(strstr(error, "3 threads"));
	plan.qps = 3;
	assert_int_equal(check(), 0);
	plan.messages = 2;
	assert_int_equal(check(), -EINVAL);
	plan.messages = 3;
	assert_int_equal(check(), 0);
}

/* The memory of a side is that of all its threads. */
TEST(plan_check_shares__bounds_the_memory_of_all_threads)
{
	plan.size_bytes = UINT64_C(1) << 20;
	plan.verify = 1;
	plan.qps = 32;
	plan.depth = 126;
	assert_int_equal(check(), 0);
	plan.threads = 32;
	assert_int_equal(check(), 0);
	plan.depth = 128;
	assert_int_equal(check(), -EINVAL);
	assert_non_null(strstr(error, "4 GiB"));
}

/* The part of each thread must make sense for the mode. */
TEST(plan_check_shares__checks_the_part_of_each_thread)
{
	plan.mode = MODE_STORAGE;
	plan.size_bytes = 4096;
	plan.qps = 3;
	plan.depth = 10;
	plan.region_bytes = 2 * 3 * 10 * 4096 + 4096;
	plan.threads = 2;
	assert_int_equal(check(), 0);
	plan.region_bytes -= 2 * 4096;
	assert_int_equal(check(), -EINVAL);
}
