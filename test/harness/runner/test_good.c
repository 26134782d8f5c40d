/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaves something behind, and looks whether another file has. */
#include "runner_sample.h"
#include "test.h"

static int around_all;

static int set_up_all(TEST_STATE)
{
	around_all++;
	return 0;
}

TEST_GROUP(set_up_all, NULL);

TEST(good__is_alone)
{
	assert_int_equal(sample_left_behind, 0);
	assert_int_equal(around_all, 1);
	sample_left_behind = 1;
}

TEST(good__runs)
{
	assert_true(TEST_FILE_RUNS());
	assert_false(sample_other_file_runs());
}
