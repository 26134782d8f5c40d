/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/cc_change.c: another algorithm while packets are in flight. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transport/cc.h"
#include "transport/loss.h"
#include "transport/pacer.h"
#include "test.h"

#define NOW_NS UINT64_C(1000000)

static struct cc_paths paths;
static struct pacer pacer;
static struct scoreboard board;
static struct loss loss;

static int set_up(TEST_STATE)
{
	memset(&paths, 0, sizeof(paths));
	pacer = (struct pacer){.deadline_ns = PACER_NEVER};
	loss = (struct loss){.board = &board};
	scoreboard_init(&board);
	loss_init(&loss, psn_make(0));
	return 0;
}

static int tear_down(TEST_STATE)
{
	cc_destroy(pacer.cc);
	scoreboard_fini(&board);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void change(enum cc_kind kind)
{
	const struct cc_attr attr = {.kind = kind, .link_mbps = 10000, .paths = &paths};

	assert_int_equal(cc_change(&attr, &pacer, &loss), 0);
}

TEST(cc_change__keeps_the_applications_limit)
{
	pacer_set(&pacer, 2000000, 0, 1000);
	for (int from = 0; from < CC_KINDS; from++) {
		for (int to = 0; to < CC_KINDS; to++) {
			change((enum cc_kind)from);
			change((enum cc_kind)to);
			assert_int_equal(pacer.cc == NULL, to == CC_NONE);
			assert_int_equal(pacer.rate_kbps, 2000000);
			assert_true(pacer.burst_ns > 0);
		}
	}
	pacer_set(&pacer, 0, 0, 0);
	change(CC_NONE);
	assert_int_equal(pacer.rate_kbps, 0);
}

TEST(cc_change__none_restores_the_applications_limit)
{
	uint64_t burst_ns;

	pacer_set(&pacer, 8000000, 0, 1000);
	burst_ns = pacer.burst_ns;
	change(CC_DCQCN);
	cc_notified(pacer.cc, NOW_NS);
	assert_true(pacer.rate_kbps < 8000000);
	assert_true(pacer.burst_ns != burst_ns);
	change(CC_NONE);
	assert_int_equal(pacer.rate_kbps, 8000000);
	assert_true(pacer.burst_ns == burst_ns);
}

TEST(cc_change__none_sets_free)
{
	change(CC_DCQCN);
	cc_notified(pacer.cc, NOW_NS);
	pacer_poll(&pacer, NOW_NS);
	assert_true(pacer_holds(&pacer));
	change(CC_NONE);
	pacer_poll(&pacer, NOW_NS);
	assert_false(pacer_holds(&pacer));
	assert_true(pacer.deadline_ns == PACER_NEVER);
	change(CC_SWIFT);
	pacer_poll(&pacer, NOW_NS);
	pacer_sent_request(&pacer, loss.next, 1, 1000, false);
	assert_true(pacer_waits_new(&pacer, SWIFT_CWND_FIRST));
	change(CC_NONE);
	/* The requester does not ask the pacer. */
	assert_int_equal(pacer.rate_kbps, 0);
}

/*
 * More packets are in flight than the first window allows, and perhaps none of them asks for an
 * acknowledgement. One more packet leaves, which asks.
 */
TEST(cc_change__swift_lets_one_packet_ask)
{
	loss_sent_new(&loss, 200);
	change(CC_SWIFT);
	pacer_poll(&pacer, NOW_NS);
	assert_false(pacer_waits_new(&pacer, loss_outstanding(&loss)));
	assert_true(pacer_asks_ack(&pacer, 0));
	pacer_sent_request(&pacer, loss.next, 1, 1000, false);
	loss_sent_new(&loss, 1);
	assert_true(pacer_waits_new(&pacer, loss_outstanding(&loss)));
}
