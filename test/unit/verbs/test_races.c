/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues that are resized, polled and filled by different threads, and channels that
 * threads sleep on while completions come: nothing is lost, nothing comes twice, and each event
 * tells of something.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "live.h"
#include "test.h"

TEST_GROUP(live_set_up, live_tear_down);

#define TIMEOUT_MS 60000 /* for a wake-up that is not lost */

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.cap = {.max_send_wr = 2 * LIVE_WR_MAX,
			.max_recv_wr = 2 * LIVE_WR_MAX,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &init);
}

#define COMPLETIONS 40000

/* A queue that is resized. */
struct resized {
	struct ibv_cq *cq;
	struct ibv_cq_ex *ex; /* the same, read by the iterator; else NULL */
	struct ibv_qp *qp;
	unsigned int completed; /* atomic */
};

/* Post requests, never more in flight than the smallest size that the queue gets. */
static void *produce(void *arg)
{
	struct resized *resized = arg;

	for (unsigned int i = 0; i < COMPLETIONS; i++) {
		struct ibv_send_wr wr = {.wr_id = i,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED},
				   *bad;

		while (i - __atomic_load_n(&resized->completed, __ATOMIC_ACQUIRE) >= LIVE_WR_MAX)
			sched_yield();
		MUST(ibv_post_send(resized->qp, &wr, &bad) == 0);
	}
	return NULL;
}

static void *keep_resizing(void *arg)
{
	static const int sizes[] = {LIVE_WR_MAX, 1000, LIVE_WR_MAX + 1, 64, 5000};
	struct resized *resized = arg;

	for (unsigned int i = 0;
	     __atomic_load_n(&resized->completed, __ATOMIC_ACQUIRE) < COMPLETIONS; i++) {
		const int size = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];

		MUST(ibv_resize_cq(resized->cq, size) == 0);
		MUST(resized->cq->cqe >= size);
	}
	return NULL;
}

/* The iterator's view of the next completion: its number, or -1 for none. */
static int64_t iterate(struct ibv_cq_ex *ex)
{
	struct ibv_poll_cq_attr nothing = {.comp_mask = 0};
	int64_t number;

	if (ibv_start_poll(ex, &nothing) != 0)
		return -1;
	MUST(ex->status == IBV_WC_SUCCESS);
	number = (int64_t)ex->wr_id;
	ibv_end_poll(ex);
	return number;
}

/* Take each completion once and in order. Pause now and then, so that a resize has completions to
 * move. */
static void consume(struct resized *resized)
{
	unsigned int next = 0;

	while (next < COMPLETIONS) {
		struct ibv_wc wc[7];
		int n = 0;

		if (next % 64 == 0)
			sched_yield();
		if (resized->ex && next % 2) {
			const int64_t number = iterate(resized->ex);

			MUST(number < 0 || number == next);
			next += number >= 0;
		} else {
			n = ibv_poll_cq(resized->cq, 7, wc);
		}
		MUST(n >= 0);
		for (int i = 0; i < n; i++)
			MUST(wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id == next++);
		__atomic_store_n(&resized->completed, next, __ATOMIC_RELEASE);
	}
}

static void resize_between_threads(struct ibv_cq *cq, struct ibv_cq_ex *ex)
{
	struct ibv_pd *pd = ibv_alloc_pd(live_context);
	struct ibv_cq *other = ibv_create_cq(live_context, 16, NULL, NULL, 0);
	struct resized resized = {.cq = cq, .ex = ex, .qp = create_qp(pd, cq, cq)};
	struct ibv_qp *peer = create_qp(pd, other, other);
	pthread_t producer, resizer;
	struct ibv_wc wc;

	assert_true(live_connect(resized.qp, peer->qp_num, 0));
	assert_true(live_connect(peer, resized.qp->qp_num, 0));
	assert_int_equal(pthread_create(&producer, NULL, produce, &resized), 0);
	assert_int_equal(pthread_create(&resizer, NULL, keep_resizing, &resized), 0);
	consume(&resized);
	assert_int_equal(pthread_join(producer, NULL), 0);
	assert_int_equal(pthread_join(resizer, NULL), 0);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_qp(resized.qp), 0);
	assert_int_equal(ibv_destroy_qp(peer), 0);
	assert_int_equal(ibv_destroy_cq(other), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(resize_cq__under_traffic)
{
	resize_between_threads(ibv_create_cq(live_context, LIVE_WR_MAX, NULL, NULL, 0), NULL);
}

TEST(resize_cq__under_traffic_and_the_iterator)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = LIVE_WR_MAX,
					   .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(live_context, &attr);

	resize_between_threads(ibv_cq_ex_to_cq(ex), ex);
}

#define LANES	 3
#define SLEEPERS 2
#define BATCHES	 1000

/* A queue that threads wait for, and the queue pair that fills it. */
struct watched {
	struct ibv_cq *cq;
	struct ibv_cq *send_cq;
	struct ibv_qp *from;
	struct ibv_qp *to;
	bool solicited_only;

	pthread_mutex_t lock;
	unsigned int since;  /* completions taken since it was armed that an event is due for */
	unsigned int events; /* told of it */
	unsigned int armings;
	unsigned int received; /* atomic */
};

static struct {
	struct ibv_comp_channel *channel;
	struct watched watched[LANES];
	unsigned int busy; /* lanes that still send; atomic */
} room;

static void post_receive(struct watched *watched)
{
	struct ibv_recv_wr wr = {.wr_id = 0}, *bad;

	MUST(ibv_post_recv(watched->to, &wr, &bad) == 0);
}

/* The immediate data says whether an event was asked for. */
static void drain(struct watched *watched)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(watched->cq, 1, &wc) == 1) {
		MUST(wc.status == IBV_WC_SUCCESS && (wc.wc_flags & IBV_WC_WITH_IMM));
		watched->since += !watched->solicited_only || wc.imm_data != 0;
		post_receive(watched);
		__atomic_add_fetch(&watched->received, 1, __ATOMIC_ACQ_REL);
	}
}

static void arm(struct watched *watched)
{
	watched->since = 0;
	watched->armings++;
	MUST(ibv_req_notify_cq(watched->cq, watched->solicited_only) == 0);
	drain(watched);
}

static struct watched *find(const struct ibv_cq *cq)
{
	for (int i = 0; i < LANES; i++) {
		if (room.watched[i].cq == cq)
			return &room.watched[i];
	}
	return NULL;
}

/* An event of a queue means that something came since it was armed. */
static void *sleep_and_drain(void *arg)
{
	struct pollfd polled = {.fd = room.channel->fd, .events = POLLIN};

	(void)arg;
	while (__atomic_load_n(&room.busy, __ATOMIC_ACQUIRE) > 0) {
		struct watched *watched;
		struct ibv_cq *cq;
		void *cq_context;

		poll(&polled, 1, 20);
		if (ibv_get_cq_event(room.channel, &cq, &cq_context) != 0) {
			MUST(errno == EAGAIN);
			continue;
		}
		watched = find(cq);
		MUST(watched);
		pthread_mutex_lock(&watched->lock);
		drain(watched);
		MUST(watched->since > 0);
		watched->events++;
		arm(watched);
		pthread_mutex_unlock(&watched->lock);
		ibv_ack_cq_events(cq, 1);
	}
	return NULL;
}

/* Wait for messages that only an event can deliver, since no thread polls. */
static void expect_received(const struct watched *watched, unsigned int count)
{
	for (unsigned int ms = 0; __atomic_load_n(&watched->received, __ATOMIC_ACQUIRE) < count;) {
		struct ibv_wc wc;

		MUST(ibv_poll_cq(watched->send_cq, 1, &wc) == 0);
		for (int i = 0;
		     i < 1000 && __atomic_load_n(&watched->received, __ATOMIC_ACQUIRE) < count; i++)
			sched_yield();
		if (++ms > 10)
			poll(NULL, 0, 1);
		MUST(ms < TIMEOUT_MS);
	}
}

static void *send_batches(void *arg)
{
	struct watched *watched = arg;
	unsigned int sent = 0;

	for (unsigned int batch = 0; batch < BATCHES; batch++) {
		const unsigned int silent = batch % 4;

		/* Before the solicited message, send some that wake nobody. */
		for (unsigned int i = 0; i <= silent; i++) {
			struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM,
						 .imm_data = i == silent},
					   *bad;

			if (i == silent)
				wr.send_flags = IBV_SEND_SOLICITED;
			MUST(ibv_post_send(watched->from, &wr, &bad) == 0);
			sent++;
		}
		expect_received(watched, sent);
	}
	__atomic_sub_fetch(&room.busy, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void watch(struct watched *watched, struct ibv_pd *pd)
{
	pthread_mutex_init(&watched->lock, NULL);
	watched->cq = ibv_create_cq(live_context, 2 * LIVE_WR_MAX, NULL, room.channel, 0);
	watched->send_cq = ibv_create_cq(live_context, 1, NULL, NULL, 0);
	watched->from = create_qp(pd, watched->send_cq, watched->send_cq);
	watched->to = create_qp(pd, watched->send_cq, watched->cq);
	assert_true(live_connect(watched->from, watched->to->qp_num, 0));
	assert_true(live_connect(watched->to, watched->from->qp_num, 0));
	for (int i = 0; i < LIVE_WR_MAX; i++)
		post_receive(watched);
	arm(watched);
}

static void unwatch(struct watched *watched)
{
	/* Each arming gives at most one event. */
	assert_true(watched->events <= watched->armings);
	assert_true(watched->events > 0);
	assert_int_equal(ibv_destroy_qp(watched->from), 0);
	assert_int_equal(ibv_destroy_qp(watched->to), 0);
	assert_int_equal(ibv_destroy_cq(watched->cq), 0);
	assert_int_equal(ibv_destroy_cq(watched->send_cq), 0);
	pthread_mutex_destroy(&watched->lock);
}

TEST(channel__no_wake_up_is_lost_and_none_is_for_nothing)
{
	struct ibv_pd *pd = ibv_alloc_pd(live_context);
	pthread_t senders[LANES], sleepers[SLEEPERS];

	room.channel = ibv_create_comp_channel(live_context);
	assert_int_equal(fcntl(room.channel->fd, F_SETFL, O_NONBLOCK), 0);
	room.busy = LANES;
	for (int i = 0; i < LANES; i++) {
		room.watched[i].solicited_only = i > 0;
		watch(&room.watched[i], pd);
	}
	for (int i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&sleepers[i], NULL, sleep_and_drain, NULL), 0);
	for (int i = 0; i < LANES; i++)
		assert_int_equal(pthread_create(&senders[i], NULL, send_batches, &room.watched[i]),
				 0);
	for (int i = 0; i < LANES; i++)
		assert_int_equal(pthread_join(senders[i], NULL), 0);
	for (int i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_join(sleepers[i], NULL), 0);
	for (int i = 0; i < LANES; i++)
		unwatch(&room.watched[i]);
	assert_int_equal(ibv_destroy_comp_channel(room.channel), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

#define ROUNDS 400
#define PIECE  8 /* requests of either queue pair, a round */

/* A queue that is polled while queue pairs that complete in it are destroyed; one of them stays. */
struct outlived {
	struct ibv_cq *cq;
	struct ibv_cq_ex *ex; /* the same */
	struct ibv_qp *stays; /* its wr_id counts from 0 on */
	uint64_t gone; /* queue pairs that are destroyed, of those that count from 1; atomic */
	unsigned int received; /* completions of the one that stays; atomic */
	bool fills;	       /* nobody polls, so that completions gather; atomic */
};

/* A wr_id of a queue pair that is destroyed: which one it is. */
#define DOOMED UINT64_C(0x100000000)

static void take_outlived(struct outlived *outlived, uint64_t gone, uint64_t wr_id,
			  enum ibv_wc_status status)
{
	MUST(status == IBV_WC_SUCCESS);
	if (wr_id >= DOOMED) {
		MUST(wr_id - DOOMED > gone);
		return;
	}
	MUST(wr_id == outlived->received);
	__atomic_store_n(&outlived->received, outlived->received + 1, __ATOMIC_RELEASE);
}

static void iterate_outlived(struct outlived *outlived, uint64_t gone)
{
	struct ibv_poll_cq_attr nothing = {.comp_mask = 0};
	struct ibv_cq_ex *ex = outlived->ex;

	if (ibv_start_poll(ex, &nothing) != 0)
		return;
	do {
		take_outlived(outlived, gone, ex->wr_id, ex->status);
		/* The reader may already have taken completions of queue pairs that are destroyed
		 * from now on. */
		gone = __atomic_load_n(&outlived->gone, __ATOMIC_ACQUIRE);
	} while (ibv_next_poll(ex) == 0);
	ibv_end_poll(ex);
}

/* Whoever begins to poll when a queue pair is gone sees nothing of it. */
static void *poll_outlived(void *arg)
{
	struct outlived *outlived = arg;

	for (unsigned int i = 0; outlived->received < ROUNDS * PIECE; i++) {
		const uint64_t gone = __atomic_load_n(&outlived->gone, __ATOMIC_ACQUIRE);
		struct ibv_wc wc[3];
		int n = 0;

		if (__atomic_load_n(&outlived->fills, __ATOMIC_RELAXED)) {
			sched_yield();
			continue;
		}
		if (i % 4 == 0)
			iterate_outlived(outlived, gone);
		else
			n = ibv_poll_cq(outlived->cq, 3, wc);
		MUST(n >= 0);
		for (int j = 0; j < n; j++)
			take_outlived(outlived, gone, wc[j].wr_id, wc[j].status);
	}
	return NULL;
}

static void post_piece(struct ibv_qp *qp, uint64_t first, uint64_t step)
{
	for (uint64_t i = 0; i < PIECE; i++) {
		struct ibv_send_wr wr = {.wr_id = first + i * step,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED},
				   *bad;

		MUST(ibv_post_send(qp, &wr, &bad) == 0);
	}
}

/* Run some engine polls, in which the work posted to a queue pair of this device completes.
 */
static void run_polls(struct ibv_cq *empty)
{
	struct ibv_wc wc;

	for (int i = 0; i < 20; i++)
		MUST(ibv_poll_cq(empty, 1, &wc) == 0);
}

TEST(destroy_qp__while_its_queue_is_polled)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 128};
	struct ibv_pd *pd = ibv_alloc_pd(live_context);
	struct ibv_cq *other = ibv_create_cq(live_context, 16, NULL, NULL, 0);
	struct outlived outlived = {.ex = ibv_create_cq_ex(live_context, &attr)};
	struct ibv_qp *peer, *doomed;
	pthread_t poller;

	outlived.cq = ibv_cq_ex_to_cq(outlived.ex);
	outlived.stays = create_qp(pd, outlived.cq, outlived.cq);
	peer = create_qp(pd, other, other);
	assert_true(live_connect(outlived.stays, peer->qp_num, 0));
	assert_true(live_connect(peer, outlived.stays->qp_num, 0));
	assert_int_equal(pthread_create(&poller, NULL, poll_outlived, &outlived), 0);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		/* The queue pair is connected to itself, so its requests complete at once. */
		doomed = create_qp(pd, outlived.cq, outlived.cq);
		assert_true(live_connect(doomed, doomed->qp_num, 0));
		__atomic_store_n(&outlived.fills, true, __ATOMIC_RELAXED);
		post_piece(doomed, DOOMED + round, 0);
		post_piece(outlived.stays, (round - 1) * PIECE, 1);
		run_polls(other);
		__atomic_store_n(&outlived.fills, false, __ATOMIC_RELAXED);
		assert_int_equal(ibv_destroy_qp(doomed), 0);
		__atomic_store_n(&outlived.gone, round, __ATOMIC_RELEASE);
		while (round * PIECE - __atomic_load_n(&outlived.received, __ATOMIC_ACQUIRE) >
		       2 * PIECE)
			sched_yield();
	}
	assert_int_equal(pthread_join(poller, NULL), 0);
	assert_int_equal(ibv_destroy_qp(outlived.stays), 0);
	assert_int_equal(ibv_destroy_qp(peer), 0);
	assert_int_equal(ibv_destroy_cq(outlived.cq), 0);
	assert_int_equal(ibv_destroy_cq(other), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* A handle that two threads destroy at once. */
struct contested {
	pthread_barrier_t barrier; /* of both, before and after each round */
	struct ibv_qp *qp;
	unsigned int destroyed; /* atomic */
};

static void destroy_contested(struct contested *contested)
{
	int rc;

	pthread_barrier_wait(&contested->barrier);
	rc = ibv_destroy_qp(contested->qp);
	MUST(rc == 0 || rc == EINVAL);
	__atomic_fetch_add(&contested->destroyed, rc == 0, __ATOMIC_RELAXED);
	pthread_barrier_wait(&contested->barrier);
}

static void *contest(void *arg)
{
	for (int round = 0; round < ROUNDS; round++)
		destroy_contested(arg);
	return NULL;
}

TEST(destroy_qp__by_two_threads_happens_once)
{
	struct ibv_pd *pd = ibv_alloc_pd(live_context);
	struct ibv_cq *cq = ibv_create_cq(live_context, 16, NULL, NULL, 0);
	struct contested contested = {.destroyed = 0};
	pthread_t other;

	assert_int_equal(pthread_barrier_init(&contested.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&other, NULL, contest, &contested), 0);
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		contested.qp = create_qp(pd, cq, cq);
		assert_non_null(contested.qp);
		destroy_contested(&contested);
		assert_int_equal(__atomic_load_n(&contested.destroyed, __ATOMIC_RELAXED), round);
	}
	assert_int_equal(pthread_join(other, NULL), 0);
	pthread_barrier_destroy(&contested.barrier);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
