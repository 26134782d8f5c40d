/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rdma_qp.c. */
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(rdma_create_qp__makes_what_the_program_has_not_brought)
{
	struct ibv_qp_init_attr attr = rig_qp_attr();
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_int_equal(id->qp->state, IBV_QPS_INIT);
	assert_non_null(id->pd);
	assert_ptr_equal(id->qp->send_cq, id->send_cq);
	assert_ptr_equal(id->qp->recv_cq, id->recv_cq);
	assert_ptr_equal(id->recv_cq->channel, id->recv_cq_channel);
	assert_ptr_equal(attr.send_cq, id->send_cq);
	rig_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	rdma_destroy_qp(id);
	assert_null(id->qp);
	assert_null(id->send_cq);
	assert_null(id->recv_cq_channel);
	rdma_destroy_id(id);
}

TEST(rdma_create_qp__takes_what_the_program_brings)
{
	struct ibv_qp_init_attr attr = rig_qp_attr();
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);

	attr.send_cq = cq;
	attr.recv_cq = cq;
	assert_int_equal(rdma_create_qp(id, pd, &attr), 0);
	assert_ptr_equal(id->qp->pd, pd);
	assert_ptr_equal(id->pd, pd);
	assert_null(id->send_cq);
	rdma_destroy_qp(id);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	rdma_destroy_id(id);
}

TEST(rdma_create_qp__wrong_calls_leave_nothing)
{
	struct ibv_qp_init_attr attr = rig_qp_attr();
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP), *other = rig_create(RDMA_PS_TCP);
	struct ibv_pd *pd;

	rig_fails(rdma_create_qp(NULL, NULL, &attr), EINVAL);
	rig_fails(rdma_create_qp(id, NULL, NULL), EINVAL);
	rig_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	assert_int_equal(rdma_bind_addr(id, rig_ipv4(0, 0)), 0);
	assert_int_equal(rdma_bind_addr(other, rig_ipv4(1, 0)), 0);
	pd = ibv_alloc_pd(other->verbs);
	rig_fails(rdma_create_qp(id, pd, &attr), EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	attr.cap.max_send_sge = 1000;
	rig_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	assert_null(id->qp);
	assert_null(id->send_cq);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
	rdma_destroy_qp(NULL);
}

/* A connection has no datagrams, and the other way round. */
TEST(rdma_create_qp__type_fits_the_port_space)
{
	struct ibv_qp_init_attr attr = rig_qp_attr();
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	attr.qp_type = IBV_QPT_UD;
	rig_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	rdma_destroy_id(id);
	id = rig_resolve(RDMA_PS_UDP);
	attr.qp_type = IBV_QPT_RC;
	rig_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	attr.qp_type = IBV_QPT_UD;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_int_equal(id->qp->state, IBV_QPS_RTS);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

TEST(rdma_create_qp_ex__unreliable_connection)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_UC,
					   .cap = {.max_send_wr = 2, .max_send_sge = 1}};
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
	assert_int_equal(id->qp->qp_type, IBV_QPT_UC);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static int init(struct rdma_cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	int mask = 0;

	*attr = (struct ibv_qp_attr){.qp_state = state};
	return rdma_init_qp_attr(id, attr, &mask) == 0 ? mask : -1;
}

/* A peer's queue pair is known when it has answered, and not before. */
TEST(rdma_init_qp_attr__needs_an_answer)
{
	struct rdma_conn_param param = {.qp_num = 5, .responder_resources = 2, .retry_count = 3};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};
	struct ibv_qp_attr attr;

	assert_int_equal(init(pair.active, IBV_QPS_INIT, &attr),
			 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	rig_fails(init(pair.active, IBV_QPS_RTR, &attr), EINVAL);
	assert_int_equal(rdma_connect(pair.active, &param), 0);
	rig_fails(init(pair.active, IBV_QPS_RTR, &attr), EINVAL);
	rig_fails(init(pair.active, IBV_QPS_RTS, &attr), EINVAL);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_true(init(pair.passive, IBV_QPS_RTR, &attr) > 0);
	assert_int_equal(attr.dest_qp_num, 5);
	param.qp_num = 6;
	assert_int_equal(rdma_accept(pair.passive, &param), 0);
	rig_expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_true(init(pair.active, IBV_QPS_RTR, &attr) > 0);
	assert_int_equal(attr.dest_qp_num, 6);
	assert_true(attr.ah_attr.is_global);
	assert_true(init(pair.active, IBV_QPS_RTS, &attr) > 0);
	assert_int_equal(attr.retry_cnt, 3);
	rig_fails(init(pair.active, IBV_QPS_SQD, &attr), EINVAL);
	assert_int_equal(rdma_establish(pair.active), 0);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED);
	assert_true(init(pair.passive, IBV_QPS_RTS, &attr) > 0);
	assert_int_equal(rdma_disconnect(pair.active), 0);
	rig_pass(0);
	rig_fails(init(pair.active, IBV_QPS_RTR, &attr), EINVAL);
	rig_end(&pair);
}

TEST(rdma_init_qp_attr__wrong_calls)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask;

	rig_fails(rdma_init_qp_attr(NULL, &attr, &mask), EINVAL);
	rig_fails(rdma_init_qp_attr(id, NULL, &mask), EINVAL);
	rig_fails(rdma_init_qp_attr(id, &attr, NULL), EINVAL);
	rig_fails(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	rdma_destroy_id(id);
}

/* Ask for a connection with these limits of READs, and with the path's hop limit. */
static struct rig_pair ask_with(uint8_t responder_resources, uint8_t initiator_depth,
				uint8_t hop_limit)
{
	struct rdma_conn_param param = {.qp_num = 5,
					.responder_resources = responder_resources,
					.initiator_depth = initiator_depth};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};

	cm_id_of(pair.active)->path.hop_limit = hop_limit;
	assert_int_equal(rdma_connect(pair.active, &param), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	return pair;
}

/* A side that has no resources for the peer's READs does not let the peer read. */
TEST(rdma_init_qp_attr__reads_need_resources)
{
	const int writes = IBV_ACCESS_REMOTE_WRITE;
	const int all = writes | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_attr attr;
	struct rig_pair pair;

	for (uint8_t depth = 0; depth < 2; depth++) {
		pair = ask_with(1 - depth, depth, 64);
		assert_true(init(pair.active, IBV_QPS_INIT, &attr) > 0);
		assert_int_equal(attr.qp_access_flags, depth == 0 ? all : writes);
		assert_true(init(pair.passive, IBV_QPS_INIT, &attr) > 0);
		assert_int_equal(attr.qp_access_flags, depth == 0 ? writes : all);
		rig_end(&pair);
	}
}

/* A REQ without a useful hop limit does not make the passive side's packets end at a router. */
TEST(rdma_init_qp_attr__hop_limit)
{
	static const uint8_t asked[] = {0, 1, 2, 17, 255}, used[] = {64, 64, 2, 17, 255};
	struct ibv_qp_attr attr;
	struct rig_pair pair;

	for (size_t i = 0; i < RTE_DIM(asked); i++) {
		pair = ask_with(0, 0, asked[i]);
		assert_true(init(pair.passive, IBV_QPS_RTR, &attr) > 0);
		assert_int_equal(attr.ah_attr.grh.hop_limit, used[i]);
		rig_end(&pair);
	}
}

/* Each side sets its own queue pair's. */
TEST(rdma_init_qp_attr__ack_timeout_is_the_programs)
{
	struct rdma_conn_param param = {.qp_num = 5};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};
	struct ibv_qp_attr attr;
	uint8_t timeout = 9;

	assert_int_equal(rdma_connect(pair.active, &param), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_true(init(pair.passive, IBV_QPS_RTS, &attr) > 0);
	assert_int_not_equal(attr.timeout, 9);
	assert_int_equal(rdma_set_option(pair.passive, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
					 &timeout, sizeof(timeout)),
			 0);
	assert_true(init(pair.passive, IBV_QPS_RTS, &attr) > 0);
	assert_int_equal(attr.timeout, 9);
	rig_end(&pair);
}

TEST(qp_to_rtr__agreed_values_are_in_the_queue_pair)
{
	struct ibv_qp_init_attr init_attr;
	struct rig_pair pair = rig_connect();
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(pair.active->qp, &attr, IBV_QP_STATE, &init_attr), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, pair.passive->qp->qp_num);
	assert_int_equal(attr.max_dest_rd_atomic, 3);
	assert_int_equal(attr.max_rd_atomic, 2);
	assert_int_equal(attr.retry_cnt, 5);
	assert_int_equal(ibv_query_qp(pair.passive->qp, &attr, IBV_QP_STATE, &init_attr), 0);
	assert_int_equal(attr.max_dest_rd_atomic, 2);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(attr.rnr_retry, 6);
	rig_end(&pair);
}

/* The inline functions of rdma_verbs.h over it. */
TEST(rdma_post_send__reaches_the_peer)
{
	struct rig_pair pair = rig_connect();
	char from[] = "over the wire", to[sizeof(from)] = "";
	struct ibv_mr *send = rdma_reg_msgs(pair.active, from, sizeof(from));
	struct ibv_mr *recv = rdma_reg_msgs(pair.passive, to, sizeof(to));
	struct ibv_wc wc;

	assert_non_null(send);
	assert_non_null(recv);
	assert_int_equal(rdma_post_recv(pair.passive, to, to, sizeof(to), recv), 0);
	assert_int_equal(
		rdma_post_send(pair.active, from, from, sizeof(from), send, IBV_SEND_SIGNALED), 0);
	assert_int_equal(rdma_get_recv_comp(pair.passive, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, (uintptr_t)to);
	assert_string_equal(to, from);
	assert_int_equal(rdma_get_send_comp(pair.active, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(rdma_dereg_mr(send), 0);
	assert_int_equal(rdma_dereg_mr(recv), 0);
	rig_end(&pair);
}

static struct ibv_srq_init_attr srq_attr(void)
{
	return (struct ibv_srq_init_attr){.attr = {.max_wr = 4, .max_sge = 1}};
}

/* An id of a type that only rdma_create_ep makes. */
static struct rdma_cm_id *create_xrc(enum ibv_qp_type type)
{
	struct rdma_addrinfo info = {.ai_port_space = RDMA_PS_IB, .ai_qp_type = type};
	struct rdma_cm_id *id;

	info.ai_dst_addr = rig_ipv4(1, RIG_PORT);
	assert_int_equal(rdma_create_ep(&id, &info, NULL, NULL), 0);
	return id;
}

TEST(rdma_create_srq__is_the_queue_pairs)
{
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	assert_int_equal(rdma_create_srq(id, NULL, &attr), 0);
	rig_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	rig_create_qp(id);
	assert_ptr_equal(id->qp->srq, id->srq);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	assert_null(id->srq);
	rdma_destroy_id(id);
}

TEST(rdma_create_srq__wrong_calls)
{
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_create_srq(NULL, NULL, &attr), EINVAL);
	rig_fails(rdma_create_srq(id, NULL, NULL), EINVAL);
	rig_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	rig_fails(rdma_create_srq_ex(NULL, NULL), EINVAL);
	rig_fails(rdma_create_srq_ex(id, NULL), EINVAL);
	rdma_destroy_srq(id);
	rdma_destroy_srq(NULL);
	rdma_destroy_id(id);
}

/* The completion queue is the id's, and is destroyed with the last object that uses it. */
TEST(rdma_create_srq__xrc_outlives_the_queue_pair)
{
	struct ibv_qp_init_attr_ex qp_attr = {.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id = create_xrc(IBV_QPT_XRC_RECV);

	assert_int_equal(rdma_create_srq(id, NULL, &attr), 0);
	assert_non_null(id->recv_cq);
	assert_int_equal(rdma_create_qp_ex(id, &qp_attr), 0);
	rdma_destroy_qp(id);
	assert_non_null(id->recv_cq);
	rdma_destroy_srq(id);
	assert_null(id->recv_cq);
	assert_null(id->recv_cq_channel);
	rdma_destroy_id(id);
}

TEST(rdma_create_srq__refused_xrc_queue_leaves_nothing)
{
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id = create_xrc(IBV_QPT_XRC_RECV);

	attr.attr.max_sge = 1000;
	rig_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	assert_null(id->recv_cq);
	rdma_destroy_id(id);
}
