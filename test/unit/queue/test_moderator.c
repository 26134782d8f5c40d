/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/moderator.c: when events of a moderated completion queue are raised. */
#include <stddef.h>
#include <stdint.h>

#include "queue/cq.h"
#include "test.h"
#include "queues.h"

#define COUNT	  4
#define PERIOD_NS 1000u

static struct moderator moderator;
static struct channel channel;
static struct cq *cq;
static uint64_t now_ns;
static unsigned int taken;

static int set_up(TEST_STATE)
{
	now_ns = 5000;
	taken = 0;
	moderator_init(&moderator);
	if (channel_init(&channel) != 0 || cq_create(64, &channel, NULL, NULL, &cq) != 0)
		return -1;
	cq->now_ns = &now_ns;
	moderator_set(cq, &moderator, COUNT, PERIOD_NS);
	cq_arm(cq, false);
	return 0;
}

static int tear_down(TEST_STATE)
{
	if (cq)
		cq_destroy(cq);
	cq = NULL;
	channel_fini(&channel);
	assert_true(TAILQ_EMPTY(&moderator.waiting));
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void complete(unsigned int count)
{
	const struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	while (count-- > 0)
		assert_int_equal(cq_push(cq, &wc, false), 0);
}

static void complete_of(uint32_t qpn)
{
	const struct ibv_wc wc = {.status = IBV_WC_SUCCESS, .qp_num = qpn};

	assert_int_equal(cq_push(cq, &wc, false), 0);
}

static void pass(uint64_t ns)
{
	now_ns += ns;
	moderator_expire(&moderator, now_ns);
}

/* Events raised since the last call. */
static unsigned int events(void)
{
	const unsigned int before = taken;

	taken = cq->source.pending;
	return taken - before;
}

/* Take all completions and arm the queue, for an event of the next ones. */
static void poll_and_arm(void)
{
	struct ibv_wc wc;

	while (cq_poll(cq, 1, &wc) == 1)
		;
	cq_arm(cq, false);
}

TEST(due__the_last_of_the_count_raises_it)
{
	complete(COUNT - 1);
	assert_int_equal(events(), 0);
	complete(1);
	assert_int_equal(events(), 1);
	/* Each arming gives one event. */
	complete(2 * COUNT);
	assert_int_equal(events(), 0);
	poll_and_arm();
	complete(COUNT - 1);
	assert_int_equal(events(), 0);
	complete(1);
	assert_int_equal(events(), 1);
}

TEST(run__time_raises_it_too)
{
	complete(1);
	assert_int_equal(moderator.deadline_ns, now_ns + PERIOD_NS);
	pass(PERIOD_NS - 1);
	/* The period began with the first. */
	complete(1);
	assert_int_equal(events(), 0);
	pass(1);
	assert_int_equal(events(), 1);
	assert_true(moderator.deadline_ns == MODERATOR_NEVER);
	pass(10 * PERIOD_NS);
	assert_int_equal(events(), 0);
}

TEST(run__counts_anew_after_the_event)
{
	complete(COUNT - 1);
	pass(PERIOD_NS);
	assert_int_equal(events(), 1);
	poll_and_arm();
	complete(COUNT - 1);
	assert_int_equal(events(), 0);
	complete(1);
	assert_int_equal(events(), 1);
}

TEST(run__knows_several_queues)
{
	struct cq *first = cq, *second;

	assert_int_equal(cq_create(64, &channel, NULL, NULL, &second), 0);
	second->now_ns = &now_ns;
	moderator_set(second, &moderator, COUNT, PERIOD_NS / 2);
	cq_arm(second, false);
	complete(1);
	cq = second;
	complete(1);
	pass(PERIOD_NS / 2);
	assert_int_equal(second->source.pending, 1);
	assert_int_equal(first->source.pending, 0);
	assert_int_equal(moderator.deadline_ns, now_ns + PERIOD_NS / 2);
	pass(PERIOD_NS / 2);
	assert_int_equal(first->source.pending, 1);
	assert_int_equal(cq_destroy(second), 0);
	cq = first;
}

TEST(due__who_is_not_armed_waits_for_nothing)
{
	complete(COUNT);
	assert_int_equal(events(), 1);
	complete(COUNT);
	assert_true(TAILQ_EMPTY(&moderator.waiting));
	pass(PERIOD_NS);
	assert_int_equal(events(), 0);
}

/* A program that arms has polled before, and sleeps next. It must not wait a period for what came
 * in between. */
TEST(arm__what_nobody_has_polled_is_not_delayed)
{
	complete(COUNT);
	assert_int_equal(events(), 1);
	complete(1);
	cq_arm(cq, false);
	assert_int_equal(events(), 1);
	assert_true(TAILQ_EMPTY(&moderator.waiting));
}

/* An event is on its way already. */
TEST(arm__again_leaves_a_delayed_event_delayed)
{
	complete(1);
	cq_arm(cq, false);
	assert_int_equal(events(), 0);
	pass(PERIOD_NS);
	assert_int_equal(events(), 1);
}

/* The delayed event was raised by another arming, and what it reports was polled. */
TEST(expire__reports_nothing_that_was_polled_before_the_arming)
{
	const struct ibv_wc solicited = {.status = IBV_WC_SUCCESS};
	struct ibv_wc wc[2];

	cq->armed = CQ_NOT_ARMED;
	cq_arm(cq, true);
	assert_int_equal(cq_push(cq, &solicited, true), 0);
	cq_arm(cq, false);
	assert_int_equal(events(), 1);
	assert_int_equal(cq_poll(cq, 2, wc), 1);
	cq_arm(cq, false);
	pass(PERIOD_NS);
	assert_int_equal(events(), 0);
	assert_true(cq_is_armed(cq));
}

TEST(set__an_event_that_waits_is_raised)
{
	complete(1);
	moderator_set(cq, &moderator, COUNT, PERIOD_NS);
	assert_int_equal(events(), 1);
}

TEST(set__zero_ends_it)
{
	static const struct {
		uint32_t count;
		uint64_t period_ns;
	} none[] = {{0, PERIOD_NS}, {COUNT, 0}, {0, 0}};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		moderator_set(cq, &moderator, COUNT, PERIOD_NS);
		moderator_set(cq, &moderator, none[i].count, none[i].period_ns);
		poll_and_arm();
		complete(1);
		assert_int_equal(events(), 1);
	}
}

/* The engine has packets to send before threads wake up. */
TEST(due__nothing_is_raised_while_the_moderator_holds)
{
	moderator.holds = true;
	complete(2 * COUNT);
	assert_int_equal(events(), 0);
	assert_true(moderator_has_due(&moderator, 0));
	moderator.holds = false;
	pass(0);
	assert_int_equal(events(), 1);
	assert_false(moderator_has_due(&moderator, UINT64_MAX - 1));
	/* Fewer than the count wait for their time as usual. */
	poll_and_arm();
	moderator.holds = true;
	complete(1);
	moderator.holds = false;
	assert_int_equal(moderator.deadline_ns, now_ns + PERIOD_NS);
	pass(PERIOD_NS);
	assert_int_equal(events(), 1);
}

TEST(due__an_event_without_moderation_is_held_too)
{
	moderator_set(cq, &moderator, 0, 0);
	cq->now_ns = NULL;
	complete(1);
	assert_int_equal(events(), 1);
	poll_and_arm();
	moderator.holds = true;
	complete(3);
	assert_int_equal(events(), 0);
	moderator.holds = false;
	pass(0);
	assert_int_equal(events(), 1);
}

TEST(forget__an_event_does_not_wait_for_what_was_dropped)
{
	complete_of(7);
	complete_of(7);
	cq_forget_qp(cq, 7);
	pass(PERIOD_NS);
	assert_int_equal(events(), 0);
	/* The queue is armed as before. */
	complete(COUNT - 1);
	assert_int_equal(events(), 0);
	complete(1);
	assert_int_equal(events(), 1);
}

TEST(forget__an_event_counts_what_is_left)
{
	complete_of(7);
	complete_of(8);
	complete_of(7);
	cq_forget_qp(cq, 7);
	complete(COUNT - 2);
	assert_int_equal(events(), 0);
	complete(1);
	assert_int_equal(events(), 1);
}

/* The event is for what was taken as well: nothing was dropped. */
TEST(forget__of_nothing_changes_nothing)
{
	struct ibv_wc wc;

	complete_of(7);
	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	cq_forget_qp(cq, 7);
	pass(PERIOD_NS);
	assert_int_equal(events(), 1);
}

TEST(destroy__takes_the_queue_out)
{
	complete(1);
	assert_false(TAILQ_EMPTY(&moderator.waiting));
	assert_int_equal(cq_destroy(cq), 0);
	cq = NULL;
	assert_true(TAILQ_EMPTY(&moderator.waiting));
	pass(PERIOD_NS);
}
