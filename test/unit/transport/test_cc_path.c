/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/cc_path.c: the shortest round trip to each host. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/cc_path.h"
#include "test.h"

static struct cc_paths paths;

static int set_up(TEST_STATE)
{
	memset(&paths, 0, sizeof(paths));
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static struct cc_path *get(uint32_t host)
{
	uint8_t gid[16] = {[10] = 0xff, 0xff, 10};

	memcpy(gid + 12, &host, sizeof(host));
	return cc_path_get(&paths, gid);
}

TEST(cc_path_get__queue_pairs_to_a_host_share_its_entry)
{
	struct cc_path *path = get(1);

	assert_non_null(path);
	assert_ptr_equal(get(1), path);
	assert_ptr_not_equal(get(2), path);
	assert_int_equal(path->users, 2);
}

TEST(cc_path_get__remembers_a_host_without_queue_pairs)
{
	struct cc_path *path = get(1);

	cc_path_note(path, 5000, 1);
	cc_path_put(path);
	assert_ptr_equal(get(1), path);
	assert_int_equal(cc_path_note(path, 9000, 2), 5000);
}

/* An entry in use is not given to another host. If there is no free entry, the host gets none. */
TEST(cc_path_get__gives_no_entry_twice)
{
	unsigned int got = 0, refused = 0;

	for (uint32_t host = 0; host < 4 * CC_PATHS; host++) {
		const struct cc_path *path = get(host);

		got += path != NULL;
		refused += path == NULL;
	}
	assert_in_range(got, CC_PATHS / 2, CC_PATHS);
	assert_int_equal(got + refused, 4 * CC_PATHS);
	for (uint32_t i = 0; i < CC_PATHS; i++)
		assert_true(paths.path[i].users <= 1);
}

TEST(cc_path_get__an_unused_entry_forgets_its_host)
{
	for (uint32_t host = 0; host < 64 * CC_PATHS; host++) {
		struct cc_path *path = get(host);

		assert_non_null(path);
		assert_int_equal(cc_path_note(path, 1000 + host, 1), 1000 + host);
		cc_path_put(path);
	}
}

TEST(cc_path_put__nothing_for_null)
{
	cc_path_put(NULL);
}

TEST(cc_path_note__returns_the_least)
{
	struct cc_path *path = get(1);

	assert_int_equal(cc_path_note(path, 7000, 100), 7000);
	assert_int_equal(cc_path_note(path, 9000, 200), 7000);
	assert_int_equal(cc_path_note(path, 6000, 300), 6000);
}

TEST(cc_path_note__remembers_for_an_age)
{
	struct cc_path *path = get(1);

	assert_int_equal(cc_path_note(path, 5000, CC_PATH_AGE_NS), 5000);
	assert_int_equal(cc_path_note(path, 8000, CC_PATH_AGE_NS + 1), 5000);
	assert_int_equal(cc_path_note(path, 9000, 2 * CC_PATH_AGE_NS - 1), 5000);
	assert_int_equal(path->old_min_rtt_ns, 0);
}

/* A route that became longer counts after one to two ages. */
TEST(cc_path_note__forgets_old_ones)
{
	struct cc_path *path = get(1);
	uint64_t now_ns = 100;

	assert_int_equal(cc_path_note(path, 5000, now_ns), 5000);
	now_ns += CC_PATH_AGE_NS;
	assert_int_equal(cc_path_note(path, 8000, now_ns), 5000);
	now_ns += CC_PATH_AGE_NS;
	assert_int_equal(cc_path_note(path, 8500, now_ns), 8000);
	now_ns += CC_PATH_AGE_NS;
	assert_int_equal(cc_path_note(path, 9000, now_ns), 8500);
}

static void note(struct cc_path *path, uint8_t *doubts, uint64_t rtt_ns, bool is_long)
{
	cc_path_note_single(path, doubts, cc_path_note(path, rtt_ns, 1), rtt_ns, is_long);
}

TEST(cc_path_note_single__late_after_many_long_ones)
{
	struct cc_path *path = get(1);
	uint8_t doubts = 0, others = 0;

	cc_path_note(path, 10000, 1);
	for (int i = 0; i < CC_PATH_DOUBTS - 1; i++) {
		note(path, &doubts, 1010000, true);
		/* All queue pairs meet the same queue: each counts for itself. */
		note(path, &others, 1010000, true);
		assert_int_equal(cc_path_late_ns(path), 0);
		if (i == 0)
			assert_int_equal(path->deviation_ns, 375000);
	}
	note(path, &doubts, 11000, false);
	note(path, &doubts, 1010000, true);
	assert_false(path->is_late);
	note(path, &doubts, 1010000, true);
	assert_true(path->is_late);
	assert_in_range(cc_path_late_ns(path), 900000, 3000000);
	for (int i = 0; i < CC_PATH_DOUBTS; i++)
		note(path, &doubts, 12000, false);
	assert_false(path->is_late);
	assert_int_equal(cc_path_late_ns(path), 0);
}

/* Round trips that vary stay below what is allowed. */
TEST(cc_path_late_ns__is_an_eighth_less_and_four_deviations_more)
{
	const struct cc_path late = {.is_late = true, .late_ns = 800000, .deviation_ns = 1000};

	assert_int_equal(cc_path_late_ns(&late), 704000);
}

TEST(cc_path_late_ns__covers_what_varies)
{
	struct cc_path *path = get(1);
	unsigned int above = 0;
	uint8_t doubts = 0;

	cc_path_note(path, 10000, 1);
	for (int i = 0; i < 1000; i++) {
		/* From 0.1 to 5 ms. */
		const uint64_t rtt_ns = 100000 + (uint64_t)(i * 7919 % 50) * 100000;

		if (i > 100)
			above += rtt_ns > 10000 + cc_path_late_ns(path);
		note(path, &doubts, rtt_ns, true);
	}
	assert_true(above < 50);
}

/* A queue that stays is not a late host: less is allowed than it takes, so that it becomes
 * shorter. */
TEST(cc_path_late_ns__less_than_a_constant_delay)
{
	struct cc_path *path = get(1);
	uint8_t doubts = 0;

	cc_path_note(path, 10000, 1);
	for (int i = 0; i < 100; i++)
		note(path, &doubts, 1010000, true);
	assert_in_range(cc_path_late_ns(path), 870000, 900000);
}

/* The weights are an eighth and a quarter, as in RFC 6298. */
TEST(cc_path_note_single__follows_the_mean)
{
	struct cc_path path = {0};
	uint8_t doubts = 0;

	cc_path_note_single(&path, &doubts, 0, 1000000, false);
	assert_int_equal(path.late_ns, 1000000);
	assert_int_equal(path.deviation_ns, 500000);
	cc_path_note_single(&path, &doubts, 0, 200000, false);
	assert_int_equal(path.late_ns, 900000);
	assert_int_equal(path.deviation_ns, 575000);
}

/* After it was found to be late, as many short ones as ever make it early. */
TEST(cc_path_note_single__short_ones_of_before_do_not_count)
{
	struct cc_path path = {.shorts = CC_PATH_DOUBTS};
	uint8_t doubts = CC_PATH_DOUBTS - 1;

	cc_path_note_single(&path, &doubts, 0, 1000000, true);
	assert_true(path.is_late);
	for (int i = 0; i < CC_PATH_DOUBTS - 1; i++) {
		cc_path_note_single(&path, &doubts, 0, 1000, false);
		assert_true(path.is_late);
	}
	cc_path_note_single(&path, &doubts, 0, 1000, false);
	assert_false(path.is_late);
}
