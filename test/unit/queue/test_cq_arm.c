/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of cq_arm in lib/queue/cq.c: which completions raise an event. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>

#include "cq_rig.h"

/* Return how many events two completions raise after an arming. */
static int events_of(struct cq *cq, bool solicited, enum ibv_wc_status status)
{
	const struct ibv_wc wc = {.status = status};
	struct ibv_wc out[2];

	assert_int_equal(cq_push(cq, &wc, solicited), 0);
	assert_int_equal(cq_push(cq, &wc, solicited), 0);
	assert_int_equal(cq_poll(cq, 2, out), 2);
	return events(cq->user);
}

TEST(cq_arm__fires_once_for_what_it_was_armed_for, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	int user;
	struct cq *cq;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	assert_int_equal(events_of(cq, true, IBV_WC_SUCCESS), 0);
	cq_arm(cq, false);
	assert_int_equal(events_of(cq, false, IBV_WC_SUCCESS), 1);
	assert_int_equal(events_of(cq, true, IBV_WC_SUCCESS), 0);
	cq_arm(cq, false);
	assert_int_equal(events_of(cq, true, IBV_WC_SUCCESS), 1);
	cq_arm(cq, true);
	assert_int_equal(events_of(cq, false, IBV_WC_SUCCESS), 0);
	assert_int_equal(events_of(cq, true, IBV_WC_SUCCESS), 1);
	cq_arm(cq, true);
	assert_int_equal(events_of(cq, false, IBV_WC_WR_FLUSH_ERR), 1);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_arm__any_is_not_weakened_by_solicited, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	int user;
	struct cq *cq;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	cq_arm(cq, true);
	cq_arm(cq, false);
	assert_int_equal(events_of(cq, false, IBV_WC_SUCCESS), 1);
	cq_arm(cq, false);
	cq_arm(cq, true);
	assert_int_equal(events_of(cq, false, IBV_WC_SUCCESS), 1);
	assert_int_equal(cq_destroy(cq), 0);
}

/* As adapters do: a program may poll, arm and sleep, and a completion comes after its last poll. */
TEST(cq_arm__what_nobody_has_polled_raises_the_event_now, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	int user;
	struct cq *cq;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	assert_int_equal(push(cq, 0), 0);
	assert_int_equal(push(cq, 1), 0);
	cq_arm(cq, false);
	assert_int_equal(events(&user), 1);
	assert_false(cq_is_armed(cq));
	/* That event ended the arming. */
	assert_int_equal(push(cq, 2), 0);
	assert_int_equal(events(&user), 0);
	/* No event has reported completion 2. */
	assert_polled(cq, 0, 1);
	cq_arm(cq, false);
	assert_int_equal(events(&user), 1);
	assert_polled(cq, 1, 2);
	cq_arm(cq, false);
	assert_int_equal(events(&user), 0);
	assert_int_equal(push(cq, 3), 0);
	assert_int_equal(events(&user), 1);
	assert_int_equal(cq_destroy(cq), 0);
}

/* perftest takes an event, arms, and then polls. It takes an event without a completion for an
 * error. */
TEST(cq_arm__what_an_event_has_reported_raises_no_second_one, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	int user;
	struct cq *cq;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	cq_arm(cq, false);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(push(cq, i), 0);
		assert_int_equal(events(&user), 1);
		cq_arm(cq, false);
		assert_int_equal(events(&user), 0);
		assert_true(cq_is_armed(cq));
		assert_polled(cq, i, 1);
	}
	assert_int_equal(cq_destroy(cq), 0);
}

/* Long ago an event reported a completion whose index the queue has again. */
TEST(cq_arm__forgets_what_was_reported_before_the_indices_wrap, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	int user;
	struct cq *cq;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	cq->reported = 2;
	cq->prod = cq->cons = 2 + (1u << 30);
	assert_int_equal(push(cq, 0), 0);
	assert_polled(cq, 0, 1);
	cq->prod = cq->cons = 1;
	assert_int_equal(push(cq, 1), 0);
	cq_arm(cq, false);
	assert_int_equal(events(&user), 1);
	assert_int_equal(cq_destroy(cq), 0);
}

static void push_as_solicited(struct cq *cq, bool solicited, enum ibv_wc_status status)
{
	const struct ibv_wc wc = {.status = status};

	assert_int_equal(cq_push(cq, &wc, solicited), 0);
}

TEST(cq_arm__for_solicited_looks_for_a_solicited_one_or_an_error, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	struct ibv_wc wc[4];
	struct cq *cq;
	int user;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	assert_int_equal(events_of_arming(cq), 0);
	push_as_solicited(cq, false, IBV_WC_SUCCESS);
	assert_int_equal(events_of_arming(cq), 0);
	push_as_solicited(cq, true, IBV_WC_SUCCESS);
	push_as_solicited(cq, false, IBV_WC_SUCCESS);
	assert_int_equal(events_of_arming(cq), 1);
	/* The event has reported it. */
	assert_int_equal(events_of_arming(cq), 0);
	push_as_solicited(cq, true, IBV_WC_SUCCESS);
	push_as_solicited(cq, false, IBV_WC_SUCCESS);
	/* The solicited one has been polled. */
	assert_int_equal(cq_poll(cq, 4, wc), 4);
	assert_int_equal(events_of_arming(cq), 0);
	push_as_solicited(cq, false, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(events_of_arming(cq), 1);
	assert_int_equal(cq_poll(cq, 2, wc), 2);
	assert_int_equal(events_of_arming(cq), 0);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_arm__any_after_solicited_looks_again, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	struct cq *cq;
	int user;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	push_as_solicited(cq, false, IBV_WC_SUCCESS);
	cq_arm(cq, true);
	assert_int_equal(events(&user), 0);
	cq_arm(cq, false);
	assert_int_equal(events(&user), 1);
	assert_int_equal(cq_destroy(cq), 0);
}

/* 2^32 completions after a solicited one, its index is in the queue again. */
TEST(cq_arm__forgets_a_solicited_one_before_the_indices_wrap, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	struct ibv_wc wc;
	struct cq *cq;
	int user;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	cq->prod = cq->cons = UINT32_MAX - 1;
	push_as_solicited(cq, true, IBV_WC_SUCCESS);
	assert_int_equal(events_of_arming(cq), 1);
	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	for (uint32_t left = 0; left < 8; left++) {
		/* Let a quarter of the indices pass. */
		cq->prod = cq->cons = cq->prod + (UINT32_MAX / 4 - 1);
		push_as_solicited(cq, false, IBV_WC_SUCCESS);
		push_as_solicited(cq, false, IBV_WC_SUCCESS);
		assert_int_equal(events_of_arming(cq), 0);
		assert_int_equal(cq_poll(cq, 1, &wc), 1);
		assert_int_equal(events_of_arming(cq), 0);
		assert_int_equal(cq_poll(cq, 1, &wc), 1);
	}
	assert_int_equal(cq_destroy(cq), 0);
}

/* A queue that no poll empties for 2^32 completions. */
TEST(cq_arm__forgets_a_solicited_one_in_a_queue_that_is_never_empty, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	struct ibv_wc wc;
	struct cq *cq;
	int user;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	push_as_solicited(cq, false, IBV_WC_SUCCESS);
	push_as_solicited(cq, false, IBV_WC_SUCCESS);
	/* So far in the past that the next one would come upon it. */
	cq->solicited = cq->prod + 1;
	push_as_solicited(cq, false, IBV_WC_SUCCESS);
	assert_int_equal(events_of_arming(cq), 0);
	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	assert_int_equal(events_of_arming(cq), 0);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_arm__without_a_channel_does_nothing)
{
	struct cq *cq;

	assert_int_equal(cq_create(8, NULL, NULL, NULL, &cq), 0);
	cq_arm(cq, false);
	assert_int_equal(push(cq, 0), 0);
	cq_arm(cq, false);
	assert_polled(cq, 0, 1);
	assert_int_equal(cq_destroy(cq), 0);
}

/* Sleep as programs do: drain, arm, drain again, and sleep. A lost wake-up hangs the program. */
TEST(cq_arm__a_sleeper_never_misses_a_completion, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	uint64_t next = 0;
	pthread_t engine;
	struct ibv_wc wc;
	void *object;
	struct cq *cq;
	int code;

	assert_int_equal(fcntl(channel.fd, F_SETFL, 0), 0);
	assert_int_equal(cq_create(16, &channel, NULL, NULL, &cq), 0);
	assert_int_equal(pthread_create(&engine, NULL, push_many, cq), 0);
	while (next < STRESS_COMPLETIONS) {
		cq_arm(cq, false);
		if (cq_poll(cq, 1, &wc) == 0) {
			assert_int_equal(channel_read(&channel, &object, &code), 0);
			continue;
		}
		do {
			assert_int_equal(wc.wr_id, next++);
		} while (cq_poll(cq, 1, &wc) == 1);
	}
	assert_int_equal(pthread_join(engine, NULL), 0);
	assert_int_equal(cq_destroy(cq), 0);
}

static void *push_many_solicited(void *arg)
{
	struct cq *cq = arg;

	/* One in three is solicited; the last one is. */
	for (uint64_t i = 1; i <= STRESS_COMPLETIONS; i++) {
		const struct ibv_wc wc = {.wr_id = i};
		const bool solicited = i % 3 == 0 || i == STRESS_COMPLETIONS;

		while (cq_push(cq, &wc, solicited) != 0)
			sched_yield();
	}
	return NULL;
}

/* Sleep as UCX does: poll, arm, and sleep. What came after the last poll must raise an event. */
static void poll_arm_and_sleep(void *(*engine)(void *cq), bool solicited_only)
{
	uint64_t taken = 0;
	pthread_t thread;
	struct cq *cq;

	assert_int_equal(fcntl(channel.fd, F_SETFL, 0), 0);
	assert_int_equal(cq_create(64, &channel, NULL, NULL, &cq), 0);
	assert_int_equal(pthread_create(&thread, NULL, engine, cq), 0);
	while (taken < STRESS_COMPLETIONS) {
		struct ibv_wc wc[16];
		void *object;
		int code, n;

		while ((n = cq_poll(cq, 16, wc)) > 0)
			taken += (uint64_t)n;
		if (taken == STRESS_COMPLETIONS)
			break;
		cq_arm(cq, solicited_only);
		assert_int_equal(channel_read(&channel, &object, &code), 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_arm__a_sleeper_need_not_poll_after_it, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	poll_arm_and_sleep(push_many, false);
}

TEST(cq_arm__a_sleeper_for_solicited_ones_need_not_poll_after_it, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	poll_arm_and_sleep(push_many_solicited, true);
}

#define ROUNDS 100000

static struct {
	struct cq *cq;
	uint32_t begun;	 /* atomic: rounds that the engine may push in */
	uint32_t pushed; /* atomic */
} step;

static void *push_in_step(void *arg)
{
	(void)arg;
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		while (__atomic_load_n(&step.begun, __ATOMIC_ACQUIRE) != round)
			sched_yield();
		push(step.cq, round);
		__atomic_store_n(&step.pushed, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Both sides act at the same instant, many times: either the poll finds the completion, or the
 * event reports it. */
TEST(cq_arm__either_the_poll_or_the_event_tells, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	pthread_t engine;

	assert_int_equal(cq_create(1, &channel, &step, NULL, &step.cq), 0);
	assert_int_equal(pthread_create(&engine, NULL, push_in_step, NULL), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		struct ibv_wc wc;
		int polled;

		__atomic_store_n(&step.begun, round, __ATOMIC_RELEASE);
		/* Delay some rounds more than others: the other side takes about this long to see
		 * `begun`. */
		for (volatile uint32_t i = 0; i < round % 512; i++)
			;
		cq_arm(step.cq, false);
		polled = cq_poll(step.cq, 1, &wc);
		while (__atomic_load_n(&step.pushed, __ATOMIC_ACQUIRE) != round)
			sched_yield();
		if (polled == 0)
			assert_int_equal(cq_poll(step.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, round);
		assert_true(polled + events(&step) >= 1);
	}
	assert_int_equal(pthread_join(engine, NULL), 0);
	assert_int_equal(cq_destroy(step.cq), 0);
}

/* A program may take a completion while it is still being added and arm for the next one; it then
 * sleeps until that comes. */
static void take_before_arming(bool armed_for_solicited)
{
	pthread_t engine;

	assert_int_equal(cq_create(1, &channel, &step, NULL, &step.cq), 0);
	step.begun = 0;
	step.pushed = 0;
	assert_int_equal(pthread_create(&engine, NULL, push_in_step, NULL), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		struct ibv_wc wc;

		if (armed_for_solicited)
			cq_arm(step.cq, true);
		__atomic_store_n(&step.begun, round, __ATOMIC_RELEASE);
		for (uint32_t i = 1; cq_poll(step.cq, 1, &wc) == 0; i++) {
			if (i % 1024 == 0)
				sched_yield();
		}
		cq_arm(step.cq, false);
		while (__atomic_load_n(&step.pushed, __ATOMIC_ACQUIRE) != round)
			sched_yield();
		assert_int_equal(events(&step), 0);
		assert_int_equal(cq_armed_for(step.cq), CQ_ARMED_ANY);
		/* The next one would tell: it is not armed for any more. */
		step.cq->armed = CQ_NOT_ARMED;
	}
	assert_int_equal(pthread_join(engine, NULL), 0);
	assert_int_equal(cq_destroy(step.cq), 0);
}

TEST(cq_arm__nothing_tells_of_what_was_taken_before, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	take_before_arming(false);
	take_before_arming(true);
}
