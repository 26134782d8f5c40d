/* SPDX-License-Identifier: BSD-3-Clause */
/* A second file, with a test that fails and one that is skipped. */
#include "runner_sample.h"
#include "test.h"

int sample_left_behind;

bool sample_other_file_runs(void)
{
	return TEST_FILE_RUNS();
}

TEST(other__is_alone)
{
	assert_int_equal(sample_left_behind, 0);
}

TEST(other__runs)
{
	assert_true(sample_other_file_runs());
}

TEST(other__fails)
{
	assert_true(false);
}

TEST(other__is_skipped)
{
	skip();
}
