/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/cq.c. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "queue/cq.h"
#include "test.h"
#include "queues.h"

static int push(struct cq *cq, uint64_t wr_id)
{
	const struct ibv_wc wc = {.wr_id = wr_id, .status = IBV_WC_SUCCESS};

	return cq_push(cq, &wc, false);
}

static void assert_polled(struct cq *cq, uint64_t first, int count)
{
	for (int i = 0; i < count; i++) {
		struct ibv_wc wc;

		assert_int_equal(cq_poll(cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, first + (uint64_t)i);
	}
}

TEST(cq_create__room_is_at_least_what_was_asked_for)
{
	static const uint32_t asked[] = {1, 2, 3, 100, 4096, 4097};
	struct cq *cq;

	assert_int_equal(cq_create(0, NULL, NULL, NULL, &cq), -EINVAL);
	assert_int_equal(cq_create(UINT32_MAX, NULL, NULL, NULL, &cq), -EINVAL);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		assert_int_equal(cq_create(asked[i], NULL, NULL, NULL, &cq), 0);
		assert_true(cq->capacity >= asked[i]);
		for (uint32_t n = 0; n < cq->capacity; n++)
			assert_int_equal(push(cq, n), 0);
		assert_polled(cq, 0, (int)cq->capacity);
		assert_true(cq_empty(cq));
		assert_int_equal(cq_destroy(cq), 0);
	}
}

TEST(cq_poll__takes_the_oldest_first_and_no_more_than_asked)
{
	struct ibv_wc wc[8];
	struct cq *cq;

	assert_int_equal(cq_create(8, NULL, NULL, NULL, &cq), 0);
	assert_int_equal(cq_poll(cq, 8, wc), 0);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(push(cq, i), 0);
	assert_false(cq_empty(cq));
	assert_int_equal(cq_poll(cq, 0, wc), 0);
	assert_int_equal(cq_poll(cq, -1, wc), 0);
	assert_int_equal(cq_poll(cq, 3, wc), 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(wc[i].wr_id, i);
	assert_int_equal(cq_poll(cq, 8, wc), 2);
	assert_int_equal(wc[1].wr_id, 4);
	assert_int_equal(cq_poll(cq, 8, wc), 0);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_poll__every_field_comes_through)
{
	const struct ibv_wc in = {.wr_id = 1,
				  .status = IBV_WC_REM_ACCESS_ERR,
				  .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
				  .vendor_err = 3,
				  .byte_len = 4,
				  .imm_data = 5,
				  .qp_num = 6,
				  .src_qp = 7,
				  .wc_flags = IBV_WC_WITH_IMM,
				  .pkey_index = 8,
				  .slid = 9,
				  .sl = 10,
				  .dlid_path_bits = 11};
	struct ibv_wc out;
	struct cq *cq;

	assert_int_equal(cq_create(1, NULL, NULL, NULL, &cq), 0);
	assert_int_equal(cq_push(cq, &in, false), 0);
	assert_int_equal(cq_poll(cq, 1, &out), 1);
	assert_memory_equal(&in, &out, offsetof(struct ibv_wc, dlid_path_bits) + 1);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_forget_qp__leaves_the_others_in_their_order)
{
	struct ibv_wc wc;
	struct cq *cq;

	assert_int_equal(cq_create(8, NULL, NULL, NULL, &cq), 0);
	/* The indices have wrapped round the ring. */
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(push(cq, i), 0);
	assert_polled(cq, 0, 5);
	for (uint32_t i = 0; i < 8; i++) {
		wc = (struct ibv_wc){.wr_id = i, .qp_num = i % 3};
		assert_int_equal(cq_push(cq, &wc, false), 0);
	}
	cq_forget_qp(cq, 3);
	cq_forget_qp(cq, 0);
	for (uint32_t i = 0; i < 8; i++) {
		if (i % 3 == 0)
			continue;
		assert_int_equal(cq_poll(cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i);
	}
	assert_true(cq_empty(cq));
	cq_forget_qp(cq, 1);
	assert_int_equal(push(cq, 9), 0);
	assert_polled(cq, 9, 1);
	assert_int_equal(cq_destroy(cq), 0);
}

/* The next completion stands at an index that was used already when the queue was armed. */
TEST(cq_forget_qp__an_armed_queue_tells_of_the_next_one)
{
	struct channel channel;
	struct ibv_wc wc = {.qp_num = 7};
	struct cq *cq;

	assert_int_equal(channel_init(&channel), 0);
	assert_int_equal(cq_create(4, &channel, NULL, NULL, &cq), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cq_push(cq, &wc, false), 0);
	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	cq_arm(cq, true);
	cq_forget_qp(cq, 7);
	assert_true(cq_empty(cq));
	assert_int_equal(cq->source.pending, 0);
	wc.wr_id = 1;
	assert_int_equal(cq_push(cq, &wc, true), 0);
	assert_int_equal(cq->source.pending, 1);
	assert_polled(cq, 1, 1);
	assert_int_equal(cq_destroy(cq), 0);
	channel_fini(&channel);
}

static void count_overrun(void *user)
{
	(*(int *)user)++;
}

TEST(cq_forget_qp__makes_room_in_a_queue_that_overran)
{
	const struct ibv_wc wc = {.qp_num = 7};
	int overruns = 0;
	struct cq *cq;

	assert_int_equal(cq_create(2, NULL, &overruns, count_overrun, &cq), 0);
	for (int round = 1; round <= 2; round++) {
		assert_int_equal(cq_push(cq, &wc, false), 0);
		assert_int_equal(cq_push(cq, &wc, false), 0);
		assert_int_equal(cq_push(cq, &wc, false), -ENOSPC);
		assert_int_equal(overruns, round);
		/* The queue is empty: who was told begins anew. */
		cq_forget_qp(cq, 7);
	}
	assert_int_equal(push(cq, 1), 0);
	assert_polled(cq, 1, 1);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_push__a_full_queue_loses_the_newest_and_tells_once)
{
	int overruns = 0;
	struct cq *cq;

	assert_int_equal(cq_create(4, NULL, &overruns, count_overrun, &cq), 0);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(push(cq, i), 0);
	assert_int_equal(overruns, 0);
	assert_int_equal(push(cq, 4), -ENOSPC);
	assert_int_equal(push(cq, 5), -ENOSPC);
	assert_int_equal(overruns, 1);
	assert_polled(cq, 0, 4);
	assert_true(cq_empty(cq));
	assert_int_equal(cq_destroy(cq), 0);
}

static int resize(struct cq *cq, uint32_t cqe)
{
	struct cq_ring ring;
	int rc = cq_make_ring(cq, cqe, &ring);

	if (rc == 0)
		rc = cq_change_ring(cq, &ring);
	ring_free(&ring.memory);
	return rc;
}

static void fill_beyond(struct cq *cq)
{
	while (push(cq, 0) == 0)
		;
}

TEST(cq_push__an_overrun_after_a_new_beginning_is_told_again)
{
	struct ibv_wc wc[4];
	int overruns = 0;
	struct cq *cq;

	assert_int_equal(cq_create(4, NULL, &overruns, count_overrun, &cq), 0);
	fill_beyond(cq);
	assert_int_equal(cq_poll(cq, 3, wc), 3);
	fill_beyond(cq);
	assert_int_equal(overruns, 1);
	assert_int_equal(cq_poll(cq, 4, wc), 4);
	fill_beyond(cq);
	assert_int_equal(overruns, 2);
	assert_int_equal(resize(cq, 8), 0);
	fill_beyond(cq);
	assert_int_equal(overruns, 3);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_push__counters_may_wrap)
{
	struct cq *cq;

	assert_int_equal(cq_create(4, NULL, NULL, NULL, &cq), 0);
	cq->prod = cq->cons = UINT32_MAX - 1;
	for (uint64_t round = 0; round < 5; round++) {
		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(push(cq, i), 0);
		assert_int_equal(push(cq, 4), -ENOSPC);
		assert_polled(cq, 0, 4);
	}
	assert_int_equal(cq_destroy(cq), 0);
}

static struct channel channel;

static int set_up_channel(TEST_STATE)
{
	if (channel_init(&channel) != 0)
		return -1;
	return fcntl(channel.fd, F_SETFL, O_NONBLOCK);
}

static int tear_down_channel(TEST_STATE)
{
	channel_fini(&channel);
	return 0;
}

/* Return how many events wait, all of them of `user`. */
static int events(const void *user)
{
	void *object;
	int code, n = 0;

	for (; channel_read(&channel, &object, &code) == 0; n++)
		assert_ptr_equal(object, user);
	return n;
}

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

/* Arm for solicited completions, and return how many events that raises. Disarm. */
static int events_of_arming(struct cq *cq)
{
	int raised;

	cq_arm(cq, true);
	raised = events(cq->user);
	cq->armed = CQ_NOT_ARMED;
	return raised;
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

static void push_of(struct cq *cq, uint32_t qpn, bool solicited)
{
	const struct ibv_wc wc = {.status = IBV_WC_SUCCESS, .qp_num = qpn};

	assert_int_equal(cq_push(cq, &wc, solicited), 0);
}

/* What is left may be solicited: an event too many is better than one too few. */
TEST(cq_forget_qp__keeps_a_solicited_completion, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	static const struct {
		uint32_t qpns[4];   /* of the queue's completions */
		uint32_t solicited; /* a bit for each of them */
		int events;
	} cases[] = {
		{{7, 8, 7, 8}, 1u << 1, 1}, {{7, 8, 7, 8}, 1u << 3, 1},
		{{8, 7, 8, 7}, 1u << 0, 1}, {{7, 8, 7, 7}, 1u << 1 | 1u << 2, 1},
		{{7, 8, 8, 8}, 1u << 0, 0}, {{8, 8, 7, 8}, 0, 0},
		{{7, 7, 7, 7}, 0xf, 0},
	};
	struct cq *cq;
	int user;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(cq_create(4, &channel, &user, NULL, &cq), 0);
		/* The indices wrap. */
		cq->prod = cq->cons = UINT32_MAX - 1;
		for (uint32_t n = 0; n < 4; n++)
			push_of(cq, cases[i].qpns[n], cases[i].solicited >> n & 1);
		cq_forget_qp(cq, 7);
		assert_int_equal(events_of_arming(cq), cases[i].events);
		/* Those that come next are not solicited by where they stand. */
		while (cq_poll(cq, 1, &(struct ibv_wc){.wr_id = 0}) == 1)
			;
		push_of(cq, 7, false);
		assert_int_equal(events_of_arming(cq), 0);
		assert_int_equal(cq_destroy(cq), 0);
	}
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

TEST(cq_destroy__waits_for_its_users_and_forgets_its_events, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	int user;
	struct cq *cq;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	cq->users = 1;
	assert_int_equal(cq_destroy(cq), -EBUSY);
	cq->users = 0;
	cq_arm(cq, false);
	assert_int_equal(push(cq, 0), 0);
	assert_int_equal(cq_destroy(cq), 0);
	assert_int_equal(events(&user), 0);
}

TEST(cq_change_ring__keeps_what_waits)
{
	struct cq *cq;

	assert_int_equal(cq_create(4, NULL, NULL, NULL, &cq), 0);
	/* The ring's seam lies among the entries. */
	cq->prod = cq->cons = 2;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(push(cq, i), 0);
	assert_int_equal(resize(cq, 0), -EINVAL);
	assert_int_equal(resize(cq, UINT32_MAX), -EINVAL);
	assert_int_equal(resize(cq, 2), -EINVAL);
	assert_int_equal(cq->capacity, 4);
	assert_int_equal(resize(cq, 9), 0);
	assert_int_equal(cq->capacity, 16);
	for (uint64_t i = 4; i < 16; i++)
		assert_int_equal(push(cq, i), 0);
	assert_int_equal(push(cq, 16), -ENOSPC);
	assert_polled(cq, 0, 14);
	assert_int_equal(resize(cq, 2), 0);
	assert_int_equal(push(cq, 16), -ENOSPC);
	assert_polled(cq, 14, 2);
	assert_int_equal(cq_destroy(cq), 0);
}

#define STRESS_COMPLETIONS 100000

static void *push_many(void *arg)
{
	struct cq *cq = arg;

	for (uint64_t i = 0; i < STRESS_COMPLETIONS; i++) {
		while (push(cq, i) != 0)
			sched_yield();
	}
	return NULL;
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

static struct {
	struct cq *cq;
	uint8_t seen[STRESS_COMPLETIONS]; /* atomic */
	uint32_t taken;			  /* atomic */
	uint32_t disorder;		  /* atomic */
	pthread_barrier_t start;
} pollers;

static void *poll_many(void *arg)
{
	int64_t last = -1;

	(void)arg;
	pthread_barrier_wait(&pollers.start);
	while (__atomic_load_n(&pollers.taken, __ATOMIC_RELAXED) < STRESS_COMPLETIONS) {
		struct ibv_wc wc[4];
		const int n = cq_poll(pollers.cq, 4, wc);

		for (int i = 0; i < n; i++) {
			if ((int64_t)wc[i].wr_id <= last)
				__atomic_fetch_add(&pollers.disorder, 1, __ATOMIC_RELAXED);
			last = (int64_t)wc[i].wr_id;
			__atomic_fetch_add(&pollers.seen[wc[i].wr_id], 1, __ATOMIC_RELAXED);
		}
		__atomic_fetch_add(&pollers.taken, (uint32_t)n, __ATOMIC_RELAXED);
		if (n == 0)
			sched_yield();
	}
	return NULL;
}

TEST(cq_poll__two_threads_share_the_completions)
{
	pthread_t engine, threads[2];

	assert_int_equal(cq_create(64, NULL, NULL, NULL, &pollers.cq), 0);
	assert_int_equal(pthread_barrier_init(&pollers.start, NULL, 2), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poll_many, NULL), 0);
	assert_int_equal(pthread_create(&engine, NULL, push_many, pollers.cq), 0);
	assert_int_equal(pthread_join(engine, NULL), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(pollers.disorder, 0);
	for (size_t i = 0; i < STRESS_COMPLETIONS; i++)
		assert_int_equal(pollers.seen[i], 1);
	pthread_barrier_destroy(&pollers.start);
	assert_int_equal(cq_destroy(pollers.cq), 0);
}

#define SHARERS	    2
#define SHARER_TURN 1000000u /* clock units between completions of two threads */

static struct {
	struct cq *cq;
	pthread_barrier_t start;
	uint64_t clock; /* under the queue's own lock: only the clock touches it */
} sharing;

static uint64_t tick(void *arg)
{
	uint64_t *clock = arg;
	const uint64_t now = *clock + SHARER_TURN;

	/* Let another thread run in the middle of a push now and then. */
	if (now / SHARER_TURN % 4096 == 0)
		sched_yield();
	*clock = now;
	return now;
}

/* Push as the engine of this number: the number is in the id's upper half. */
static void *push_as(void *arg)
{
	const uint64_t number = (uintptr_t)arg;

	pthread_barrier_wait(&sharing.start);
	for (uint64_t i = 0; i < STRESS_COMPLETIONS; i++) {
		while (push(sharing.cq, number << 32 | i) != 0)
			sched_yield();
	}
	return NULL;
}

static void create_shared(uint32_t cqe, struct channel *events_of)
{
	static const uint64_t engine_ns = 5;
	const struct cq_attr attr = {.cqe = cqe, .channel = events_of, .stamp_ns = &engine_ns};

	sharing.clock = 0;
	assert_int_equal(cq_create_in(&attr, &sharing.cq), 0);
	cq_share(sharing.cq, tick, &sharing.clock);
}

static void start_sharers(pthread_t threads[SHARERS])
{
	assert_int_equal(pthread_barrier_init(&sharing.start, NULL, SHARERS), 0);
	for (uintptr_t i = 0; i < SHARERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, push_as, (void *)i), 0);
}

static void join_sharers(pthread_t threads[SHARERS])
{
	for (size_t i = 0; i < SHARERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&sharing.start);
}

/* Each engine's completions come once and in their order, and the clock was read once for each. */
TEST(cq_share__two_engines_lose_nothing)
{
	uint64_t next[SHARERS] = {0}, last_ns = 0;
	pthread_t threads[SHARERS];

	create_shared(64, NULL);
	start_sharers(threads);
	for (uint64_t taken = 0; taken < SHARERS * STRESS_COMPLETIONS;) {
		uint64_t stamp_ns;
		struct ibv_wc wc;

		if (!cq_poll_stamped(sharing.cq, &wc, &stamp_ns)) {
			sched_yield();
			continue;
		}
		assert_in_range(wc.wr_id >> 32, 0, SHARERS - 1);
		assert_int_equal((uint32_t)wc.wr_id, next[wc.wr_id >> 32]++);
		assert_int_equal(stamp_ns, last_ns + SHARER_TURN);
		last_ns = stamp_ns;
		taken++;
	}
	join_sharers(threads);
	assert_true(cq_empty(sharing.cq));
	assert_int_equal(cq_destroy(sharing.cq), 0);
}

/* As cq_arm__a_sleeper_never_misses_a_completion: a lost wake-up hangs the program. */
TEST(cq_share__a_sleeper_never_misses_a_completion_of_either, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	pthread_t threads[SHARERS];
	uint64_t taken = 0;

	assert_int_equal(fcntl(channel.fd, F_SETFL, 0), 0);
	create_shared(256, &channel);
	start_sharers(threads);
	while (taken < SHARERS * STRESS_COMPLETIONS) {
		struct ibv_wc wc[16];
		const int n = cq_poll(sharing.cq, 16, wc);
		void *object;
		int code;

		taken += (uint64_t)n;
		if (n > 0)
			continue;
		cq_arm(sharing.cq, false);
		assert_int_equal(channel_read(&channel, &object, &code), 0);
	}
	join_sharers(threads);
	assert_true(cq_empty(sharing.cq));
	assert_int_equal(cq_destroy(sharing.cq), 0);
}

/* Only completions that were there before have the engine's time. */
TEST(cq_share__stamps_come_from_the_given_clock)
{
	uint64_t engine_ns = 5, clock = 100, stamp_ns;
	const struct cq_attr attr = {.cqe = 4, .stamp_ns = &engine_ns};
	struct ibv_wc wc;
	struct cq *cq;

	assert_int_equal(cq_create_in(&attr, &cq), 0);
	assert_int_equal(push(cq, 0), 0);
	cq_share(cq, tick, &clock);
	engine_ns = 6;
	assert_int_equal(push(cq, 1), 0);
	assert_true(cq_poll_stamped(cq, &wc, &stamp_ns));
	assert_int_equal(stamp_ns, 5);
	assert_true(cq_poll_stamped(cq, &wc, &stamp_ns));
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(stamp_ns, 100 + SHARER_TURN);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(cq_share__a_full_queue_still_tells)
{
	int overruns = 0;
	struct cq *cq;

	assert_int_equal(cq_create(2, NULL, &overruns, count_overrun, &cq), 0);
	cq_share(cq, tick, &sharing.clock);
	assert_int_equal(push(cq, 0), 0);
	assert_int_equal(push(cq, 1), 0);
	assert_int_equal(push(cq, 2), -ENOSPC);
	assert_int_equal(push(cq, 3), -ENOSPC);
	assert_int_equal(overruns, 1);
	assert_polled(cq, 0, 2);
	assert_int_equal(push(cq, 4), 0);
	assert_polled(cq, 4, 1);
	assert_int_equal(cq_destroy(cq), 0);
}
