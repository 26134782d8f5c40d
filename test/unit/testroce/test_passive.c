/* SPDX-License-Identifier: BSD-3-Clause */
/* The passive side, with a mode that counts its calls. */
#include <errno.h>
#include <stdint.h>

#include "mode.h"
#include "passive.h"
#include "test.h"

static uint32_t turns;
static int turn_rc;

static int turn(struct passive *passive)
{
	(void)passive;
	turns++;
	return turn_rc;
}

static const struct mode counting = {.serve_turn = turn};
static struct passive passive;

static int setup(TEST_STATE)
{
	passive = (struct passive){.open = true, .mode = &counting, .plan.qps = 2, .connected = 2};
	turns = 0;
	turn_rc = 0;
	return 0;
}

TEST_FIXTURE(setup, NULL);

/* The modes use all queue pairs of the plan. A client may send messages before all have joined. */
TEST(passive_turn__does_not_serve_before_all_queue_pairs_have_joined)
{
	for (passive.connected = 0; passive.connected < 2; passive.connected++) {
		passive_turn(&passive);
		assert_int_equal(turns, 0);
	}
	passive_turn(&passive);
	assert_int_equal(turns, 1);
}

TEST(passive_turn__does_not_serve_after_a_failure)
{
	turn_rc = -EIO;
	passive_turn(&passive);
	passive_turn(&passive);
	assert_int_equal(turns, 1);
	assert_int_equal(passive.failed, -EIO);
}

TEST(passive_turn__does_not_serve_a_closed_test)
{
	passive.open = false;
	passive_turn(&passive);
	assert_int_equal(turns, 0);
}
