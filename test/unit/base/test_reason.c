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

TEST(reason_say__keeps_errno)
{
	errno = EBUSY;
	reason_say(-EINVAL, "%m");
	assert_int_equal(errno, EBUSY);
	reason_take(EINVAL);
}

static void *restore(void *who)
{
	reason_restore(who);
	return (void *)reason_take(REASON_FAULT);
}

TEST(reason_restore__serves_another_thread_once)
{
	pthread_t thread;
	void *text;
	int who;

	reason_say(REASON_FAULT, "kept");
	reason_keep(&who);
	assert_null(reason_take(REASON_FAULT));
	assert_int_equal(pthread_create(&thread, NULL, restore, &who), 0);
	assert_int_equal(pthread_join(thread, &text), 0);
	assert_non_null(text);
	reason_restore(&who);
	assert_null(reason_take(REASON_FAULT));
}

TEST(reason_keep__drops_the_oldest)
{
	char who[17];

	for (unsigned int i = 0; i < sizeof(who); i++) {
		reason_say(REASON_FAULT, "%u", i);
		reason_keep(&who[i]);
	}
	reason_restore(&who[0]);
	assert_null(reason_take(REASON_FAULT));
	reason_restore(&who[1]);
	assert_string_equal(reason_take(REASON_FAULT), "1");
	for (unsigned int i = 2; i < sizeof(who); i++) {
		reason_restore(&who[i]);
		assert_non_null(reason_take(REASON_FAULT));
	}
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
