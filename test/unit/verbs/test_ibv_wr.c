/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: when the engine hears of it; and call by call, by every call there is. */
#include <string.h>

#include "base/verbs_later.h"
#include "fake_provider.h"
#include "test.h"
#include "wire/headers.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(post_send__kicks)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad = NULL;
	unsigned int kicks;

	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTS), 0);
	kicks = fake.kicks;
	assert_int_equal(ibv_post_send(pair.qp, &wr, &bad), 0);
	assert_int_equal(fake.kicks, kicks + 1);
	fake_pair_destroy(&pair);
}

TEST(post_send__kicks_for_what_stands_before_a_bad_request)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_send_wr wrong = {.opcode = IBV_WR_BIND_MW};
	struct ibv_send_wr good = {.opcode = IBV_WR_SEND, .next = &wrong};
	struct ibv_send_wr *bad = NULL;
	unsigned int kicks;

	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTS), 0);
	kicks = fake.kicks;
	assert_int_equal(ibv_post_send(pair.qp, &good, &bad), EINVAL);
	assert_ptr_equal(bad, &wrong);
	assert_int_equal(fake.kicks, kicks + 1);
	fake_pair_destroy(&pair);
}

TEST(post_send__does_not_kick_for_nothing)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad = NULL;
	const unsigned int kicks = fake.kicks;

	assert_int_equal(ibv_post_send(pair.qp, &wr, &bad), EINVAL); /* RESET */
	assert_ptr_equal(bad, &wr);
	assert_int_equal(fake.kicks, kicks);
	fake_pair_destroy(&pair);
}

TEST(post_recv__kicks_in_error_only)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_recv_wr wr = {.wr_id = 5}, *bad = NULL;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;
	unsigned int kicks;

	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_INIT), 0);
	kicks = fake.kicks;
	assert_int_equal(ibv_post_recv(pair.qp, &wr, &bad), 0);
	assert_int_equal(fake.kicks, kicks);
	fake.carries = true;
	assert_int_equal(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_poll_cq(pair.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	kicks = fake.kicks;
	assert_int_equal(ibv_post_recv(pair.qp, &wr, &bad), 0);
	assert_int_equal(fake.kicks, kicks + 1);
	assert_int_equal(ibv_poll_cq(pair.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	fake_pair_destroy(&pair);
}

#define BYTES 4096

static uint8_t source[BYTES] __attribute__((aligned(8)));
static uint8_t target[BYTES] __attribute__((aligned(8)));

struct extended {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *source;
	struct ibv_mr *target;
	struct ibv_qp *a;
	struct ibv_qp *b;
	struct ibv_qp_ex *ex; /* of a */
};

#define RC_OPS                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static struct ibv_qp *create_qp(struct ibv_context *context, struct extended *extended,
				enum ibv_qp_type type, uint64_t flags)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = extended->cq,
		.recv_cq = extended->cq,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 64},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = extended->pd,
		.send_ops_flags = flags,
	};

	return ibv_create_qp_ex(context, &init);
}

static struct extended start(struct ibv_context *context, enum ibv_qp_type type, uint64_t flags)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct extended extended = {
		.pd = ibv_alloc_pd(context),
		.cq = ibv_create_cq(context, 16, NULL, NULL, 0),
	};

	fake.carries = true;
	extended.source = ibv_reg_mr(extended.pd, source, BYTES, access);
	extended.target = ibv_reg_mr(extended.pd, target, BYTES, access);
	extended.a = create_qp(context, &extended, type, flags);
	extended.b = create_qp(context, &extended, type, flags);
	assert_non_null(extended.a);
	assert_non_null(extended.b);
	extended.ex = ibv_qp_to_qp_ex(extended.a);
	assert_non_null(extended.ex);
	extended.ex->wr_id = 0;
	assert_int_equal(fake_connect(extended.a, extended.b->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(fake_connect(extended.b, extended.a->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	for (size_t i = 0; i < BYTES; i++)
		source[i] = (uint8_t)(i * 7 + 3);
	memset(target, 0, BYTES);
	return extended;
}

static void end(struct extended *extended)
{
	assert_int_equal(ibv_destroy_qp(extended->a), 0);
	assert_int_equal(ibv_destroy_qp(extended->b), 0);
	assert_int_equal(ibv_dereg_mr(extended->source), 0);
	assert_int_equal(ibv_dereg_mr(extended->target), 0);
	assert_int_equal(ibv_destroy_cq(extended->cq), 0);
	assert_int_equal(ibv_dealloc_pd(extended->pd), 0);
}

static void receive(struct extended *extended)
{
	struct ibv_sge sge = {(uintptr_t)target, BYTES, extended->target->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1000, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(extended->b, &wr, &bad), 0);
}

static struct ibv_wc completion(struct extended *extended, uint64_t wr_id,
				enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(extended->cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
	return wc;
}

static void begin(struct extended *extended, uint64_t wr_id)
{
	ibv_wr_start(extended->ex);
	extended->ex->wr_id = wr_id;
	extended->ex->wr_flags = IBV_SEND_SIGNALED;
}

static void set_source(struct extended *extended, uint32_t length)
{
	ibv_wr_set_sge(extended->ex, extended->source->lkey, (uintptr_t)source, length);
}

TEST(send__by_each_setter)
{
	struct extended extended = start(*state, IBV_QPT_RC, RC_OPS);
	struct ibv_sge list[2] = {{(uintptr_t)source, 10, extended.source->lkey},
				  {(uintptr_t)source + 10, 20, extended.source->lkey}};
	struct ibv_data_buf bufs[2] = {{source, 10}, {source + 10, 20}};

	for (int i = 0; i < 4; i++) {
		receive(&extended);
		memset(target, 0, 40);
		begin(&extended, (uint64_t)i);
		ibv_wr_send(extended.ex);
		if (i == 0)
			set_source(&extended, 30);
		else if (i == 1)
			ibv_wr_set_sge_list(extended.ex, 2, list);
		else if (i == 2)
			ibv_wr_set_inline_data(extended.ex, source, 30);
		else
			ibv_wr_set_inline_data_list(extended.ex, 2, bufs);
		assert_int_equal(ibv_wr_complete(extended.ex), 0);
		assert_int_equal(completion(&extended, 1000, IBV_WC_RECV).byte_len, 30);
		completion(&extended, (uint64_t)i, IBV_WC_SEND);
		assert_memory_equal(source, target, 30);
		assert_int_equal(target[30], 0);
	}
	end(&extended);
}

TEST(imm__arrives)
{
	struct extended extended = start(*state, IBV_QPT_RC, RC_OPS);
	struct ibv_wc wc;

	receive(&extended);
	begin(&extended, 1);
	ibv_wr_send_imm(extended.ex, 0x11223344);
	set_source(&extended, 8);
	assert_int_equal(ibv_wr_complete(extended.ex), 0);
	wc = completion(&extended, 1000, IBV_WC_RECV);
	assert_int_equal(wc.imm_data, 0x11223344);
	completion(&extended, 1, IBV_WC_SEND);
	receive(&extended);
	begin(&extended, 2);
	ibv_wr_rdma_write_imm(extended.ex, extended.target->rkey, (uintptr_t)target + 100,
			      0x55667788);
	set_source(&extended, 8);
	assert_int_equal(ibv_wr_complete(extended.ex), 0);
	wc = completion(&extended, 1000, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x55667788);
	completion(&extended, 2, IBV_WC_RDMA_WRITE);
	assert_memory_equal(target + 100, source, 8);
	end(&extended);
}

TEST(write__and_read)
{
	struct extended extended = start(*state, IBV_QPT_RC, RC_OPS);

	begin(&extended, 1);
	ibv_wr_rdma_write(extended.ex, extended.target->rkey, (uintptr_t)target);
	set_source(&extended, 3000);
	extended.ex->wr_id = 2;
	ibv_wr_rdma_read(extended.ex, extended.target->rkey, (uintptr_t)target + 100);
	ibv_wr_set_sge(extended.ex, extended.source->lkey, (uintptr_t)source + 3000, 50);
	assert_int_equal(ibv_wr_complete(extended.ex), 0);
	completion(&extended, 1, IBV_WC_RDMA_WRITE);
	completion(&extended, 2, IBV_WC_RDMA_READ);
	assert_memory_equal(source, target, 3000);
	assert_memory_equal(source + 3000, target + 100, 50);
	end(&extended);
}

TEST(atomics__change_the_target)
{
	struct extended extended = start(*state, IBV_QPT_RC, RC_OPS);
	uint64_t *word = (uint64_t *)(void *)target;
	const uint64_t *result = (const uint64_t *)(const void *)source;

	*word = 40;
	begin(&extended, 1);
	ibv_wr_atomic_fetch_add(extended.ex, extended.target->rkey, (uintptr_t)target, 2);
	set_source(&extended, 8);
	assert_int_equal(ibv_wr_complete(extended.ex), 0);
	completion(&extended, 1, IBV_WC_FETCH_ADD);
	assert_int_equal(*word, 42);
	assert_int_equal(*result, 40);
	begin(&extended, 2);
	ibv_wr_atomic_cmp_swp(extended.ex, extended.target->rkey, (uintptr_t)target, 42, 7);
	set_source(&extended, 8);
	assert_int_equal(ibv_wr_complete(extended.ex), 0);
	completion(&extended, 2, IBV_WC_COMP_SWAP);
	assert_int_equal(*word, 7);
	assert_int_equal(*result, 42);
	end(&extended);
}

TEST(atomic_write__stores_its_word)
{
	struct extended extended = start(*state, IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE);
	struct ibv_sge sge = {(uintptr_t)source, 8, extended.source->lkey};
	struct ibv_send_wr wr = {.wr_id = 2,
				 .opcode = IBV_WR_ATOMIC_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;
	struct ibv_wc wc;

	begin(&extended, 1);
	ibv_wr_atomic_write(extended.ex, extended.target->rkey, (uintptr_t)target + 16, source);
	assert_int_equal(ibv_wr_complete(extended.ex), 0);
	completion(&extended, 1, IBV_WC_ATOMIC_WRITE);
	assert_memory_equal(target + 16, source, 8);
	assert_int_equal(target[24], 0);
	wr.wr.rdma.remote_addr = (uintptr_t)target + 32;
	wr.wr.rdma.rkey = extended.target->rkey;
	assert_int_equal(ibv_post_send(extended.a, &wr, &bad), 0);
	completion(&extended, 2, IBV_WC_ATOMIC_WRITE);
	assert_memory_equal(target + 32, source, 8);
	begin(&extended, 3);
	ibv_wr_atomic_write(extended.ex, extended.target->rkey, (uintptr_t)target + 4, source);
	assert_int_equal(ibv_wr_complete(extended.ex), 0);
	/* The responder refuses the address. */
	assert_int_equal(ibv_poll_cq(extended.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(target[4], 0);
	end(&extended);
}

/* A program compiled with a later verbs.h does this. */
TEST(flush__by_programs_of_later_releases)
{
	struct extended extended =
		start(*state, IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE | LATER_QP_EX_WITH_FLUSH);
	void (*const flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t) =
		later_qp_ex(extended.ex)->wr_flush;
	struct ibv_qp_attr attr = {.qp_access_flags =
					   IBV_ACCESS_REMOTE_WRITE | LATER_ACCESS_FLUSH_GLOBAL};
	struct ibv_mr *mr = ibv_reg_mr(extended.pd, target, BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					       (int)LATER_ACCESS_FLUSH_GLOBAL);

	assert_non_null(mr);
	assert_int_equal(ibv_modify_qp(extended.b, &attr, IBV_QP_ACCESS_FLAGS), 0);
	for (uint8_t level = FETH_SELECT_RANGE; level <= FETH_SELECT_REGION; level++) {
		begin(&extended, 1);
		ibv_wr_rdma_write(extended.ex, mr->rkey, (uintptr_t)target);
		set_source(&extended, 3000);
		extended.ex->wr_id = 2;
		flush(extended.ex, mr->rkey, (uintptr_t)target, 3000, FETH_PLACE_GLOBAL, level);
		assert_int_equal(ibv_wr_complete(extended.ex), 0);
		completion(&extended, 1, IBV_WC_RDMA_WRITE);
		completion(&extended, 2, (enum ibv_wc_opcode)LATER_WC_FLUSH);
	}
	assert_memory_equal(source, target, 3000);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	end(&extended);
}

TEST(datagram__goes_to_its_address)
{
	struct extended extended =
		start(*state, IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V6);
	struct ibv_ah *ah = ibv_create_ah(extended.pd, &attr);

	receive(&extended);
	begin(&extended, 1);
	ibv_wr_send_imm(extended.ex, 1);
	ibv_wr_set_ud_addr(extended.ex, ah, extended.b->qp_num, FAKE_QKEY);
	set_source(&extended, 100);
	assert_int_equal(ibv_wr_complete(extended.ex), 0);
	completion(&extended, 1, IBV_WC_SEND);
	assert_int_equal(completion(&extended, 1000, IBV_WC_RECV).byte_len, 140);
	assert_memory_equal(target + 40, source, 100);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	end(&extended);
}

TEST(complete__with_one_wrong_request_posts_none)
{
	struct extended extended = start(*state, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	const unsigned int kicks = fake.kicks;
	struct ibv_wc wc;

	receive(&extended);
	begin(&extended, 1);
	ibv_wr_send(extended.ex);
	set_source(&extended, 8);
	/* send_ops_flags does not include it. */
	ibv_wr_rdma_write(extended.ex, extended.target->rkey, (uintptr_t)target);
	set_source(&extended, 8);
	assert_int_equal(ibv_wr_complete(extended.ex), EINVAL);
	assert_int_equal(fake.kicks, kicks);
	assert_int_equal(ibv_poll_cq(extended.cq, 1, &wc), 0);
	end(&extended);
}

TEST(abort__posts_nothing)
{
	struct extended extended = start(*state, IBV_QPT_RC, RC_OPS);
	struct ibv_wc wc;

	receive(&extended);
	begin(&extended, 1);
	ibv_wr_send(extended.ex);
	set_source(&extended, 8);
	ibv_wr_abort(extended.ex);
	assert_int_equal(ibv_poll_cq(extended.cq, 1, &wc), 0);
	end(&extended);
}

TEST(complete__before_the_queue_pair_sends_fails)
{
	struct extended extended = start(*state, IBV_QPT_RC, RC_OPS);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(ibv_modify_qp(extended.a, &attr, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++) {
		begin(&extended, 1);
		ibv_wr_send(extended.ex);
		set_source(&extended, 8);
		assert_int_equal(ibv_wr_complete(extended.ex), EINVAL);
	}
	end(&extended);
}

TEST(create__refuses_what_the_type_does_not_send)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t flags;
		int error;
	} cases[] = {
		{IBV_QPT_RC, IBV_QP_EX_WITH_TSO, EOPNOTSUPP},
		{IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, EOPNOTSUPP},
		{IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP},
		{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, EOPNOTSUPP},
		{IBV_QPT_RC, 1ull << 40, EINVAL},
		{IBV_QPT_RC, 1ull << 13, EINVAL},
		{IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_WRITE, EOPNOTSUPP},
		{IBV_QPT_UC, LATER_QP_EX_WITH_FLUSH, EOPNOTSUPP},
		{IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_ATOMIC_WRITE | LATER_QP_EX_WITH_FLUSH, 0},
		{IBV_QPT_UC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE, 0},
		{IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM, 0},
		{IBV_QPT_XRC_SEND, RC_OPS, 0},
	};
	struct extended extended = {
		.pd = ibv_alloc_pd(*state),
		.cq = ibv_create_cq(*state, 16, NULL, NULL, 0),
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct ibv_qp *qp;

		errno = 0;
		qp = create_qp(*state, &extended, cases[i].type, cases[i].flags);
		assert_int_equal(errno, cases[i].error);
		assert_int_equal(qp == NULL, cases[i].error != 0);
		if (qp)
			assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	assert_int_equal(ibv_destroy_cq(extended.cq), 0);
	assert_int_equal(ibv_dealloc_pd(extended.pd), 0);
}

/* Programs may call what they did not ask for: never through NULL. */
TEST(fill__leaves_no_call_out)
{
	struct extended extended = start(*state, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	void (*const *first)(void) =
		(void (*const *)(void))(const void *)&extended.ex->wr_atomic_cmp_swp;
	const size_t count =
		(sizeof(struct ibv_qp_ex) - offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp)) /
		sizeof(*first);

	for (size_t i = 0; i < count; i++)
		assert_true(first[i] != NULL);
	end(&extended);
}
