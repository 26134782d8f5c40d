/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/receive.c: a receive request from the queue to its completion. */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fixture.h"
#include "queue/comp_cntr.h"
#include "transport/receive.h"
#include "wire/opcode.h"
#include "test.h"
#include "queues.h"

#define BYTES 64u
#define SEED  4u

static struct fixture fixture;
static struct region inbox;
static struct rq rq;
static struct receive receive;
static struct ibv_sge list[PACKET_FRAGS_MAX];
static const uint8_t data[BYTES] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static int set_up(TEST_STATE)
{
	fixture_set_up(&fixture, 256, 4);
	region_set_up(&inbox, fixture.pd, BYTES, IBV_ACCESS_LOCAL_WRITE, SEED);
	assert_int_equal(rq_init(&rq, 4, 2), 0);
	receive = (struct receive){.sge = list};
	return 0;
}

static int tear_down(TEST_STATE)
{
	rq_fini(&rq);
	region_tear_down(&inbox);
	fixture_tear_down(&fixture);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Post a receive request of two entries, of 5 and 10 bytes. */
static void post(uint64_t wr_id)
{
	struct ibv_sge sge[] = {region_sge(&inbox, 0, 5), region_sge(&inbox, 20, 10)};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = 2}, *bad;

	assert_int_equal(rq_post(&rq, &wr, &bad), 0);
}

TEST(receive_take__the_oldest)
{
	assert_false(receive_take(&receive, &rq, NULL));
	assert_false(receive.taken);
	post(1);
	post(2);
	assert_true(receive_take(&receive, &rq, NULL));
	assert_true(receive.taken);
	assert_int_equal(receive.wr_id, 1);
	assert_int_equal(receive.length, 15);
	assert_int_equal(rq.prod - rq.cons, 1);
}

TEST(receive_take__one_that_is_taken_starts_over)
{
	post(1);
	post(2);
	assert_true(receive_take(&receive, &rq, NULL));
	assert_int_equal(receive_store(&receive, fixture.pd, data, 7), MR_OK);
	assert_true(receive_take(&receive, &rq, NULL));
	assert_int_equal(receive.wr_id, 1);
	assert_int_equal(receive.filled, 0);
	assert_int_equal(rq.prod - rq.cons, 1);
	assert_int_equal(receive_store(&receive, fixture.pd, data + 3, 4), MR_OK);
	assert_memory_equal(inbox.bytes, data + 3, 4);
}

TEST(receive_complete__is_counted_with_its_bytes_or_as_failed)
{
	struct comp_cntr count = {.bytes = true};
	const struct comp_cntrs cntrs = {.of[COMP_CNTR_RECV] = &count};

	receive.cntrs = &cntrs;
	for (int failed = 0; failed < 2; failed++) {
		const enum ibv_wc_status status = failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
		struct ibv_wc wc = {0};

		post(1);
		assert_true(receive_take(&receive, &rq, NULL));
		assert_int_equal(receive_store(&receive, fixture.pd, data, 7), MR_OK);
		assert_int_equal(receive_complete(&receive, fixture.cq, &wc, status, NULL), 0);
		fixture_completion(fixture.cq, 1, status);
		assert_int_equal(count.done, 7);
		assert_int_equal(count.failed, failed);
	}
	receive.cntrs = NULL;
}

TEST(receive_take__is_a_copy)
{
	post(1);
	assert_true(receive_take(&receive, &rq, NULL));
	/* The slot is reused meanwhile. */
	memset(rq.ring, 0xff, (size_t)rq.max_wr * rq.stride);
	assert_int_equal(receive_store(&receive, fixture.pd, data, 15), MR_OK);
	assert_memory_equal(inbox.bytes, data, 5);
	assert_memory_equal(inbox.bytes + 20, data + 5, 10);
}

static void count(void *user)
{
	(*(int *)user)++;
}

TEST(receive_take__tells_a_shared_queue)
{
	int low = 0;
	struct srq *srq;

	assert_int_equal(srq_create(4, 2, fixture.pd, &srq), 0);
	srq->low = count;
	srq->user = &low;
	for (int i = 0; i < 2; i++) {
		struct ibv_recv_wr wr = {0}, *bad;

		assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	}
	assert_int_equal(srq_set_limit(srq, 2), 0);
	assert_true(receive_take(&receive, &srq->rq, srq));
	assert_int_equal(low, 1);
	/* A message that starts over takes no second receive request. */
	assert_int_equal(srq_set_limit(srq, 2), 0);
	assert_true(receive_take(&receive, &srq->rq, srq));
	assert_int_equal(low, 1);
	assert_int_equal(srq_destroy(srq), 0);
}

#define TAKERS	  2
#define REQUESTS  50000u
#define QUEUE_LEN 64

static struct {
	struct srq *srq;
	uint8_t seen[REQUESTS]; /* atomic: how often each was taken */
	uint32_t taken;		/* atomic */
	pthread_barrier_t start;
} shared;

/* Take requests as an engine of its own. Returns what was wrong, or NULL. */
static void *take_many(void *arg)
{
	struct ibv_sge sge[PACKET_FRAGS_MAX];
	uint64_t next = 0;

	(void)arg;
	pthread_barrier_wait(&shared.start);
	while (__atomic_load_n(&shared.taken, __ATOMIC_RELAXED) < REQUESTS) {
		struct receive own = {.sge = sge};

		if (!receive_take(&own, &shared.srq->rq, shared.srq)) {
			sched_yield();
			continue;
		}
		__atomic_fetch_add(&shared.taken, 1, __ATOMIC_RELAXED);
		if (own.wr_id >= REQUESTS || own.wr_id < next)
			return "order";
		next = own.wr_id + 1;
		/* The list is this request's, and of no other. */
		if (own.num_sge != 1 || own.sge[0].addr != own.wr_id * 8 || own.length != 8)
			return "list";
		__atomic_fetch_add(&shared.seen[own.wr_id], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void post_shared(uint64_t wr_id)
{
	struct ibv_sge sge = {.addr = wr_id * 8, .length = 8};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	while (rq_post(&shared.srq->rq, &wr, &bad) != 0)
		sched_yield();
}

/* The engines of two queue pairs take from one queue, while the program posts to it. */
TEST(receive_take__two_engines_take_each_request_once)
{
	pthread_t threads[TAKERS];
	int low = 0;

	memset(&shared, 0, sizeof(shared));
	assert_int_equal(srq_create(QUEUE_LEN, 2, fixture.pd, &shared.srq), 0);
	shared.srq->shared = true;
	shared.srq->low = count;
	shared.srq->user = &low;
	for (uint64_t i = 0; i < 4; i++)
		post_shared(i);
	assert_int_equal(srq_set_limit(shared.srq, 1), 0);
	assert_int_equal(pthread_barrier_init(&shared.start, NULL, TAKERS), 0);
	for (int i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, NULL), 0);
	for (uint64_t i = 4; i < REQUESTS; i++)
		post_shared(i);
	for (int i = 0; i < TAKERS; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	for (uint32_t i = 0; i < REQUESTS; i++)
		assert_int_equal(shared.seen[i], 1);
	/* The queue is empty now, so the limit was reached; its event comes once. */
	assert_int_equal(low, 1);
	pthread_barrier_destroy(&shared.start);
	assert_int_equal(srq_destroy(shared.srq), 0);
}

TEST(receive_store__up_to_the_end_of_the_list)
{
	post(1);
	assert_true(receive_take(&receive, &rq, NULL));
	assert_int_equal(receive_store(&receive, fixture.pd, data, 6), MR_OK);
	assert_int_equal(receive_store(&receive, fixture.pd, data, 0), MR_OK);
	assert_int_equal(receive_store(&receive, fixture.pd, data, 10), MR_OUT_OF_RANGE);
	assert_int_equal(receive.filled, 6);
	region_expect_pattern(&inbox, 21, 9, SEED);
	assert_int_equal(receive_store(&receive, fixture.pd, data + 6, 9), MR_OK);
	assert_memory_equal(inbox.bytes + 20, data + 5, 10);
	region_expect_pattern(&inbox, 5, 15, SEED);
	region_expect_pattern(&inbox, 30, BYTES - 30, SEED);
}

TEST(receive_store__of_another_domain)
{
	post(1);
	assert_true(receive_take(&receive, &rq, NULL));
	assert_int_equal(receive_store(&receive, fixture.other_pd, data, 1), MR_WRONG_PD);
	assert_int_equal(receive.filled, 0);
	region_expect_pattern(&inbox, 0, BYTES, SEED);
}

static void expect_completion(uint8_t opcode, enum ibv_wc_opcode completed, unsigned int flags)
{
	const struct packet packet = {.op = opcode_info(opcode), .imm_be = 9};
	struct ibv_wc wc = {.qp_num = 5, .src_qp = 6};

	post(3);
	assert_true(receive_take(&receive, &rq, NULL));
	assert_int_equal(receive_store(&receive, fixture.pd, data, 7), MR_OK);
	assert_int_equal(receive_complete(&receive, fixture.cq, &wc, IBV_WC_SUCCESS, &packet), 0);
	assert_false(receive.taken);
	wc = fixture_completion(fixture.cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, completed);
	assert_int_equal(wc.byte_len, 7);
	assert_int_equal(wc.wc_flags, flags);
	assert_int_equal(wc.imm_data, flags & IBV_WC_WITH_IMM ? 9 : 0);
	assert_int_equal(wc.qp_num, 5);
	assert_int_equal(wc.src_qp, 6);
}

TEST(receive_complete__says_what_the_packet_says)
{
	expect_completion(OPCODE_SEND_ONLY, IBV_WC_RECV, 0);
	expect_completion(OPCODE_SEND_LAST_IMM, IBV_WC_RECV, IBV_WC_WITH_IMM);
	expect_completion(OPCODE_WRITE_LAST_IMM, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
	expect_completion(OPCODE_UD | OPCODE_SEND_ONLY_IMM, IBV_WC_RECV, IBV_WC_WITH_IMM);
}

TEST(receive_complete__an_error_has_no_packet)
{
	struct ibv_wc wc = {.qp_num = 5};

	post(1);
	assert_true(receive_take(&receive, &rq, NULL));
	assert_int_equal(receive_complete(&receive, fixture.cq, &wc, IBV_WC_WR_FLUSH_ERR, NULL), 0);
	fixture_completion(fixture.cq, 1, IBV_WC_WR_FLUSH_ERR);
	assert_false(receive.taken);
}

TEST(receive_complete__a_full_queue)
{
	struct ibv_wc wc = {0};

	for (int i = 0; i < 4; i++)
		assert_int_equal(cq_push(fixture.cq, &wc, false), 0);
	post(1);
	assert_true(receive_take(&receive, &rq, NULL));
	assert_true(receive_complete(&receive, fixture.cq, &wc, IBV_WC_SUCCESS, NULL) < 0);
}
