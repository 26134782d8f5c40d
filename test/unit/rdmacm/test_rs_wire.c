/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rs_wire.c. */
#include <errno.h>
#include <string.h>

#include "rs_wire.h"
#include "test.h"

static const struct rs_hello hello = {
	.credits = 384,
	.iomaps = 3,
	.target = {.addr = 0x1122334455667788, .key = 0x99aabbcc, .length = RS_TARGET_SLOTS},
	.data = {.addr = 0x0102030405060708, .key = 0x090a0b0c, .length = 0x10000},
};

/* Bytes as rdma-core's struct rs_conn_data has them. */
TEST(rs_wire_put_hello__has_the_stock_layout)
{
	static const uint8_t expected[] = {
		1,    2,    0x01, 0x80, 0,    0,    0,	  3, /* version, flags, credits, iomaps */
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, /* target list */
		0x99, 0xaa, 0xbb, 0xcc, 0,    0,    0,	  2,	/* its key and slots */
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, /* first window */
		0x09, 0x0a, 0x0b, 0x0c, 0,    1,    0,	  0,
	};
	struct rs_hello_wire wire;

	rs_wire_put_hello(&wire, &hello);
	assert_int_equal(sizeof(wire), sizeof(expected));
	assert_memory_equal(&wire, expected, sizeof(expected));
}

TEST(rs_wire_get_hello__reads_what_was_put)
{
	struct rs_hello_wire wire[2];
	struct rs_hello got;

	rs_wire_put_hello(&wire[0], &hello);
	/* A REP has more room than a hello. */
	assert_int_equal(rs_wire_get_hello(wire, sizeof(wire), &got), 0);
	assert_int_equal(got.credits, hello.credits);
	assert_int_equal(got.iomaps, hello.iomaps);
	assert_false(got.big_endian);
	assert_memory_equal(&got.target, &hello.target, sizeof(got.target));
	assert_memory_equal(&got.data, &hello.data, sizeof(got.data));
}

TEST(rs_wire_get_hello__refuses_what_makes_no_sense)
{
	struct rs_hello_wire wire;
	struct rs_hello got;

	rs_wire_put_hello(&wire, &hello);
	assert_int_equal(rs_wire_get_hello(NULL, 0, &got), -EPROTO);
	assert_int_equal(rs_wire_get_hello(&wire, sizeof(wire) - 1, &got), -EPROTO);
	wire.version = 2;
	assert_int_equal(rs_wire_get_hello(&wire, sizeof(wire), &got), -ENOTSUP);
	wire.version = RS_VERSION;
	wire.credits = 0;
	assert_int_equal(rs_wire_get_hello(&wire, sizeof(wire), &got), -EPROTO);
	wire.credits = 1;
	wire.target.length = 0;
	assert_int_equal(rs_wire_get_hello(&wire, sizeof(wire), &got), -EPROTO);
}

TEST(rs_wire_get_hello__without_the_flag_there_are_no_mappings)
{
	struct rs_hello_wire wire;
	struct rs_hello got;

	rs_wire_put_hello(&wire, &hello);
	wire.flags = RS_HELLO_BIG_ENDIAN;
	assert_int_equal(rs_wire_get_hello(&wire, sizeof(wire), &got), 0);
	assert_int_equal(got.iomaps, 0);
	assert_true(got.big_endian);
}

TEST(rs_wire_scale__keeps_small_counts_and_rounds_large_ones_down)
{
	assert_int_equal(rs_wire_unscale(rs_wire_scale(0)), 0);
	assert_int_equal(rs_wire_unscale(rs_wire_scale(128)), 128);
	assert_int_equal(rs_wire_unscale(rs_wire_scale(256)), 256);
	assert_int_equal(rs_wire_unscale(rs_wire_scale(1000)), 768);
	assert_int_equal(rs_wire_unscale(rs_wire_scale(UINT16_MAX)), 0x7f00);
	for (unsigned int count = 0; count <= UINT16_MAX; count++)
		assert_true(rs_wire_unscale(rs_wire_scale((uint16_t)count)) <= count);
}

TEST(rs_wire_put_window__is_in_the_readers_order)
{
	const struct rs_window window = {.addr = 1, .key = 2, .length = 3};
	struct rs_window_wire wire;
	const uint8_t *byte = (const uint8_t *)&wire;

	rs_wire_put_window(&wire, &window, true);
	assert_int_equal(byte[7], 1);
	assert_int_equal(byte[11], 2);
	assert_int_equal(byte[15], 3);
	rs_wire_put_window(&wire, &window, false);
	assert_int_equal(byte[0], 1);
	assert_int_equal(byte[8], 2);
	assert_int_equal(byte[12], 3);
}
