/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: values by name, their limits, and places of messages. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "endpoint.h"
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

static int set(const char *name, const char *value)
{
	return plan_set(&plan, name, value, error, sizeof(error));
}

static int check(void)
{
	return plan_check(&plan, error, sizeof(error));
}

TEST(plan_parse_number__takes_units)
{
	uint64_t value;

	assert_true(plan_parse_number("4096", &value));
	assert_int_equal(value, 4096);
	assert_true(plan_parse_number("64k", &value));
	assert_int_equal(value, 65536);
	assert_true(plan_parse_number("3G", &value));
	assert_int_equal(value, UINT64_C(3) << 30);
}

TEST(plan_parse_number__refuses_what_is_none)
{
	static const char *const bad[] = {
		"", "-1", "1x", "1KK", "k", " 1", "99999999999999999999", "18446744073709551615G"};
	uint64_t value;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(plan_parse_number(bad[i], &value));
}

TEST(plan_set__what_was_set_is_told)
{
	static const char *const values[][2] = {
		{"mode", "latency"},   {"op", "read"},	       {"size", "100"},
		{"qps", "12"},	       {"threads", "3"},       {"depth", "32"},
		{"mtu", "2048"},       {"batch", "4"},	       {"signal", "8"},
		{"inline", "0"},       {"region", "8192"},     {"seconds", "3"},
		{"messages", "17"},    {"verify", "on"},       {"seed", "99"},
		{"read-percent", "5"}, {"in-capsule", "8192"}, {"without", "fused-copy,prefetch"},
		{"loss", "100"},
	};
	char value[64];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(set(values[i][0], values[i][1]), 0);
		plan_get(&plan, values[i][0], value, sizeof(value));
		assert_string_equal(value, values[i][1]);
	}
	for (size_t i = 0; plan_names[i]; i++) {
		plan_get(&plan, plan_names[i], value, sizeof(value));
		assert_string_not_equal(value, "");
	}
}

TEST(plan_set__refuses_with_a_reason)
{
	static const char *const bad[][2] = {
		{"mode", "fly"},
		{"op", "fly"},
		{"size", "0"},
		{"size", "2G"},
		{"qps", "0"},
		{"threads", "0"},
		{"threads", "33"},
		{"mtu", "1000"},
		{"mtu", "8192"},
		{"batch", "65"},
		{"verify", "1"},
		{"seconds", "0.001"},
		{"seconds", "nan"},
		{"seconds", "1s"},
		{"depth", "x"},
		{"inline", "4096"},
		{"without", "luck"},
		{"loss", "1000000"},
		{"without", "prefetch,luck"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct plan before = plan;

		error[0] = '\0';
		assert_int_equal(set(bad[i][0], bad[i][1]), -EINVAL);
		assert_non_null(strstr(error, bad[i][1]));
		assert_memory_equal(&plan, &before, sizeof(plan));
	}
	assert_int_equal(set("nothing", "1"), -ENOENT);
}

TEST(plan_check__takes_the_defaults_of_each_mode)
{
	for (uint64_t mode = 0; mode < MODE_COUNT; mode++) {
		plan_init(&plan);
		plan.mode = mode;
		plan_default_size(&plan);
		assert_int_equal(check(), 0);
		plan.verify = 1;
		plan_default_size(&plan);
		/* A program cannot check the bytes of a null region. */
		assert_int_equal(check(), mode == MODE_SINK || mode == MODE_NULL ? -EINVAL : 0);
	}
}

TEST(plan_check__refuses_what_does_not_fit)
{
	plan.batch = 65;
	assert_int_equal(check(), -EINVAL);
	setup(NULL);
	plan.depth = 4;
	plan.batch = 5;
	assert_int_equal(check(), -EINVAL);
	setup(NULL);
	plan.signal = plan.depth + 1;
	assert_int_equal(check(), -EINVAL);
	setup(NULL);
	plan.mode = MODE_ATOMIC;
	assert_int_equal(check(), -EINVAL);
	setup(NULL);
	plan.verify = 1;
	plan.size_bytes = 7;
	assert_int_equal(check(), -EINVAL);
}

/* A peer may send any numbers. */
TEST(plan_check__refuses_any_field_out_of_range)
{
	for (size_t i = 0; i < sizeof(plan) / sizeof(uint64_t); i++) {
		uint64_t *field = (uint64_t *)(void *)&plan + i;

		if (field == &plan.messages || field == &plan.duration_ns || field == &plan.seed)
			continue;
		setup(NULL);
		*field = UINT64_MAX;
		assert_int_equal(check(), -EINVAL);
	}
}

TEST(plan_check__bounds_memory)
{
	plan.size_bytes = UINT64_C(1) << 30;
	plan.verify = 1;
	assert_int_equal(check(), -EINVAL);
	plan.verify = 0;
	assert_int_equal(check(), 0);
	plan.qps = PLAN_QPS_MAX;
	plan.depth = 16384;
	assert_int_equal(check(), 0);
}

/* The latency mode has two slots for each queue pair and direction, whatever the depth. */
TEST(plan_check__counts_the_places_of_the_latency_mode)
{
	plan.mode = MODE_LATENCY;
	plan.size_bytes = UINT64_C(64) << 20;
	assert_int_equal(check(), 0);
	plan.size_bytes = UINT64_C(1) << 20;
	plan.qps = 64;
	assert_int_equal(check(), 0);
	plan.size_bytes = UINT64_C(1) << 30;
	plan.qps = 1;
	plan.depth = 1;
	assert_int_equal(check(), 0);
	plan.qps = 2;
	assert_int_equal(check(), -EINVAL);
	assert_non_null(strstr(error, "4 GiB"));
	plan.size_bytes = 64;
	plan.region_bytes = PLAN_REGION_MAX;
	assert_int_equal(check(), -EINVAL);
}

/* A server gives no more to whoever asks. */
TEST(plan_check__no_mode_takes_more_than_the_limit)
{
	static const uint64_t sizes[] = {8, 4096, UINT64_C(1) << 20, UINT64_C(1) << 30};
	static const uint64_t counts[] = {1, 2, 3, 64, PLAN_QPS_MAX};
	static const uint64_t regions[] = {0, 1, UINT64_C(1) << 30, PLAN_REGION_MAX};

	for (size_t i = 0; i < 4 * 5 * 5 * 4 * MODE_COUNT * 2; i++) {
		struct endpoint_config active = {0}, passive = {0};

		plan.size_bytes = sizes[i % 4];
		plan.qps = counts[i / 4 % 5];
		plan.depth = counts[i / 20 % 5];
		plan.region_bytes = regions[i / 100 % 4];
		plan.mode = i / 400 % MODE_COUNT;
		plan.verify = i / 400 / MODE_COUNT;
		if (check() != 0)
			continue;
		active.qps = passive.qps = (uint32_t)plan.qps;
		modes[plan.mode]->shape(&plan, &active, &passive);
		assert_true(active.region_bytes <= PLAN_REGION_MAX);
		assert_true(passive.region_bytes <= PLAN_REGION_MAX);
	}
}

TEST(plan_slots__all_places_are_inside)
{
	static const struct {
		uint64_t size, qps, depth, region, verify;
	} cases[] = {
		{8, 1, 1, 0, 0},
		{65536, 16, 64, 0, 0},
		{UINT64_C(1) << 30, 3, 64, 0, 0},
		{4096, 100, 33, 1, 0},
		{4096, 4, 8, 64 << 20, 0},
		{100, 7, 5, 12345, 1},
		{8, PLAN_QPS_MAX, 256, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slots slots;

		plan.size_bytes = cases[i].size;
		plan.qps = cases[i].qps;
		plan.depth = cases[i].depth;
		plan.region_bytes = cases[i].region;
		plan.verify = cases[i].verify;
		slots = plan_slots(&plan, plan.depth);
		assert_true(slots.per_qp >= plan.depth);
		for (uint64_t qp = 0; qp < plan.qps; qp++)
			for (uint64_t n = 0; n < 2 * slots.per_qp; n += 1 + slots.per_qp / 7)
				assert_true(slot_of(&slots, qp, n) + plan.size_bytes <=
					    slots_bytes(&slots));
	}
}

TEST(plan_slots__verified_messages_share_none)
{
	struct slots slots;

	plan.verify = 1;
	plan.qps = 3;
	plan.size_bytes = 100;
	slots = plan_slots(&plan, 5);
	assert_int_equal(slots.stride_bytes, 128);
	for (uint64_t qp = 0; qp < 3; qp++)
		for (uint64_t n = 0; n < 5; n++)
			assert_int_equal(slot_of(&slots, qp, n), (qp * 5 + n) * 128);
}

TEST(plan_slots__a_region_that_is_named_is_all_there_is)
{
	struct slots slots;

	plan.region_bytes = 512 << 10;
	slots = plan_slots(&plan, 128);
	assert_int_equal(slots_bytes(&slots), 512 << 10);
	plan.region_bytes = 1;
	slots = plan_slots(&plan, 128);
	assert_int_equal(slots_bytes(&slots), plan.size_bytes);
	/* The region does not bound the latency mode, which looks at each message. */
	plan.mode = MODE_LATENCY;
	slots = plan_slots(&plan, 128);
	assert_int_equal(slots_bytes(&slots), 128 * plan.size_bytes);
}

TEST(plan_timeout__is_shorter_where_packets_are_lost, .bare = true)
{
	uint8_t sound;

	plan_init(&plan);
	sound = plan_timeout(&plan);
	plan.loss_ppm = 1;
	assert_true(plan_timeout(&plan) < sound);
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

TEST(plan_check__each_thread_needs_a_queue_pair_and_a_message)
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
TEST(plan_check__bounds_the_memory_of_all_threads)
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
TEST(plan_check__checks_the_part_of_each_thread)
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
