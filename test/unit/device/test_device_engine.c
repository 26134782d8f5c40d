/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/device_engine.c. The driver keeps what it is asked for, in order. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "test.h"

#define ENGINES 3

static struct device *device;
static char asked[128]; /* a letter and an engine's number for each call */

static void note(char what, const void *engine)
{
	const size_t len = strlen(asked);

	assert_true(len + 3 < sizeof(asked));
	snprintf(asked + len, sizeof(asked) - len, "%c%u", what,
		 ((const struct device_engine *)engine)->number);
}

static void lock(void *engine)
{
	note('l', engine);
}

static void unlock(void *engine)
{
	note('u', engine);
}

static void wait(void *engine)
{
	note('w', engine);
}

static const struct engine_ops ops = {.lock = lock, .unlock = unlock, .wait = wait};

static struct device_config config_of(uint32_t engines)
{
	return (struct device_config){
		.name = "uroce0", .port_mtu_bytes = 1500, .link_mbps = 7000, .engines = engines};
}

static int set_up(TEST_STATE)
{
	const struct device_config config = config_of(ENGINES);

	asked[0] = '\0';
	if (device_create(&config, &device) != 0)
		return -1;
	for (uint32_t i = 0; i < ENGINES; i++) {
		device->engines[i]->ops = &ops;
		device->engines[i]->driver = device->engines[i];
	}
	return 0;
}

static int tear_down(TEST_STATE)
{
	device_destroy(device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

TEST(device_create__as_many_engines_as_asked_for)
{
	static const struct {
		uint32_t asked;
		uint32_t given; /* 0: refused */
	} cases[] = {
		{0, 1},
		{1, 1},
		{2, 2},
		{DEVICE_ENGINES_MAX, DEVICE_ENGINES_MAX},
		{DEVICE_ENGINES_MAX + 1, 0},
		{UINT32_MAX, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct device_config config = config_of(cases[i].asked);
		struct device *created;

		assert_int_equal(device_create(&config, &created), cases[i].given ? 0 : -EINVAL);
		if (cases[i].given == 0)
			continue;
		assert_int_equal(created->engine_count, cases[i].given);
		for (uint32_t j = 0; j < cases[i].given; j++) {
			assert_ptr_equal(created->engines[j]->device, created);
			assert_int_equal(created->engines[j]->number, j);
		}
		device_destroy(created);
	}
}

TEST(device_create__engines_have_nothing_in_common)
{
	struct device_config config = config_of(ENGINES);
	struct device *created;

	config.cc = CC_SWIFT;
	assert_int_equal(device_create(&config, &created), 0);
	for (uint32_t i = 0; i < ENGINES; i++) {
		const struct cc_attr attr = device_engine_cc(created->engines[i]);

		assert_non_null(created->engines[i]->ooo);
		assert_non_null(attr.paths);
		assert_int_equal(attr.kind, CC_SWIFT);
		assert_int_equal(attr.link_mbps, 7000);
		for (uint32_t j = 0; j < i; j++) {
			assert_ptr_not_equal(created->engines[i]->ooo, created->engines[j]->ooo);
			assert_ptr_not_equal(attr.paths, created->engines[j]->cc_paths);
		}
	}
	device_destroy(created);
}

/* Two threads that want all engines would wait for each other without a common order. */
TEST(device_lock__takes_the_first_engine_first_and_releases_it_last)
{
	device_lock(device);
	assert_string_equal(asked, "l0l1l2");
	device_unlock(device);
	assert_string_equal(asked, "l0l1l2u2u1u0");
}

TEST(device_wait__engines_that_raise_no_event_are_not_asked)
{
	device_wait(device, 0);
	assert_string_equal(asked, "");
	device_wait(device, 1u << 1);
	assert_string_equal(asked, "w1");
	device_wait(device, 1u << 0 | 1u << 2);
	assert_string_equal(asked, "w1w0w2");
}

TEST(device_counter__adds_up_the_engines)
{
	struct counters sum;

	for (uint32_t i = 0; i < ENGINES; i++)
		counters_add(&device->engines[i]->counters, COUNTER_rx_packets, 1u << i);
	counters_add(&device->engines[1]->counters, COUNTER_rx_bytes, UINT64_C(1) << 40);
	assert_int_equal(device_counter(device, COUNTER_rx_packets), 7);
	device_counters(device, &sum);
	for (int i = 0; i < COUNTER_COUNT; i++)
		assert_int_equal(counters_get(&sum, (enum counter)i), i == COUNTER_rx_packets ? 7
								      : i == COUNTER_rx_bytes
									      ? UINT64_C(1) << 40
									      : 0);
}

#define LINE_OF(field) (offsetof(struct device, field) / RTE_CACHE_LINE_SIZE)

/* Other engines read no cache line that the first engine writes in each engine poll. */
TEST(device__what_the_first_engine_writes_is_apart)
{
	assert_int_equal(offsetof(struct device, gsi_psn) % RTE_CACHE_LINE_SIZE, 0);
	assert_int_equal(LINE_OF(gsi_psn), LINE_OF(gsi_holds));
	assert_int_equal(LINE_OF(gsi_psn), LINE_OF(gsi_untold));
	assert_int_equal(LINE_OF(gsi_psn), sizeof(struct device) / RTE_CACHE_LINE_SIZE - 1);
	assert_int_equal((uintptr_t)device % RTE_CACHE_LINE_SIZE, 0);
}
