/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/cpus.c. */
#include <sched.h>

#include "base/cpus.h"
#include "test.h"

TEST(cpus_count__counts_the_thread_s_own)
{
	cpu_set_t before, one;
	int first = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(cpus_count(), CPU_COUNT(&before));
	while (!CPU_ISSET(first, &before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(cpus_count(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}
