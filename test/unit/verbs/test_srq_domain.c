/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protection domain of a shared receive queue: receive buffers are of that one, and what peers
 * name by a key is of the queue pair's (IBTA 10.2.3, 10.2.9.4).
 */
#include <string.h>

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define BYTES 1024
#define GRH   40

static uint8_t inbox[GRH + BYTES];
static uint8_t outbox[BYTES];

/* A queue pair that sends to one that receives from a shared queue of another domain. */
struct scene {
	struct ibv_pd *pd;     /* of the queue pairs */
	struct ibv_pd *srq_pd; /* of the shared queue */
	struct ibv_mr *out;    /* the outbox, of pd */
	struct ibv_mr *in;     /* the inbox, of pd */
	struct ibv_mr *srq_in; /* the inbox, of srq_pd */
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *from;
	struct ibv_qp *to;
	struct ibv_ah *ah;
};

static struct scene start(struct ibv_context *context, enum ibv_qp_type type)
{
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ah_attr ah_attr = fake_ah_attr(FAKE_GID_V4);
	struct scene scene = {
		.pd = ibv_alloc_pd(context),
		.srq_pd = ibv_alloc_pd(context),
		.send_cq = ibv_create_cq(context, 16, NULL, NULL, 0),
		.recv_cq = ibv_create_cq(context, 16, NULL, NULL, 0),
	};
	struct ibv_qp_init_attr init = {
		.send_cq = scene.send_cq,
		.recv_cq = scene.recv_cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.qp_type = type,
		.sq_sig_all = 1,
	};

	fake.carries = true;
	memset(inbox, 0, sizeof(inbox));
	memset(outbox, 0x5a, sizeof(outbox));
	scene.out = ibv_reg_mr(scene.pd, outbox, sizeof(outbox), access);
	scene.in = ibv_reg_mr(scene.pd, inbox, sizeof(inbox), access);
	scene.srq_in = ibv_reg_mr(scene.srq_pd, inbox, sizeof(inbox), access);
	scene.srq = ibv_create_srq(scene.srq_pd, &srq_init);
	scene.ah = ibv_create_ah(scene.pd, &ah_attr);
	scene.from = ibv_create_qp(scene.pd, &init);
	init.srq = scene.srq;
	scene.to = ibv_create_qp(scene.pd, &init);
	assert_int_equal(fake_connect(scene.from, scene.to->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(fake_connect(scene.to, scene.from->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	return scene;
}

static void end(struct scene *scene)
{
	assert_int_equal(ibv_destroy_qp(scene->from), 0);
	assert_int_equal(ibv_destroy_qp(scene->to), 0);
	assert_int_equal(ibv_destroy_ah(scene->ah), 0);
	assert_int_equal(ibv_destroy_srq(scene->srq), 0);
	assert_int_equal(ibv_dereg_mr(scene->out), 0);
	assert_int_equal(ibv_dereg_mr(scene->in), 0);
	assert_int_equal(ibv_dereg_mr(scene->srq_in), 0);
	assert_int_equal(ibv_destroy_cq(scene->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(scene->recv_cq), 0);
	assert_int_equal(ibv_dealloc_pd(scene->pd), 0);
	assert_int_equal(ibv_dealloc_pd(scene->srq_pd), 0);
}

static void send(struct scene *scene, const struct ibv_mr *into)
{
	struct ibv_sge to = {(uintptr_t)inbox, sizeof(inbox), into->lkey};
	struct ibv_sge from = {(uintptr_t)outbox, sizeof(outbox), scene->out->lkey};
	struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	if (scene->from->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = scene->ah;
		wr.wr.ud.remote_qpn = scene->to->qp_num;
		wr.wr.ud.remote_qkey = FAKE_QKEY;
	}
	assert_int_equal(ibv_post_srq_recv(scene->srq, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(scene->from, &wr, &bad), 0);
}

static void write_by(struct scene *scene, const struct ibv_mr *mr)
{
	struct ibv_sge from = {(uintptr_t)outbox, sizeof(outbox), scene->out->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)inbox, .rkey = mr->rkey},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(scene->from, &wr, &bad), 0);
}

static void expect(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_string_equal(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

static bool inbox_is_untouched(void)
{
	for (size_t i = 0; i < sizeof(inbox); i++) {
		if (inbox[i] != 0)
			return false;
	}
	return true;
}

/* A buffer of the queue's domain is filled; one of the queue pair's is not. */
static void receive_as(struct ibv_context *context, enum ibv_qp_type type,
		       enum ibv_wc_status refused)
{
	const size_t offset = type == IBV_QPT_UD ? GRH : 0;
	struct scene scene = start(context, type);

	send(&scene, scene.srq_in);
	expect(scene.send_cq, IBV_WC_SUCCESS);
	expect(scene.recv_cq, IBV_WC_SUCCESS);
	assert_memory_equal(inbox + offset, outbox, sizeof(outbox));
	memset(inbox, 0, sizeof(inbox));
	send(&scene, scene.in);
	expect(scene.send_cq, refused);
	expect(scene.recv_cq, IBV_WC_LOC_PROT_ERR);
	assert_true(inbox_is_untouched());
	end(&scene);
}

TEST(receive__by_rc)
{
	receive_as(*state, IBV_QPT_RC, IBV_WC_REM_OP_ERR);
}

TEST(receive__by_uc)
{
	receive_as(*state, IBV_QPT_UC, IBV_WC_SUCCESS);
}

TEST(receive__by_ud)
{
	receive_as(*state, IBV_QPT_UD, IBV_WC_SUCCESS);
}

TEST(write__by_a_key_of_the_queue_pairs_domain)
{
	struct scene scene = start(*state, IBV_QPT_RC);

	write_by(&scene, scene.in);
	expect(scene.send_cq, IBV_WC_SUCCESS);
	assert_memory_equal(inbox, outbox, sizeof(outbox));
	memset(inbox, 0, sizeof(inbox));
	write_by(&scene, scene.srq_in);
	expect(scene.send_cq, IBV_WC_REM_ACCESS_ERR);
	assert_true(inbox_is_untouched());
	end(&scene);
}
