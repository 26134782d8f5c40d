/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rs_in.c. */
#include <errno.h>
#include <string.h>

#include "rs_in.h"
#include "test.h"

#define SIZE	 16
#define REQUESTS 8

static uint8_t ring[SIZE];
static struct rs_in in;

static int set_up(TEST_STATE)
{
	for (size_t i = 0; i < SIZE; i++)
		ring[i] = (uint8_t)i;
	rs_in_init(&in, ring, SIZE, REQUESTS);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

/* Each byte is one of three. */
static void check(void)
{
	assert_int_equal(in.ready + in.promised + in.freed, SIZE);
	assert_true(in.head < SIZE);
}

TEST(rs_in_data__more_than_promised_is_refused)
{
	assert_int_equal(rs_in_data(&in, 0), -EPROTO);
	assert_int_equal(rs_in_data(&in, SIZE / 2 + 1), -EPROTO);
	assert_int_equal(rs_in_data(&in, UINT32_MAX), -EPROTO);
	assert_int_equal(rs_in_data(&in, SIZE / 2), 0);
	assert_int_equal(rs_in_data(&in, 1), -EPROTO);
	check();
}

TEST(rs_in_grant__second_part_is_granted_at_once)
{
	struct rs_grant grant;

	assert_true(rs_in_is_due(&in));
	rs_in_grant(&in, &grant);
	assert_int_equal(grant.offset, SIZE / 2);
	assert_int_equal(grant.length, SIZE / 2);
	assert_int_equal(grant.credits, REQUESTS);
	assert_false(rs_in_is_due(&in));
	assert_int_equal(rs_in_data(&in, SIZE), 0);
	check();
}

TEST(rs_in_grant__a_part_is_granted_again_when_it_is_read)
{
	struct rs_grant grant;
	uint8_t data[SIZE];

	rs_in_grant(&in, &grant);
	assert_int_equal(rs_in_data(&in, SIZE), 0);
	assert_int_equal(rs_in_read(&in, data, SIZE / 2 - 1), SIZE / 2 - 1);
	assert_false(rs_in_is_due(&in));
	assert_int_equal(rs_in_read(&in, data, 1), 1);
	assert_true(rs_in_is_due(&in));
	rs_in_grant(&in, &grant);
	assert_int_equal(grant.offset, 0);
	assert_int_equal(grant.length, SIZE / 2);
	check();
}

TEST(rs_in_grant__credits_alone_when_half_of_the_requests_are_taken)
{
	struct rs_grant grant;

	rs_in_grant(&in, &grant);
	for (int i = 0; i < REQUESTS / 2; i++) {
		assert_false(rs_in_is_due(&in));
		rs_in_count(&in);
		assert_int_equal(rs_in_data(&in, 1), 0);
	}
	assert_true(rs_in_is_due(&in));
	rs_in_grant(&in, &grant);
	assert_int_equal(grant.length, 0);
	assert_int_equal(grant.credits, REQUESTS + REQUESTS / 2);
}

TEST(rs_in_grant__credits_go_around)
{
	struct rs_grant grant;

	in.taken = in.told = UINT16_MAX;
	rs_in_count(&in);
	rs_in_grant(&in, &grant);
	assert_int_equal(grant.credits, REQUESTS);
	assert_int_equal(in.taken, 0);
}

TEST(rs_in_read__goes_around_the_end)
{
	struct rs_grant grant;
	uint8_t data[SIZE];

	rs_in_grant(&in, &grant);
	assert_int_equal(rs_in_data(&in, 12), 0);
	assert_int_equal(rs_in_read(&in, data, SIZE), 12);
	rs_in_grant(&in, &grant);
	assert_int_equal(rs_in_data(&in, 8), 0);
	assert_int_equal(rs_in_peek(&in, 1, data, 3), 3);
	assert_int_equal(data[0], 13);
	assert_int_equal(rs_in_peek(&in, 8, data, 3), 0);
	assert_int_equal(rs_in_read(&in, data, SIZE), 8);
	assert_memory_equal(data, "\x0c\x0d\x0e\x0f\x00\x01\x02\x03", 8);
	assert_int_equal(rs_in_read(&in, data, SIZE), 0);
	check();
}
