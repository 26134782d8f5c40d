/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs. */
#include <string.h>

#include "fake_provider.h"
#include "later.h"
#include "qp/qp.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(modify_qp__goes_through_the_states)
{
	struct fake_pair pair = fake_pair_create(*state);

	assert_int_equal(fake_connect(pair.qp, pair.qp->qp_num, FAKE_GID_V4, IBV_QPS_INIT), 0);
	assert_int_equal(pair.qp->state, IBV_QPS_INIT);
	assert_int_equal(fake.resolves, 0);
	assert_int_equal(ibv_modify_qp(pair.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
				       IBV_QP_STATE),
			 0);
	assert_int_equal(fake_connect(pair.qp, pair.qp->qp_num, FAKE_GID_V6, IBV_QPS_RTS), 0);
	assert_int_equal(pair.qp->state, IBV_QPS_RTS);
	assert_int_equal(fake.resolves, 1);
	fake_pair_destroy(&pair);
}

TEST(modify_qp__tells_the_engine)
{
	struct fake_pair pair = fake_pair_create(*state);
	const unsigned int kicks = fake.kicks;

	assert_int_equal(ibv_modify_qp(pair.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR},
				       IBV_QP_STATE),
			 0);
	assert_int_equal(fake.kicks, kicks + 1);
	fake_pair_destroy(&pair);
}

/* What has come may complete requests that would be flushed. */
TEST(modify_qp__settles_before_it_flushes)
{
	struct fake_pair pair = fake_pair_create(*state);

	assert_int_equal(fake_connect(pair.qp, pair.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(fake.settled, 0);
	assert_int_equal(ibv_modify_qp(pair.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR},
				       IBV_QP_STATE),
			 0);
	assert_int_equal(fake.settled, 1);
	assert_int_equal(ibv_modify_qp(pair.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
				       IBV_QP_STATE),
			 0);
	assert_int_equal(fake.settled, 2);
	fake_pair_destroy(&pair);
}

TEST(modify_qp__changes_nothing_on_failure)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	assert_int_equal(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(pair.qp->state, IBV_QPS_RESET);
	assert_int_equal(qp_state(face_qp(pair.qp)->qp), IBV_QPS_RESET);
	fake_pair_destroy(&pair);
}

TEST(modify_qp__passes_on_that_the_peer_does_not_answer)
{
	struct fake_pair pair = fake_pair_create(*state);

	fake.resolve_result = -ETIMEDOUT;
	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTR), ETIMEDOUT);
	assert_int_equal(pair.qp->state, IBV_QPS_INIT);
	fake_pair_destroy(&pair);
}

/* A mistake is told at once, and the peer is not asked for its address in vain. */
TEST(modify_qp__checks_before_it_resolves)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .ah_attr = fake_ah_attr(FAKE_GID_V4)};

	fake.resolve_result = -ETIMEDOUT;
	assert_int_equal(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE | IBV_QP_AV), EINVAL);
	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_INIT), 0);
	assert_int_equal(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE | IBV_QP_AV), EINVAL);
	assert_int_equal(fake.resolves, 0);
	assert_int_equal(pair.qp->state, IBV_QPS_INIT);
	fake_pair_destroy(&pair);
}

TEST(query_qp__gives_what_was_set)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(fake_connect(pair.qp, 77, FAKE_GID_V4, IBV_QPS_RTR), 0);
	assert_int_equal(ibv_query_qp(pair.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(attr.dest_qp_num, 77);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_ptr_equal(init.send_cq, pair.cq);
	assert_ptr_equal(init.recv_cq, pair.cq);
	assert_null(init.srq);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_true(init.cap.max_send_wr >= 16);
	fake_pair_destroy(&pair);
}

/* The engine moves a queue pair to ERR by itself; a query shows it. */
TEST(query_qp__refreshes_the_public_state)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	assert_int_equal(qp_modify(face_qp(pair.qp)->qp, &attr, IBV_QP_STATE, NULL), 0);
	assert_int_equal(pair.qp->state, IBV_QPS_RESET);
	assert_int_equal(ibv_query_qp(pair.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(pair.qp->state, IBV_QPS_ERR);
	fake_pair_destroy(&pair);
}

TEST(destroy_qp__makes_the_number_find_nothing)
{
	struct fake_pair pair = fake_pair_create(*state);
	const uint32_t qpn = pair.qp->qp_num;

	fake_pair_destroy(&pair);
	assert_null(device_find_qp(fake.device, qpn));
	for (int i = 0; i < FAKE_QPS_MAX; i++)
		assert_null(fake.attached[i]);
}

/* Two queue pairs of one domain that complete in one queue, and receive from `srq` if there is one.
 */
struct couple {
	struct ibv_cq *cq;
	struct ibv_qp *a;
	struct ibv_qp *b;
};

static struct couple couple_create(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {.max_send_wr = 8, .max_recv_wr = srq ? 0 : 8},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct couple couple = {
		.cq = cq, .a = ibv_create_qp(pd, &init), .b = ibv_create_qp(pd, &init)};

	fake.carries = true;
	assert_int_equal(fake_connect(couple.a, couple.b->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(fake_connect(couple.b, couple.a->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	return couple;
}

/* A sends to B `count` times; nobody polls. */
static void couple_send(const struct couple *couple, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct ibv_recv_wr recv = {.wr_id = 100 + i}, *bad_recv;
		struct ibv_send_wr send = {.wr_id = i, .opcode = IBV_WR_SEND}, *bad_send;

		if (couple->b->srq)
			assert_int_equal(ibv_post_srq_recv(couple->b->srq, &recv, &bad_recv), 0);
		else
			assert_int_equal(ibv_post_recv(couple->b, &recv, &bad_recv), 0);
		assert_int_equal(ibv_post_send(couple->a, &send, &bad_send), 0);
	}
}

static void expect_polled(struct ibv_cq *cq, uint32_t qpn, uint64_t first, uint64_t count)
{
	struct ibv_wc wc;

	for (uint64_t i = 0; i < count; i++) {
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.qp_num, qpn);
		assert_int_equal(wc.wr_id, first + i);
	}
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

/* Programs free what the wr_id of the queue pair's work points to. */
TEST(destroy_qp__its_completions_are_gone)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct couple couple = couple_create(pair.pd, pair.cq, NULL);

	couple_send(&couple, 3);
	assert_int_equal(ibv_destroy_qp(couple.a), 0);
	expect_polled(pair.cq, couple.b->qp_num, 100, 3);
	assert_int_equal(ibv_destroy_qp(couple.b), 0);

	couple = couple_create(pair.pd, pair.cq, NULL);
	couple_send(&couple, 3);
	assert_int_equal(ibv_destroy_qp(couple.b), 0);
	expect_polled(pair.cq, couple.a->qp_num, 0, 3);
	assert_int_equal(ibv_destroy_qp(couple.a), 0);
	fake_pair_destroy(&pair);
}

TEST(destroy_qp__what_it_flushed_is_gone)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct couple couple = couple_create(pair.pd, pair.cq, NULL);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad;

	assert_int_equal(ibv_post_recv(couple.b, &recv, &bad), 0);
	assert_int_equal(ibv_modify_qp(couple.b, &error, IBV_QP_STATE), 0);
	assert_int_equal(ibv_destroy_qp(couple.b), 0);
	expect_polled(pair.cq, 0, 0, 0);
	assert_int_equal(ibv_destroy_qp(couple.a), 0);
	fake_pair_destroy(&pair);
}

TEST(reset_qp__its_completions_are_gone)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct couple couple = couple_create(pair.pd, pair.cq, NULL);
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	couple_send(&couple, 3);
	assert_int_equal(ibv_modify_qp(couple.a, &reset, IBV_QP_STATE), 0);
	expect_polled(pair.cq, couple.b->qp_num, 100, 3);
	assert_int_equal(ibv_destroy_qp(couple.a), 0);
	assert_int_equal(ibv_destroy_qp(couple.b), 0);
	fake_pair_destroy(&pair);
}

/* Each request that the queue pair took from the shared queue has given its slot back. */
TEST(destroy_qp__leaves_a_shared_queue_its_room)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pair.pd, &init);
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad;

	for (int round = 0; round < 3; round++) {
		struct couple couple = couple_create(pair.pd, pair.cq, srq);

		couple_send(&couple, init.attr.max_wr);
		assert_int_equal(ibv_destroy_qp(couple.b), 0);
		expect_polled(pair.cq, couple.a->qp_num, 0, init.attr.max_wr);
		assert_int_equal(ibv_destroy_qp(couple.a), 0);
	}
	for (uint32_t i = 0; i < init.attr.max_wr; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fake_pair_destroy(&pair);
}

/* The completion that the iterator stands at was taken; those behind it were not. */
TEST(destroy_qp__amid_an_iteration)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(*state, &attr);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ex);
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct couple couple = couple_create(pd, cq, NULL);
	struct ibv_poll_cq_attr nothing = {.comp_mask = 0};
	const uint32_t a = couple.a->qp_num, b = couple.b->qp_num;

	/* Receive and send complete in turns. */
	couple_send(&couple, 3);
	assert_int_equal(ibv_start_poll(ex, &nothing), 0);
	assert_int_equal(ibv_wc_read_qp_num(ex), b);
	assert_int_equal(ibv_destroy_qp(couple.b), 0);
	assert_int_equal(ibv_wc_read_qp_num(ex), b);
	assert_int_equal(ex->wr_id, 100);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(ibv_next_poll(ex), 0);
		assert_int_equal(ibv_wc_read_qp_num(ex), a);
		assert_int_equal(ex->wr_id, i);
		if (i == 1)
			break;
	}
	assert_int_equal(ibv_destroy_qp(couple.a), 0);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	assert_int_equal(ibv_start_poll(ex, &nothing), ENOENT);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(rate_limit__is_set_in_rts)
{
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000000};
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int kicks;

	assert_int_equal(ibv_modify_qp_rate_limit(pair.qp, &limit), EINVAL);
	assert_int_equal(fake_connect(pair.qp, 77, FAKE_GID_V4, IBV_QPS_RTS), 0);
	kicks = fake.kicks;
	assert_int_equal(ibv_modify_qp_rate_limit(pair.qp, &limit), 0);
	/* A packet that the old rate held back may leave sooner now. */
	assert_int_equal(fake.kicks, kicks + 1);
	assert_int_equal(ibv_query_qp(pair.qp, &attr, IBV_QP_RATE_LIMIT, &init), 0);
	assert_int_equal(attr.rate_limit, 1000000);
	fake_pair_destroy(&pair);
}

TEST(extras__that_no_queue_pair_has)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_ece ece = {.vendor_id = 1, .options = 2};

	assert_int_equal(ibv_set_ece(pair.qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(pair.qp, &ece), EOPNOTSUPP);
	assert_int_equal(ece.options, 0);
	fake_pair_destroy(&pair);
}

/* The bytes of a packet are copied in any order but the last ones. */
TEST(data_in_order__is_not_promised)
{
	const uint32_t return_caps = 1 << 0, device_only = 1 << 1;
	struct fake_pair pair = fake_pair_create(*state);

	for (uint32_t flags = 0; flags <= (return_caps | device_only); flags++) {
		assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_SEND, flags), 0);
		assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_RDMA_WRITE, flags), 0);
		assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_RDMA_READ, flags), 0);
	}
	fake_pair_destroy(&pair);
}

#define GRH   40
#define BYTES 4096
#define QPS   3

static uint8_t inbox[QPS][BYTES];
static uint8_t outbox[BYTES];

static const union ibv_gid group_v4 = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
static const union ibv_gid group_v6 = {.raw = {0xff, 0x0e, [15] = 7}};

struct members {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *in;
	struct ibv_mr *out;
	struct ibv_qp *qp[QPS]; /* the first does not want its own datagrams */
};

static struct ibv_qp *create_qp(struct ibv_context *context, struct members *members,
				uint32_t flags)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = members->cq,
		.recv_cq = members->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = members->pd,
		.create_flags = flags,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	assert_non_null(qp);
	assert_int_equal(fake_connect(qp, 0, 0, IBV_QPS_RTS), 0);
	return qp;
}

static struct members start(struct ibv_context *context)
{
	struct members members = {
		.pd = ibv_alloc_pd(context),
		.cq = ibv_create_cq(context, 16, NULL, NULL, 0),
	};

	fake.carries = true;
	members.in = ibv_reg_mr(members.pd, inbox, sizeof(inbox), IBV_ACCESS_LOCAL_WRITE);
	members.out = ibv_reg_mr(members.pd, outbox, BYTES, 0);
	for (int i = 0; i < QPS; i++)
		members.qp[i] = create_qp(context, &members,
					  i == 0 ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0);
	memset(outbox, 0x5a, BYTES);
	return members;
}

static void end(struct members *members)
{
	for (int i = 0; i < QPS; i++)
		assert_int_equal(ibv_destroy_qp(members->qp[i]), 0);
	assert_int_equal(ibv_dereg_mr(members->in), 0);
	assert_int_equal(ibv_dereg_mr(members->out), 0);
	assert_int_equal(ibv_destroy_cq(members->cq), 0);
	assert_int_equal(ibv_dealloc_pd(members->pd), 0);
}

static void receive(struct members *members)
{
	memset(inbox, 0, sizeof(inbox));
	for (int i = 0; i < QPS; i++) {
		struct ibv_sge sge = {(uintptr_t)inbox[i], BYTES, members->in->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		assert_int_equal(ibv_post_recv(members->qp[i], &wr, &bad), 0);
	}
}

static void send(struct members *members, int from, const union ibv_gid *group, uint32_t qpn)
{
	const uint8_t gid_index = group == &group_v4 ? FAKE_GID_V4 : FAKE_GID_V6;
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = gid_index, .dgid = *group}};
	struct ibv_ah *ah = ibv_create_ah(members->pd, &attr);
	struct ibv_sge sge = {(uintptr_t)outbox, 100, members->out->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = FAKE_QKEY}};
	struct ibv_send_wr *bad;

	assert_non_null(ah);
	assert_int_equal(ibv_post_send(members->qp[from], &wr, &bad), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* Return a mask of the queue pairs that have completed a receive request since the last call. */
static unsigned int received(struct members *members)
{
	unsigned int bits = 0;
	struct ibv_wc wc;

	while (ibv_poll_cq(members->cq, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, GRH + 100);
		for (int i = 0; i < QPS; i++) {
			if (wc.qp_num != members->qp[i]->qp_num)
				continue;
			assert_int_equal(bits & 1u << i, 0);
			bits |= 1u << i;
			assert_memory_equal(inbox[i] + GRH, outbox, 100);
		}
	}
	return bits;
}

static void send__reaches_all_that_are_attached(struct ibv_context *context,
						const union ibv_gid *group)
{
	struct members members = start(context);

	receive(&members);
	send(&members, 1, group, 0xffffff);
	assert_int_equal(received(&members), 0);
	for (int i = 0; i < QPS; i++) {
		assert_int_equal(ibv_attach_mcast(members.qp[i], group, 0), 0);
		assert_int_equal(ibv_attach_mcast(members.qp[i], group, 0), 0);
	}
	assert_int_equal(fake.joined, 1);
	send(&members, 1, group, 0xffffff);
	assert_int_equal(received(&members), 7);
	receive(&members);
	send(&members, 0, group, 0xffffff);
	assert_int_equal(received(&members), 6);
	assert_int_equal(ibv_destroy_qp(members.qp[0]), EBUSY);
	/* Only the multicast QPN reaches the members. */
	send(&members, 0, group, members.qp[0]->qp_num);
	assert_int_equal(received(&members), 0);
	for (int i = 0; i < QPS; i++)
		assert_int_equal(ibv_detach_mcast(members.qp[i], group, 0), 0);
	assert_int_equal(ibv_detach_mcast(members.qp[0], group, 0), EINVAL);
	assert_int_equal(fake.joined, 0);
	receive(&members);
	send(&members, 1, group, 0xffffff);
	assert_int_equal(received(&members), 0);
	end(&members);
}

TEST(send__reaches_members_ipv4)
{
	send__reaches_all_that_are_attached(*state, &group_v4);
}

TEST(send__reaches_members_ipv6)
{
	send__reaches_all_that_are_attached(*state, &group_v6);
}

TEST(attach__refuses_what_is_wrong)
{
	struct members members = start(*state);
	struct fake_pair pair = fake_pair_create(*state);

	assert_int_equal(ibv_attach_mcast(pair.qp, &group_v4, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(members.qp[0], &fake.device->gids[FAKE_GID_V4].gid, 0),
			 EINVAL);
	fake.join_result = -ENODEV;
	assert_int_equal(ibv_attach_mcast(members.qp[0], &group_v4, 0), ENODEV);
	fake_pair_destroy(&pair);
	end(&members);
}
