/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/reason.c. */
#include <errno.h>
#include <pthread.h>

#include "base/reason.h"
#include "test.h"

TEST(reason_take__returns_the_newest_of_its_kind_once)
{
	reason_say(-EINVAL, "old");
	reason_say(-EINVAL, "new %d", 1);
	reason_say(REASON_FAULT, "fault");
	assert_string_equal(reason_take(EINVAL), "new 1");
	assert_null(reason_take(EINVAL));
	assert_string_equal(reason_take(REASON_FAULT), "fault");
	assert_null(reason_take(REASON_FAULT));
}

TEST(reason_take__forgets_a_reason_for_another_error)
{
	reason_say(-EINVAL, "of another call");
	assert_null(reason_take(ENOMEM));
	assert_null(reason_take(EINVAL));
}

static void *take_and_say(void *unused)
{
	(void)unused;
	if (reason_take(EINVAL) || reason_is_said(EINVAL))
		return NULL;
	reason_say(-EINVAL, "of the other thread");
	return reason_is_said(EINVAL) ? &reason_wanted : NULL;
}

TEST(reason_take__knows_the_threads_own_alone)
{
	pthread_t thread;
	void *good;

	reason_say(-EINVAL, "of this thread");
	assert_int_equal(pthread_create(&thread, NULL, take_and_say, NULL), 0);
	assert_int_equal(pthread_join(thread, &good), 0);
	assert_non_null(good);
	assert_string_equal(reason_take(EINVAL), "of this thread");
}

TEST(reason_say__keeps_errno)
{
	errno = EBUSY;
	reason_say(-EINVAL, "%m");
	assert_int_equal(errno, EBUSY);
	reason_take(EINVAL);
}

TEST(reason_drop__forgets_faults_only)
{
	reason_wanted = true;
	reason_say(REASON_FAULT, "fault");
	reason_say(EINVAL, "call");
	reason_drop();
	reason_wanted = false;
	assert_null(reason_take(REASON_FAULT));
	assert_string_equal(reason_take(EINVAL), "call");
}

static int fails(void)
{
	return CALL_REASON(-EINVAL, "always");
}

TEST(reason__costs_no_text_while_it_is_not_wanted)
{
	assert_int_equal(fails(), -EINVAL);
	assert_null(reason_take(EINVAL));
	reason_wanted = true;
	assert_int_equal(fails(), -EINVAL);
	assert_string_equal(reason_take(EINVAL), "always");
	reason_wanted = false;
}

TEST(reason_enter__forgets_what_was_said_before_the_outermost_call)
{
	unsigned int depth;

	reason_say(EINVAL, "before");
	reason_enter("outer");
	assert_false(reason_is_said(EINVAL));
	reason_say(EINVAL, "of the outer one");
	reason_enter("inner");
	assert_string_equal(reason_call(&depth), "outer");
	assert_int_equal(depth, 2);
	reason_leave();
	assert_true(reason_is_said(-EINVAL));
	reason_leave();
	assert_null(reason_call(&depth));
	reason_take(EINVAL);
}
