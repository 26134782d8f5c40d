/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion counters: what they count, and when they may be attached and destroyed. */
#include "device/limits.h"
#include "queue/comp_cntr.h"

#include "later.h"
#include "talk.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define BYTES 5000 /* several packets */

static struct later_comp_cntr *create(struct ibv_context *context, enum later_comp_cntr_type type)
{
	struct later_comp_cntr_init_attr attr = {.type = type};
	struct later_comp_cntr *cntr = later_create_comp_cntr(context, &attr);

	assert_non_null(cntr);
	assert_ptr_equal(cntr->context, context);
	return cntr;
}

static int attach(struct ibv_qp *qp, struct later_comp_cntr *cntr, uint32_t ops)
{
	struct later_qp_attach_comp_cntr_attr attr = {.op_mask = ops};

	return later_qp_attach_comp_cntr(qp, cntr, &attr);
}

#define OP(op) (1u << COMP_CNTR_##op)

static void assert_counts(struct later_comp_cntr *cntr, uint64_t done, uint64_t failed)
{
	uint64_t value;

	assert_int_equal(later_read_comp_cntr(cntr, &value), 0);
	assert_int_equal(value, done);
	assert_int_equal(later_read_err_comp_cntr(cntr, &value), 0);
	assert_int_equal(value, failed);
}

/* Connect both ends again: counters are attached to queue pairs that have no peer yet. */
static void disconnect(struct talk *talk)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(ibv_modify_qp(talk->a.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(talk->b.qp, &attr, IBV_QP_STATE), 0);
}

static void connect(struct talk *talk)
{
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp *const a = talk->a.qp, *const b = talk->b.qp;

	assert_int_equal(fake_connect(a, b->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(fake_connect(b, a->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(ibv_modify_qp(b, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

TEST(comp_cntr__counts_requests_of_its_operations)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct later_comp_cntr *sends = create(*state, LATER_COMP_CNTR_WRS),
			       *both = create(*state, LATER_COMP_CNTR_WRS),
			       *recvs = create(*state, LATER_COMP_CNTR_WRS),
			       *written = create(*state, LATER_COMP_CNTR_WRS);
	struct ibv_sge from = talk_source(&talk, 0, BYTES), word = talk_source(&talk, 0, 8),
		       to = talk_target(&talk, 0, TALK_BYTES);

	disconnect(&talk);
	assert_int_equal(attach(talk.a.qp, sends, OP(SEND)), 0);
	assert_int_equal(attach(talk.a.qp, both, OP(RDMA_READ) | OP(RDMA_WRITE)), 0);
	assert_int_equal(attach(talk.b.qp, recvs, OP(RECV)), 0);
	assert_int_equal(attach(talk.b.qp, written, OP(REMOTE_RDMA_WRITE)), 0);
	connect(&talk);
	for (int i = 0; i < 2; i++)
		talk_recv(&talk, &to, 1);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_counts(sends, 1, 0);
	assert_counts(both, 0, 0);
	assert_counts(recvs, 1, 0);
	assert_counts(written, 0, 0);
	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk_post(&talk, IBV_WR_RDMA_WRITE_WITH_IMM, &from, 1);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	talk_post(&talk, IBV_WR_RDMA_READ, &from, 1);
	/* An atomic is none of these. */
	talk_post(&talk, IBV_WR_ATOMIC_FETCH_AND_ADD, &word, 1);
	for (int i = 0; i < 5; i++)
		talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_counts(sends, 1, 0);
	assert_counts(both, 3, 0);
	assert_counts(recvs, 2, 0);
	assert_counts(written, 2, 0);
	talk_end(&talk);
	assert_int_equal(later_destroy_comp_cntr(sends), 0);
	assert_int_equal(later_destroy_comp_cntr(both), 0);
	assert_int_equal(later_destroy_comp_cntr(recvs), 0);
	assert_int_equal(later_destroy_comp_cntr(written), 0);
}

TEST(comp_cntr__counts_bytes)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct later_comp_cntr *cntr = create(*state, LATER_COMP_CNTR_BYTES),
			       *peer = create(*state, LATER_COMP_CNTR_BYTES);
	struct ibv_sge from = talk_source(&talk, 0, BYTES), to = talk_target(&talk, 0, TALK_BYTES);

	disconnect(&talk);
	assert_int_equal(attach(talk.a.qp, cntr, OP(SEND) | OP(RDMA_READ) | OP(RDMA_WRITE)), 0);
	assert_int_equal(attach(talk.b.qp, peer, OP(RECV) | OP(REMOTE_RDMA_WRITE)), 0);
	connect(&talk);
	talk_recv(&talk, &to, 1);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_counts(cntr, BYTES, 0);
	assert_counts(peer, BYTES, 0);
	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk_post(&talk, IBV_WR_RDMA_READ, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_counts(cntr, 3 * BYTES, 0);
	assert_counts(peer, 2 * BYTES, 0);
	talk_end(&talk);
	assert_int_equal(later_destroy_comp_cntr(cntr), 0);
	assert_int_equal(later_destroy_comp_cntr(peer), 0);
}

/* A program may poll no completion queue: requests that are not signaled have no completions. */
TEST(comp_cntr__needs_no_completions)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct later_comp_cntr *cntr = create(*state, LATER_COMP_CNTR_WRS);
	struct ibv_sge from = talk_source(&talk, 0, BYTES);
	struct ibv_send_wr wr = {
		.sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)talk.target, .rkey = talk.target_mr->rkey},
	};
	struct ibv_send_wr *bad;
	uint64_t value = 0;
	struct ibv_wc wc;

	disconnect(&talk);
	assert_int_equal(attach(talk.a.qp, cntr, OP(RDMA_WRITE)), 0);
	connect(&talk);
	assert_int_equal(ibv_post_send(talk.a.qp, &wr, &bad), 0);
	for (int i = 0; i < 100 && value == 0; i++)
		assert_int_equal(later_read_comp_cntr(cntr, &value), 0);
	assert_int_equal(value, 1);
	assert_memory_equal(talk.source, talk.target, BYTES);
	assert_int_equal(ibv_poll_cq(talk.a.cq, 1, &wc), 0);
	talk_end(&talk);
	assert_int_equal(later_destroy_comp_cntr(cntr), 0);
}

TEST(comp_cntr__counts_errors_apart)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct later_comp_cntr *cntr = create(*state, LATER_COMP_CNTR_BYTES),
			       *peer = create(*state, LATER_COMP_CNTR_BYTES);
	struct ibv_sge from = talk_source(&talk, 0, BYTES), to = talk_target(&talk, 0, TALK_BYTES);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	disconnect(&talk);
	assert_int_equal(attach(talk.a.qp, cntr, OP(RDMA_WRITE)), 0);
	assert_int_equal(attach(talk.b.qp, peer, OP(RECV)), 0);
	connect(&talk);
	for (int i = 0; i < 3; i++)
		talk_recv(&talk, &to, 1);
	assert_int_equal(ibv_modify_qp(talk.a.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(talk.b.qp, &attr, IBV_QP_STATE), 0);
	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_WR_FLUSH_ERR);
	talk_wait(talk.b.cq, IBV_WC_WR_FLUSH_ERR);
	assert_counts(cntr, 0, 1);
	assert_counts(peer, 0, 3);
	talk_end(&talk);
	assert_int_equal(later_destroy_comp_cntr(cntr), 0);
	assert_int_equal(later_destroy_comp_cntr(peer), 0);
}

TEST(comp_cntr__is_set_and_incremented)
{
	struct later_comp_cntr *cntr = create(*state, LATER_COMP_CNTR_WRS);

	assert_int_equal(later_set_comp_cntr(cntr, UINT64_MAX - 1), 0);
	assert_int_equal(later_set_err_comp_cntr(cntr, 7), 0);
	assert_counts(cntr, UINT64_MAX - 1, 7);
	assert_int_equal(later_inc_comp_cntr(cntr, 3), 0);
	assert_int_equal(later_inc_err_comp_cntr(cntr, 3), 0);
	assert_counts(cntr, 1, 10);
	assert_int_equal(later_destroy_comp_cntr(cntr), 0);
	assert_int_equal(later_destroy_comp_cntr(cntr), EINVAL);
}

TEST(attach__is_checked)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct later_comp_cntr *cntr = create(*state, LATER_COMP_CNTR_WRS);
	struct later_qp_attach_comp_cntr_attr attr = {.comp_mask = 1, .op_mask = OP(SEND)};

	assert_int_equal(later_qp_attach_comp_cntr(pair.qp, cntr, &attr), EOPNOTSUPP);
	assert_int_equal(attach(pair.qp, cntr, 0), EINVAL);
	assert_int_equal(attach(pair.qp, cntr, 1u << COMP_CNTR_OPS), EOPNOTSUPP);
	assert_int_equal(attach(pair.qp, cntr, OP(REMOTE_RDMA_READ)), EOPNOTSUPP);
	assert_int_equal(attach(pair.qp, cntr, OP(SEND) | OP(RECV)), 0);
	assert_int_equal(attach(pair.qp, cntr, OP(RECV) | OP(RDMA_READ)), EBUSY);
	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_INIT), 0);
	assert_int_equal(attach(pair.qp, cntr, OP(RDMA_READ)), 0);
	assert_int_equal(later_destroy_comp_cntr(cntr), EBUSY);
	fake_pair_destroy(&pair);
	pair = fake_pair_create(*state);
	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTR), 0);
	assert_int_equal(attach(pair.qp, cntr, OP(SEND)), EINVAL);
	fake_pair_destroy(&pair);
	assert_int_equal(later_destroy_comp_cntr(cntr), 0);
}

TEST(create_comp_cntr__is_checked)
{
	struct later_comp_cntr_init_attr attr = {.comp_mask = 1};

	assert_null(later_create_comp_cntr(*state, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr = (struct later_comp_cntr_init_attr){.flags = 1};
	assert_null(later_create_comp_cntr(*state, &attr));
	assert_int_equal(errno, EINVAL);
	attr = (struct later_comp_cntr_init_attr){
		.type = (enum later_comp_cntr_type)(LATER_COMP_CNTR_BYTES + 1)};
	assert_null(later_create_comp_cntr(*state, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fake.device->quota[DEVICE_QUOTA_COMP_CNTR], 0);
}

/* The caller's struct may have less or more fields. */
TEST(query_comp_cntr_caps__fills_what_the_caller_has)
{
	struct {
		struct later_comp_cntr_caps known;
		uint64_t later;
	} caps;

	memset(&caps, 0xff, sizeof(caps));
	assert_int_equal(later_query_comp_cntr_caps(*state, &caps.known, sizeof(caps)), 0);
	assert_int_equal(caps.known.max_value, UINT64_MAX);
	assert_int_equal(caps.known.max_counters, DEVICE_MAX_COMP_CNTR);
	assert_int_equal(caps.known.supported_qp_attach_ops, OP(SEND) | OP(RECV) | OP(RDMA_READ) |
								     OP(RDMA_WRITE) |
								     OP(REMOTE_RDMA_WRITE));
	assert_int_equal(caps.later, 0);
	memset(&caps, 0xff, sizeof(caps));
	assert_int_equal(later_query_comp_cntr_caps(
				 *state, &caps.known,
				 offsetof(struct later_comp_cntr_caps, supported_qp_attach_ops)),
			 0);
	assert_int_equal(caps.known.max_counters, DEVICE_MAX_COMP_CNTR);
	assert_int_equal(caps.known.supported_qp_attach_ops, UINT32_MAX);
}

/* Close the device of a counter that a queue pair uses. */
TEST(close_device__ends_counters)
{
	struct ibv_context *context = fake_open();
	struct fake_pair pair = fake_pair_create(context);
	struct later_comp_cntr *cntr = create(context, LATER_COMP_CNTR_WRS);
	uint64_t value;

	assert_int_equal(attach(pair.qp, cntr, OP(SEND)), 0);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(fake.device->quota[DEVICE_QUOTA_COMP_CNTR], 0);
	assert_int_equal(later_read_comp_cntr(cntr, &value), ENODEV);
	assert_int_equal(later_inc_comp_cntr(cntr, 1), ENODEV);
	assert_int_equal(later_destroy_comp_cntr(cntr), ENODEV);
}
