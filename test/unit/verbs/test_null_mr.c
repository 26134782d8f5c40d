/* SPDX-License-Identifier: BSD-3-Clause */
/* A null region in every place where a local key stands (ibv_alloc_null_mr(3)). */
#include <string.h>

#include "talk.h"
#include "test.h"

static struct talk talk;
static struct ibv_mr *null_a;
static struct ibv_mr *null_b;
static const uint8_t zeros[TALK_BYTES];

static int set_up(void **state)
{
	talk_set_up(&talk, state);
	null_a = ibv_alloc_null_mr(talk.a.pd);
	null_b = ibv_alloc_null_mr(talk.b.pd);
	return null_a && null_b ? 0 : -1;
}

static int tear_down(void **state)
{
	assert_int_equal(ibv_dereg_mr(null_a), 0);
	assert_int_equal(ibv_dereg_mr(null_b), 0);
	return talk_tear_down(&talk, state);
}

TEST_FIXTURE(set_up, tear_down);

/* Addresses in it mean nothing: give odd ones. */
static struct ibv_sge null_sge(const struct ibv_mr *mr, uint32_t length)
{
	return (struct ibv_sge){.addr = 0xdead0001, .length = length, .lkey = mr->lkey};
}

static void expect_source_untouched(void)
{
	for (size_t i = 0; i < TALK_BYTES; i++)
		assert_int_equal(talk.source[i], (uint8_t)(i * 31 + 7));
}

TEST(send__sends_zeros)
{
	struct ibv_sge from[] = {talk_source(&talk, 0, 100), null_sge(null_a, 3000)};
	struct ibv_sge to = talk_target(&talk, 0, TALK_BYTES);

	memset(talk.target, 0xee, TALK_BYTES);
	talk_recv(&talk, &to, 1);
	talk_post(&talk, IBV_WR_SEND, from, 2);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(talk_wait(talk.b.cq, IBV_WC_SUCCESS).byte_len, 3100);
	assert_memory_equal(talk.target, talk.source, 100);
	assert_memory_equal(talk.target + 100, zeros, 3000);
	assert_int_equal(talk.target[3100], 0xee);
}

TEST(receive__drops_what_comes)
{
	struct ibv_sge to[] = {null_sge(null_b, 100), talk_target(&talk, 0, TALK_BYTES)};
	struct ibv_sge from = talk_source(&talk, 0, 5000);

	talk_recv(&talk, to, 2);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(talk_wait(talk.b.cq, IBV_WC_SUCCESS).byte_len, 5000);
	assert_memory_equal(talk.target, talk.source + 100, 4900);
	assert_memory_equal(talk.target + 4900, zeros, TALK_BYTES - 4900);
}

/* The same where the buffer stands in a shared receive queue. */
TEST(srq__drops_what_comes)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 1, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(talk.b.pd, &srq_init);
	struct ibv_qp *b = talk_shared(&talk, srq);
	struct ibv_sge to[] = {null_sge(null_b, 4000), talk_target(&talk, 0, TALK_BYTES)};
	struct ibv_sge from = talk_source(&talk, 0, 5000);
	struct ibv_recv_wr wr = {.sg_list = to, .num_sge = 2}, *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(talk_wait(talk.b.cq, IBV_WC_SUCCESS).byte_len, 5000);
	assert_memory_equal(talk.target, talk.source + 4000, 1000);
	assert_memory_equal(talk.target + 1000, zeros, TALK_BYTES - 1000);
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

TEST(read__into_it_drops_what_comes)
{
	struct ibv_sge to[] = {null_sge(null_a, 3), talk_source(&talk, 8, 8),
			       null_sge(null_a, 4000)};

	memset(talk.target, 0xee, TALK_BYTES);
	talk_post(&talk, IBV_WR_RDMA_READ, to, 2);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.source + 8, talk.target, 8);
	talk.source[8] = 0;
	/* Read the whole length. */
	memset(talk.source, 0xaa, 64);
	talk_post(&talk, IBV_WR_RDMA_READ, &to[2], 1);
	assert_int_equal(talk_wait(talk.a.cq, IBV_WC_SUCCESS).byte_len, 4000);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(talk.source[i], 0xaa);
}

TEST(write__writes_zeros)
{
	struct ibv_sge from = null_sge(null_a, TALK_BYTES);

	memset(talk.target, 0xee, TALK_BYTES);
	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target, zeros, TALK_BYTES);
}

/* Return how many bytes of payload an operation has read and written. */
static void expect_touched(enum ibv_wr_opcode opcode, struct ibv_sge *from, struct ibv_sge *to,
			   uint64_t read, uint64_t written)
{
	const struct counters *counters = &device_first(fake.device)->counters;
	const uint64_t read_before = counters_get(counters, COUNTER_tx_payload_bytes_read);
	const uint64_t written_before = counters_get(counters, COUNTER_rx_payload_bytes_written);

	if (opcode == IBV_WR_SEND)
		talk_recv(&talk, to, 1);
	talk_post(&talk, opcode, from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	if (opcode == IBV_WR_SEND)
		talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(counters_get(counters, COUNTER_tx_payload_bytes_read) - read_before, read);
	assert_int_equal(counters_get(counters, COUNTER_rx_payload_bytes_written) - written_before,
			 written);
}

TEST(counters__not_a_byte_is_touched)
{
	struct ibv_sge from = talk_source(&talk, 0, 5000), to = talk_target(&talk, 0, 5000);
	struct ibv_sge nothing = null_sge(null_a, 5000), nowhere = null_sge(null_b, 5000);

	expect_touched(IBV_WR_SEND, &from, &to, 5000, 5000);
	expect_touched(IBV_WR_SEND, &nothing, &to, 0, 5000);
	expect_touched(IBV_WR_SEND, &from, &nowhere, 5000, 0);
	expect_touched(IBV_WR_SEND, &nothing, &nowhere, 0, 0);
	expect_touched(IBV_WR_RDMA_WRITE, &from, NULL, 5000, 5000);
	expect_touched(IBV_WR_RDMA_WRITE, &nothing, NULL, 0, 5000);
	expect_touched(IBV_WR_RDMA_READ, &from, NULL, 5000, 5000);
	expect_touched(IBV_WR_RDMA_READ, &nothing, NULL, 5000, 0);
}

TEST(atomic__result_is_dropped)
{
	struct ibv_sge to = null_sge(null_a, 8);
	uint64_t value;

	talk_post(&talk, IBV_WR_ATOMIC_FETCH_AND_ADD, &to, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	memcpy(&value, talk.target, sizeof(value));
	assert_int_equal(value, 1);
	expect_source_untouched();
}

/* The local key, taken for a remote one, opens nothing. */
TEST(write__to_it_from_afar_is_refused)
{
	struct ibv_sge from = talk_source(&talk, 0, 8);
	struct ibv_mr guessed = {.rkey = null_b->lkey};
	struct ibv_mr *own = talk.target_mr;

	talk.target_mr = &guessed;
	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk.target_mr = own;
	talk_wait(talk.a.cq, IBV_WC_REM_ACCESS_ERR);
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(send__with_that_of_another_domain_fails)
{
	struct ibv_sge from = null_sge(null_b, 8);

	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_LOC_PROT_ERR);
}
