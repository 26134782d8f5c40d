/* SPDX-License-Identifier: BSD-3-Clause */
/* The passive side, with a mode that counts its calls. */
#include <errno.h>
#include <stdint.h>

#include "mode.h"
#include "passive.h"
#include "test.h"

static uint32_t polls;
static int poll_rc;

static int count_poll(struct passive *passive)
{
	(void)passive;
	polls++;
	return poll_rc;
}

static const struct mode counting = {.serve_poll = count_poll};
static struct passive passive;

static int setup(TEST_STATE)
{
	passive = (struct passive){.open = true, .mode = &counting, .plan.qps = 2, .connected = 2};
	polls = 0;
	poll_rc = 0;
	return 0;
}

TEST_FIXTURE(setup, NULL);

/* The modes use all queue pairs of the plan. A client may send messages before all have joined. */
TEST(passive_poll__does_not_serve_before_all_queue_pairs_have_joined)
{
	for (passive.connected = 0; passive.connected < 2; passive.connected++) {
		passive_poll(&passive);
		assert_int_equal(polls, 0);
	}
	passive_poll(&passive);
	assert_int_equal(polls, 1);
}

TEST(passive_poll__does_not_serve_after_a_failure)
{
	poll_rc = -EIO;
	passive_poll(&passive);
	passive_poll(&passive);
	assert_int_equal(polls, 1);
	assert_int_equal(passive.failed, -EIO);
}

TEST(passive_poll__does_not_serve_a_closed_test)
{
	passive.open = false;
	passive_poll(&passive);
	assert_int_equal(polls, 0);
}
