/* SPDX-License-Identifier: BSD-3-Clause */
/* Which memory somebody may write. */
#include "check/places.h"
#include "test.h"

static struct places_seen look(uint64_t begin, uint64_t length)
{
	struct places_seen seen = {.open = false};

	places_look(begin, length, &seen);
	return seen;
}

TEST(places_look__finds_what_overlaps)
{
	places_open(0x1000, 0x100);
	assert_true(look(0x1000, 1).open);
	assert_true(look(0x10ff, 1).open);
	assert_true(look(0xf00, 0x101).open);
	assert_false(look(0xf00, 0x100).open);
	assert_false(look(0x1100, 1).open);
	assert_false(look(0x1000, 0).open);
	places_close(0x1000, 0x100);
	assert_false(look(0x1000, 0x100).open);
	assert_int_equal(look(0x1000, 0x100).openings, 1);
}

TEST(places_look__adds_all_parts)
{
	places_open(0x2000, 0x10);
	places_open(0x2020, 0x10);
	places_open(0x2020, 0x10);
	assert_int_equal(look(0x2000, 0x30).openings, 3);
	places_close(0x2000, 0x10);
	assert_true(look(0x2000, 0x30).open);
	places_close(0x2020, 0x10);
	places_close(0x2020, 0x10);
	assert_false(look(0x2000, 0x30).open);
	assert_int_equal(look(0x2000, 0x30).openings, 3);
}

/* A range that joins others keeps what was known of them, and is open until all of it is closed. */
TEST(places_open__joins_what_overlaps)
{
	places_open(0x3000, 0x10);
	places_open(0x3020, 0x10);
	places_open(0x3008, 0x20);
	assert_int_equal(look(0x3000, 1).openings, 3);
	assert_int_equal(look(0x302f, 1).openings, 3);
	places_close(0x3008, 0x20);
	places_close(0x3000, 0x10);
	assert_true(look(0x3000, 1).open);
	places_close(0x3020, 0x10);
	assert_false(look(0x3000, 1).open);
}

TEST(places_open__takes_the_whole_memory)
{
	places_open(0, UINT64_MAX);
	assert_true(look(0x123456789, 8).open);
	places_close(0, UINT64_MAX);
	assert_false(look(0x123456789, 8).open);
}
