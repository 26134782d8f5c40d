/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/outbox.c. */
#include <errno.h>
#include <string.h>

#include "outbox.h"
#include "test.h"

static struct outbox outbox;

static int set_up(TEST_STATE)
{
	outbox = (struct outbox){0};
	return 0;
}

static int tear_down(TEST_STATE)
{
	outbox_fini(&outbox);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static int push(uint32_t number)
{
	const struct gsi_address to = {.vlan_id = (int32_t)number};
	uint8_t mad[MAD_LEN] = {0};

	memcpy(mad, &number, sizeof(number));
	return outbox_push(&outbox, &to, mad);
}

static void expect(uint32_t number)
{
	const struct outbox_mad *mad = outbox_first(&outbox);

	assert_non_null(mad);
	assert_int_equal(mad->to.vlan_id, number);
	assert_memory_equal(mad->bytes, &number, sizeof(number));
	outbox_pop(&outbox);
}

TEST(outbox_first__of_an_empty_one)
{
	assert_null(outbox_first(&outbox));
	assert_int_equal(push(7), 0);
	expect(7);
	assert_null(outbox_first(&outbox));
}

/* The outbox grows while its oldest MAD is somewhere in the middle of the memory. */
TEST(outbox_push__keeps_the_order_while_it_grows)
{
	uint32_t in = 0, out = 0;

	while (in < 10000) {
		for (int i = 0; i < 5; i++)
			assert_int_equal(push(in++), 0);
		for (int i = 0; i < 2; i++)
			expect(out++);
	}
	while (out < in)
		expect(out++);
	assert_null(outbox_first(&outbox));
}

TEST(outbox_push__uses_all_places_before_it_grows)
{
	uint32_t in = 0;

	while (in < OUTBOX_KEPT)
		assert_int_equal(push(in++), 0);
	for (; in < 10 * OUTBOX_KEPT; in++) {
		expect(in - OUTBOX_KEPT);
		assert_int_equal(push(in), 0);
		assert_int_equal(outbox.room, OUTBOX_KEPT);
	}
}

TEST(outbox_push__is_bounded)
{
	for (uint32_t i = 0; i < OUTBOX_MAX; i++)
		assert_int_equal(push(i), 0);
	assert_int_equal(push(OUTBOX_MAX), -ENOBUFS);
	expect(0);
	assert_int_equal(push(OUTBOX_MAX), 0);
	for (uint32_t i = 1; i <= OUTBOX_MAX; i++)
		expect(i);
}

TEST(outbox_pop__gives_memory_back_after_a_storm)
{
	for (uint32_t i = 0; i <= OUTBOX_KEPT; i++)
		assert_int_equal(push(i), 0);
	assert_int_equal(outbox.room, 2 * OUTBOX_KEPT);
	for (uint32_t i = 0; i <= OUTBOX_KEPT; i++)
		expect(i);
	assert_int_equal(outbox.room, 0);
}
