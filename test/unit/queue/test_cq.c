/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/cq.c: what is pushed, polled and forgotten. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "cq_rig.h"

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
TEST(cq_forget_qp__an_armed_queue_tells_of_the_next_one, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	struct ibv_wc wc = {.qp_num = 7};
	struct cq *cq;

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
