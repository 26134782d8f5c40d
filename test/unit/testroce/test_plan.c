/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: values by name, their limits, and places of messages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint.h"
#include "mode.h"
#include "plan.h"

static struct plan plan;
static char error[256];

static int setup(void **state)
{
	(void)state;
	plan_init(&plan);
	error[0] = '\0';
	return 0;
}

static int set(const char *name, const char *value)
{
	return plan_set(&plan, name, value, error, sizeof(error));
}

static int check(void)
{
	return plan_check(&plan, error, sizeof(error));
}

static void plan_parse_number__takes_units(void **state)
{
	uint64_t value;

	(void)state;
	assert_true(plan_parse_number("4096", &value));
	assert_int_equal(value, 4096);
	assert_true(plan_parse_number("64k", &value));
	assert_int_equal(value, 65536);
	assert_true(plan_parse_number("3G", &value));
	assert_int_equal(value, UINT64_C(3) << 30);
}

static void plan_parse_number__refuses_what_is_none(void **state)
{
	static const char *const bad[] = {
		"", "-1", "1x", "1KK", "k", " 1", "99999999999999999999", "18446744073709551615G"};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(plan_parse_number(bad[i], &value));
}

static void plan_set__what_was_set_is_told(void **state)
{
	static const char *const values[][2] = {
		{"mode", "latency"},   {"op", "read"},
		{"size", "100"},       {"qps", "12"},
		{"depth", "32"},       {"mtu", "2048"},
		{"batch", "4"},	       {"signal", "8"},
		{"inline", "0"},       {"region", "8192"},
		{"seconds", "3"},      {"messages", "17"},
		{"verify", "on"},      {"seed", "99"},
		{"read-percent", "5"}, {"without", "fused-copy,prefetch"},
		{"loss", "100"},
	};
	char value[64];

	(void)state;
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

static void plan_set__refuses_with_a_reason(void **state)
{
	static const char *const bad[][2] = {
		{"mode", "fly"},
		{"op", "fly"},
		{"size", "0"},
		{"size", "2G"},
		{"qps", "0"},
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

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct plan before = plan;

		error[0] = '\0';
		assert_int_equal(set(bad[i][0], bad[i][1]), -EINVAL);
		assert_non_null(strstr(error, bad[i][1]));
		assert_memory_equal(&plan, &before, sizeof(plan));
	}
	assert_int_equal(set("nothing", "1"), -ENOENT);
}

static void plan_check__takes_the_defaults_of_each_mode(void **state)
{
	(void)state;
	for (uint64_t mode = 0; mode < MODE_COUNT; mode++) {
		plan_init(&plan);
		plan.mode = mode;
		plan_default_size(&plan);
		assert_int_equal(check(), 0);
		plan.verify = 1;
		plan_default_size(&plan);
		/* Nobody can look into a null region. */
		assert_int_equal(check(), mode == MODE_SINK || mode == MODE_NULL ? -EINVAL : 0);
	}
}

static void plan_check__refuses_what_does_not_fit(void **state)
{
	(void)state;
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

/* From the network come any numbers. */
static void plan_check__refuses_any_field_out_of_range(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(plan) / sizeof(uint64_t); i++) {
		uint64_t *field = (uint64_t *)(void *)&plan + i;

		if (field == &plan.messages || field == &plan.duration_ns || field == &plan.seed)
			continue;
		setup(NULL);
		*field = UINT64_MAX;
		assert_int_equal(check(), -EINVAL);
	}
}

static void plan_check__bounds_memory(void **state)
{
	(void)state;
	plan.size_bytes = UINT64_C(1) << 30;
	plan.verify = 1;
	assert_int_equal(check(), -EINVAL);
	plan.verify = 0;
	assert_int_equal(check(), 0);
	plan.qps = PLAN_QPS_MAX;
	plan.depth = 16384;
	assert_int_equal(check(), 0);
}

/* Two places for each queue pair and direction, whatever the depth. */
static void plan_check__counts_the_places_of_the_latency_mode(void **state)
{
	(void)state;
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
static void plan_check__no_mode_takes_more_than_the_limit(void **state)
{
	static const uint64_t sizes[] = {8, 4096, UINT64_C(1) << 20, UINT64_C(1) << 30};
	static const uint64_t counts[] = {1, 2, 3, 64, PLAN_QPS_MAX};
	static const uint64_t regions[] = {0, 1, UINT64_C(1) << 30, PLAN_REGION_MAX};

	(void)state;
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

static void plan_slots__all_places_are_inside(void **state)
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

	(void)state;
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

static void plan_slots__verified_messages_share_none(void **state)
{
	struct slots slots;

	(void)state;
	plan.verify = 1;
	plan.qps = 3;
	plan.size_bytes = 100;
	slots = plan_slots(&plan, 5);
	assert_int_equal(slots.stride_bytes, 128);
	for (uint64_t qp = 0; qp < 3; qp++)
		for (uint64_t n = 0; n < 5; n++)
			assert_int_equal(slot_of(&slots, qp, n), (qp * 5 + n) * 128);
}

static void plan_slots__a_region_that_is_named_is_all_there_is(void **state)
{
	struct slots slots;

	(void)state;
	plan.region_bytes = 512 << 10;
	slots = plan_slots(&plan, 128);
	assert_int_equal(slots_bytes(&slots), 512 << 10);
	plan.region_bytes = 1;
	slots = plan_slots(&plan, 128);
	assert_int_equal(slots_bytes(&slots), plan.size_bytes);
	/* Not where each message is looked at. */
	plan.mode = MODE_LATENCY;
	slots = plan_slots(&plan, 128);
	assert_int_equal(slots_bytes(&slots), 128 * plan.size_bytes);
}

static void plan_timeout__is_shorter_where_packets_are_lost(void **state)
{
	uint8_t sound;

	(void)state;
	plan_init(&plan);
	sound = plan_timeout(&plan);
	plan.loss_ppm = 1;
	assert_true(plan_timeout(&plan) < sound);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(plan_parse_number__takes_units, setup),
		cmocka_unit_test_setup(plan_parse_number__refuses_what_is_none, setup),
		cmocka_unit_test_setup(plan_set__what_was_set_is_told, setup),
		cmocka_unit_test_setup(plan_set__refuses_with_a_reason, setup),
		cmocka_unit_test_setup(plan_check__takes_the_defaults_of_each_mode, setup),
		cmocka_unit_test_setup(plan_check__refuses_what_does_not_fit, setup),
		cmocka_unit_test_setup(plan_check__refuses_any_field_out_of_range, setup),
		cmocka_unit_test_setup(plan_check__bounds_memory, setup),
		cmocka_unit_test_setup(plan_check__counts_the_places_of_the_latency_mode, setup),
		cmocka_unit_test_setup(plan_check__no_mode_takes_more_than_the_limit, setup),
		cmocka_unit_test_setup(plan_slots__all_places_are_inside, setup),
		cmocka_unit_test_setup(plan_slots__verified_messages_share_none, setup),
		cmocka_unit_test_setup(plan_slots__a_region_that_is_named_is_all_there_is, setup),
		cmocka_unit_test(plan_timeout__is_shorter_where_packets_are_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
