/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rs_out.c. */
#include <errno.h>

#include "rs_out.h"
#include "test.h"

#define SIZE	 8192
#define REQUESTS 16
#define CREDITS	 8

static uint8_t buffer[SIZE];
static struct rs_out out;
static const struct rs_window second = {.addr = 0x20000, .key = 8, .length = 50};

static int set_up(TEST_STATE)
{
	const struct rs_hello peer = {
		.credits = CREDITS,
		.data = {.addr = 0x10000, .key = 7, .length = 100},
	};

	rs_out_init(&out, buffer, SIZE, REQUESTS, &peer);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

TEST(rs_out_allow__more_than_the_peer_can_have_is_refused)
{
	assert_int_equal(rs_out_allow(&out, CREDITS + 1), -EPROTO);
	assert_int_equal(rs_out_allow(&out, UINT16_MAX), -EPROTO);
	assert_int_equal(rs_out_allow(&out, CREDITS), 0);
	rs_out_take_message(&out);
	assert_int_equal(rs_out_allow(&out, CREDITS + 1), 0);
	/* A peer cannot return more credits than were used. */
	assert_int_equal(rs_out_allow(&out, 0), -EPROTO);
}

TEST(rs_out_allow__goes_around)
{
	out.sent = UINT16_MAX;
	assert_int_equal(rs_out_allow(&out, CREDITS - 1), 0);
	rs_out_take_message(&out);
	assert_int_equal(out.sent, 0);
	assert_true(rs_out_may_message(&out));
}

TEST(rs_out_may_send__needs_credits)
{
	for (int i = 0; i < CREDITS; i++) {
		assert_true(rs_out_may_send(&out));
		rs_out_take_message(&out);
		rs_out_done(&out, 0);
	}
	assert_false(rs_out_may_send(&out));
	assert_true(rs_out_has_room(&out));
	assert_int_equal(rs_out_allow(&out, CREDITS + 1), 0);
	assert_true(rs_out_may_send(&out));
}

TEST(rs_out_may_send__needs_requests_beside_those_of_control_messages)
{
	for (int i = 0; i < REQUESTS - RS_CONTROL_SLOTS; i++)
		rs_out_take_request(&out);
	assert_false(rs_out_has_room(&out));
	assert_int_equal(out.control, RS_CONTROL_SLOTS);
	rs_out_done(&out, 0);
	assert_true(rs_out_has_room(&out));
}

TEST(rs_out_take_window__uses_one_up_before_the_next)
{
	struct rs_window at;

	assert_int_equal(rs_out_add_window(&out, &second), 0);
	rs_out_take_window(&out, 60, &at);
	assert_int_equal(at.addr, 0x10000);
	assert_int_equal(at.key, 7);
	rs_out_take_window(&out, 40, &at);
	assert_int_equal(at.addr, 0x10000 + 60);
	assert_int_equal(out.windows[0].length, second.length);
	rs_out_take_window(&out, 50, &at);
	assert_int_equal(at.addr, second.addr);
	assert_int_equal(at.key, second.key);
	assert_false(rs_out_may_send(&out));
}

TEST(rs_out_add_window__into_a_slot_in_use_is_refused)
{
	assert_int_equal(out.slot, 1);
	assert_int_equal(rs_out_add_window(&out, &second), 0);
	assert_int_equal(out.slot, 0);
	assert_int_equal(rs_out_add_window(&out, &second), -EPROTO);
}

TEST(rs_out_init__takes_no_window_of_no_bytes)
{
	const struct rs_hello peer = {.credits = 1};

	rs_out_init(&out, buffer, SIZE, REQUESTS, &peer);
	assert_false(rs_out_may_send(&out));
}

TEST(rs_out_fit__is_one_piece)
{
	rs_out_take_buffer(&out, SIZE - 10);
	assert_int_equal(rs_out_fit(&out, 100), 10);
	assert_false(rs_out_has_room(&out));
	rs_out_done(&out, SIZE - 10);
	assert_int_equal(rs_out_fit(&out, 100), 10);
	rs_out_take_buffer(&out, 10);
	assert_int_equal(out.tail, 0);
	assert_int_equal(rs_out_fit(&out, SIZE), SIZE - 10);
}

/* Sent inline it would leave the tail where it is, and each later write would be as short. */
TEST(rs_out_choose__end_of_the_buffer_is_not_sent_inline)
{
	bool is_inline;

	rs_out_take_buffer(&out, SIZE - 10);
	rs_out_done(&out, SIZE - 10);
	assert_int_equal(rs_out_choose(&out, 1000, 64, &is_inline), 10);
	assert_false(is_inline);
	assert_int_equal(rs_out_choose(&out, 64, 64, &is_inline), 64);
	assert_true(is_inline);
	rs_out_take_buffer(&out, 10);
	assert_int_equal(rs_out_choose(&out, 1000, 64, &is_inline), 1000);
	assert_false(is_inline);
}
