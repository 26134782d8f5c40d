/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of which cache lines of a queue pair and its queues belong to whom: on the fast path, no
 * two threads write the same line. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "../../../lib/qp/qp_internal.h"
#include "mem/key_table.h"
#include "mem/pd.h"
#include "queue/srq.h"
#include "raise_qp.h"
#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define IDLE_QPS		10000
#define READS			16
#define LINE			RTE_CACHE_LINE_MIN_SIZE
#define END(type, field)	(offsetof(type, field) + sizeof(((type *)NULL)->field))
#define FIRST_LINE(type, field) (offsetof(type, field) / LINE)
#define LAST_LINE(type, field)	((END(type, field) - 1) / LINE)

/* Check that two fields, and all between them, are on separate lines. */
#define assert_apart(type, last_of_one, first_of_other) \
	assert_true(LAST_LINE(type, last_of_one) < FIRST_LINE(type, first_of_other))

TEST(sq__poster_and_requester_write_apart)
{
	assert_apart(struct sq, build, cons);
	/* A post touches one line. */
	assert_int_equal(FIRST_LINE(struct sq, ring), LAST_LINE(struct sq, lock));
}

TEST(rq__poster_and_responder_write_apart)
{
	assert_apart(struct rq, kind, cons);
	assert_int_equal(FIRST_LINE(struct rq, ring), LAST_LINE(struct rq, lock));
	/* A shared one begins with it. */
	assert_int_equal(_Alignof(struct srq) % LINE, 0);
}

TEST(cq__engine_and_poller_write_apart)
{
	assert_apart(struct cq, users, prod);
	assert_apart(struct cq, moderation, cons);
	assert_apart(struct cq, lock, armed);
	assert_int_equal(sizeof(struct cq) % LINE, 0);
}

TEST(qp__posters_write_in_its_queues_only)
{
	assert_int_equal(offsetof(struct qp, sq) % LINE, 0);
	assert_int_equal(offsetof(struct qp, own_rq) % LINE, 0);
	/* The engine's part of a queue pair shares no line with another queue pair, which may
	 * belong to another engine. */
	assert_int_equal(_Alignof(struct qp) % LINE, 0);
	assert_int_equal(sizeof(struct qp) % LINE, 0);
}

/* Count the cache lines from one field to another. */
#define LINES(from, to) (LAST_LINE(struct qp, to) - FIRST_LINE(struct qp, from) + 1)

TEST(qp__a_message_needs_few_lines)
{
	/* Both ends read the state, the peer's identity, and whether an answer is owed. */
	assert_int_equal(LINES(sched, pacer.rate_kbps), 3);
	assert_int_equal(LINES(peer, replies.tail), 2);
	/* The sender reads what is in flight, and what to send and to complete. */
	assert_int_equal(LINES(loss.una, completer.page_absent), 4);
	/* The receiver reads what the peer may write. */
	assert_int_equal(LINES(responder.pd, responder.ooo.count), 2);
	/* Each reads no field of the other one. */
	assert_apart(struct qp, completer.page_absent, responder.pd);
}

TEST(qp_create__aligns)
{
	struct key_table *keys;
	struct qp_init init = {.type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct counters counters = {{0}};
	struct ibv_qp_cap cap;
	struct qp *qp[8];

	assert_int_equal(key_table_create(1, &keys), 0);
	assert_int_equal(pd_create(keys, &init.pd), 0);
	init.counters = &counters;
	for (size_t i = 0; i < RTE_DIM(qp); i++) {
		assert_int_equal(qp_create(&init, &cap, &qp[i]), 0);
		assert_int_equal((uintptr_t)qp[i] % LINE, 0);
	}
	for (size_t i = 0; i < RTE_DIM(qp); i++)
		qp_destroy(qp[i]);
	assert_int_equal(pd_destroy(init.pd), 0);
	key_table_destroy(keys);
}

static void connect(struct qp *qp)
{
	struct ibv_qp_attr attr = {.port_num = 1,
				   .path_mtu = IBV_MTU_256,
				   .max_rd_atomic = READS,
				   .max_dest_rd_atomic = READS,
				   .ah_attr = {.is_global = 1, .port_num = 1}};
	const struct path path = {.len = 0};

	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		attr.qp_state = (enum ibv_qp_state)state;
		assert_int_equal(qp_modify(qp, &attr, raise_mask(IBV_QPT_RC, attr.qp_state), &path),
				 0);
	}
}

static size_t resident_bytes(void)
{
	unsigned long all, resident;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
	fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* The memory that a connected, unused queue pair adds to the process. Its queues are as short as
 * possible, since the application chooses their length. */
TEST(qp__idle_takes_less_than_two_kib)
{
	struct key_table *keys;
	struct qp_init init = {.type = IBV_QPT_RC,
			       .port_mtu = IBV_MTU_256,
			       .max_rd_atomic = READS,
			       .max_dest_rd_atomic = READS,
			       .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct counters counters = {{0}};
	struct ibv_qp_cap cap;
	static struct qp *qp[IDLE_QPS];
	size_t before, bytes;

	assert_int_equal(key_table_create(1, &keys), 0);
	assert_int_equal(pd_create(keys, &init.pd), 0);
	init.counters = &counters;
	before = resident_bytes();
	for (size_t i = 0; i < RTE_DIM(qp); i++) {
		assert_int_equal(qp_create(&init, &cap, &qp[i]), 0);
		connect(qp[i]);
	}
	bytes = (resident_bytes() - before) / RTE_DIM(qp);
	print_message("%zu bytes an idle queue pair\n", bytes);
	/* Sanitizers keep memory of their own beside each object. */
	if (!SANITIZED)
		assert_in_range(bytes, 1, 2048);
	for (size_t i = 0; i < RTE_DIM(qp); i++)
		qp_destroy(qp[i]);
	assert_int_equal(pd_destroy(init.pd), 0);
	key_table_destroy(keys);
}
