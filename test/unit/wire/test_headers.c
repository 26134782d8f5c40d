/* SPDX-License-Identifier: BSD-3-Clause */
/* Timer codes and 24-bit fields. */
#include <stdint.h>

#include "wire/headers.h"
#include "test.h"

TEST(rnr_timer_ns__is_table_46)
{
	assert_int_equal(rnr_timer_ns(0), 655360000);
	assert_int_equal(rnr_timer_ns(1), 10000);
	assert_int_equal(rnr_timer_ns(4), 40000);
	assert_int_equal(rnr_timer_ns(5), 60000);
	assert_int_equal(rnr_timer_ns(12), 640000);
	assert_int_equal(rnr_timer_ns(13), 960000);
	assert_int_equal(rnr_timer_ns(22), 20480000);
	assert_int_equal(rnr_timer_ns(31), 491520000);
}

TEST(rnr_timer_ns__each_second_code_doubles)
{
	uint8_t code;

	for (code = 4; code < 30; code++)
		assert_int_equal(rnr_timer_ns((uint8_t)(code + 2)), 2 * rnr_timer_ns(code));
	assert_int_equal(rnr_timer_ns(0), 2 * rnr_timer_ns(30));
}

TEST(ack_timeout_ns__zero_is_none)
{
	assert_int_equal(ack_timeout_ns(0), 0);
}

TEST(ack_timeout_ns__is_a_power_of_two_of_4096_ns)
{
	assert_int_equal(ack_timeout_ns(1), 8192);
	assert_int_equal(ack_timeout_ns(14), 67108864);
	assert_int_equal(ack_timeout_ns(31), UINT64_C(4096) << 31);
}

TEST(wire_put24__is_big_endian_and_get24_undoes_it)
{
	uint8_t bytes[4] = {0, 0, 0, 0x5a};

	wire_put24(bytes, 0x123456);
	assert_int_equal(bytes[0], 0x12);
	assert_int_equal(bytes[1], 0x34);
	assert_int_equal(bytes[2], 0x56);
	assert_int_equal(bytes[3], 0x5a);
	assert_int_equal(wire_get24(bytes), 0x123456);
	wire_put24(bytes, 0xffabcdef);
	assert_int_equal(wire_get24(bytes), 0xabcdef);
}
