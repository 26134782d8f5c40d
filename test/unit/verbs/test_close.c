/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/verbs/close.c: devices that are closed before what was made with them. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "mem/key_table.h"
#include "qp/qp.h"

#include "talk.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

/* An open device with one object of each kind. */
struct all {
	struct ibv_context *context;
	struct ibv_td *td;
	struct ibv_pd *pd;
	struct ibv_pd *parent;
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *xrc_srq;
	struct ibv_qp *xrc_qp;
	struct ibv_qp *qp; /* extended, in a multicast group */
	struct ibv_ah *ah;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct ibv_mr *dm_mr;
	struct ibv_mw *mw;
	char memory[64];
};

static const union ibv_gid group = {
	.raw = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 1, 2, 3}};

static void make_queues(struct all *all)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = 16, .channel = all->channel};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_qp_init_attr_ex qp = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = all->parent,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	all->cq = ibv_create_cq_ex(all->context, &cq);
	assert_non_null(all->cq);
	all->srq = ibv_create_srq(all->pd, &srq);
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(all->cq);
	all->qp = ibv_create_qp_ex(all->context, &qp);
	assert_true(all->srq && all->qp);
	assert_int_equal(fake_connect(all->qp, 0, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(ibv_attach_mcast(all->qp, &group, 0), 0);
}

static void make_xrc(struct all *all)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = 16, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = all->pd,
		.cq = ibv_cq_ex_to_cq(all->cq),
	};
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};

	all->xrcd = ibv_open_xrcd(all->context, &xrcd);
	assert_non_null(all->xrcd);
	srq.xrcd = qp.xrcd = all->xrcd;
	all->xrc_srq = ibv_create_srq_ex(all->context, &srq);
	all->xrc_qp = ibv_create_qp_ex(all->context, &qp);
	assert_true(all->xrc_srq && all->xrc_qp);
}

static void make_memory(struct all *all)
{
	struct ibv_alloc_dm_attr dm = {.length = 64};

	all->dm = ibv_alloc_dm(all->context, &dm);
	assert_non_null(all->dm);
	all->mr = ibv_reg_mr(all->parent, all->memory, sizeof(all->memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	all->dm_mr = ibv_reg_dm_mr(all->pd, all->dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	all->mw = ibv_alloc_mw(all->parent, IBV_MW_TYPE_1);
	assert_true(all->mr && all->dm_mr && all->mw);
}

static void make_all(struct all *all)
{
	struct ibv_td_init_attr td = {.comp_mask = 0};
	struct ibv_parent_domain_init_attr parent = {.comp_mask = 0};
	struct ibv_ah_attr ah = fake_ah_attr(FAKE_GID_V4);

	all->context = fake_open();
	all->td = ibv_alloc_td(all->context, &td);
	all->pd = ibv_alloc_pd(all->context);
	parent.td = all->td;
	parent.pd = all->pd;
	all->parent = ibv_alloc_parent_domain(all->context, &parent);
	all->channel = ibv_create_comp_channel(all->context);
	assert_true(all->td && all->pd && all->parent && all->channel);
	make_queues(all);
	make_xrc(all);
	make_memory(all);
	all->ah = ibv_create_ah(all->parent, &ah);
	assert_non_null(all->ah);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

TEST(close_device__gives_everything_back)
{
	struct device *device = fake.device;
	uint32_t quota[DEVICE_QUOTA_KINDS];
	const uint32_t qps = device->qps;
	struct all all;

	memcpy(quota, device->quota, sizeof(quota));
	make_all(&all);
	assert_int_equal(fake.joined, 1);
	assert_int_equal(ibv_close_device(all.context), 0);
	assert_memory_equal(device->quota, quota, sizeof(quota));
	assert_int_equal(device->qps, qps);
	assert_int_equal(device->dm_pool.used_bytes, 0);
	assert_int_equal(fake.joined, 0);
	assert_true(LIST_EMPTY(&device->xrcds));
	assert_null(device_find_qp(device, all.qp->qp_num));
	assert_null(device_find_qp(device, all.xrc_qp->qp_num));
	assert_null(key_table_find(device->keys, all.mr->rkey));
	assert_null(key_table_find(device->keys, all.dm_mr->rkey));
	assert_null(key_table_find(device->keys, all.mw->rkey));
	assert_false(is_open(all.context->async_fd));
	assert_false(is_open(all.context->cmd_fd));
	assert_false(is_open(all.channel->fd));
}

static void use_data_path(struct all *all)
{
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_send_wr send = {0}, *bad_send = NULL;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;
	struct ibv_mw_bind bind = {.bind_info = {.mr = all->mr}};
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(all->qp);
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(all->cq), 1, &wc), -ENODEV);
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(all->cq), 0), ENODEV);
	assert_int_equal(ibv_start_poll(all->cq, &poll), ENODEV);
	assert_int_equal(ibv_post_send(all->qp, &send, &bad_send), ENODEV);
	assert_int_equal(ibv_post_recv(all->qp, &recv, &bad_recv), ENODEV);
	assert_int_equal(ibv_post_srq_recv(all->srq, &recv, &bad_recv), ENODEV);
	assert_int_equal(ibv_bind_mw(all->qp, all->mw, &bind), ENODEV);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), ENODEV);
	assert_int_equal(ibv_memcpy_to_dm(all->dm, 0, all->memory, 8), ENODEV);
	assert_int_equal(ibv_memcpy_from_dm(all->memory, all->dm, 0, 8), ENODEV);
}

static void use_control_path(struct all *all)
{
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *user;

	assert_int_equal(ibv_modify_qp(all->qp, &attr, IBV_QP_STATE), ENODEV);
	assert_int_equal(ibv_query_qp(all->qp, &attr, IBV_QP_STATE, &init), ENODEV);
	assert_int_equal(ibv_detach_mcast(all->qp, &group, 0), ENODEV);
	assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(all->cq), 4), ENODEV);
	assert_int_equal(ibv_get_async_event(all->context, &event), -1);
	assert_int_equal(ibv_get_cq_event(all->channel, &cq, &user), -1);
	assert_null(ibv_alloc_pd(all->context));
	assert_null(ibv_alloc_dm(all->context, &dm));
	assert_null(ibv_reg_mr(all->pd, all->memory, 8, 0));
}

static void destroy_all(struct all *all)
{
	assert_int_equal(ibv_destroy_qp(all->qp), ENODEV);
	assert_int_equal(ibv_destroy_qp(all->xrc_qp), ENODEV);
	assert_int_equal(ibv_destroy_srq(all->srq), ENODEV);
	assert_int_equal(ibv_destroy_srq(all->xrc_srq), ENODEV);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(all->cq)), ENODEV);
	assert_int_equal(ibv_destroy_comp_channel(all->channel), ENODEV);
	assert_int_equal(ibv_destroy_ah(all->ah), ENODEV);
	assert_int_equal(ibv_close_xrcd(all->xrcd), ENODEV);
	assert_int_equal(ibv_dealloc_mw(all->mw), ENODEV);
	assert_int_equal(ibv_dereg_mr(all->mr), ENODEV);
	assert_int_equal(ibv_dereg_mr(all->dm_mr), ENODEV);
	assert_int_equal(ibv_free_dm(all->dm), ENODEV);
	assert_int_equal(ibv_dealloc_pd(all->parent), ENODEV);
	assert_int_equal(ibv_dealloc_pd(all->pd), ENODEV);
	assert_int_equal(ibv_dealloc_td(all->td), ENODEV);
	assert_int_equal(ibv_close_device(all->context), -1);
}

/* A program that goes on with what it had gets errors, and touches no memory that is freed. */
TEST(close_device__calls_on_what_it_had_fail)
{
	struct all all;

	make_all(&all);
	assert_int_equal(ibv_close_device(all.context), 0);
	use_data_path(&all);
	use_control_path(&all);
	destroy_all(&all);
}

/* The program frees the memory after closing, and it becomes somebody else's. */
TEST(close_device__no_peer_writes_any_more)
{
	struct ibv_context *closed = fake_open();
	struct talk near = talk_start(*state, FAKE_GID_V4), far = talk_start(closed, FAKE_GID_V4);
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_sge sge = talk_source(&near, 0, 100);
	struct ibv_mr *const own_mr = near.target_mr;
	uint8_t *const own = near.target;

	assert_int_equal(ibv_modify_qp(near.a.qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(fake_connect(near.a.qp, far.b.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(ibv_close_device(closed), 0);
	near.target = far.target;
	near.target_mr = far.target_mr;
	talk_post(&near, IBV_WR_RDMA_WRITE, &sge, 1);
	for (int i = 0; i < 10; i++) {
		struct ibv_wc wc;

		assert_int_equal(ibv_poll_cq(near.a.cq, 1, &wc), 0);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(far.target[i], 0);
	near.target = own;
	near.target_mr = own_mr;
	talk_end(&near);
}

/* A kernel's context lives as long as one descriptor of it does. */
TEST(close_device__waits_for_the_last_import)
{
	struct ibv_context *context = fake_open(), *imported;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct fake_pair pair = fake_pair_create(context);
	struct ibv_pd *pd;

	imported = ibv_import_device(dup(context->cmd_fd));
	assert_non_null(imported);
	assert_int_equal(ibv_close_device(context), 0);
	assert_true(is_open(channel->fd));
	assert_non_null(device_find_qp(fake.device, pair.qp->qp_num));
	pd = ibv_import_pd(imported, pair.pd->handle);
	assert_non_null(pd);
	assert_int_equal(ibv_close_device(imported), 0);
	assert_false(is_open(channel->fd));
	assert_null(device_find_qp(fake.device, pair.qp->qp_num));
	assert_int_equal(ibv_destroy_qp(pair.qp), ENODEV);
	assert_int_equal(ibv_dealloc_pd(pd), ENODEV);
}

/* The first context has nothing of its own. */
TEST(close_device__ends_the_first_of_its_imports)
{
	struct ibv_context *context = fake_open(), *imported;
	const int async_fd = context->async_fd;

	imported = ibv_import_device(dup(context->cmd_fd));
	assert_non_null(imported);
	assert_non_null(ibv_alloc_pd(imported));
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(ibv_close_device(imported), 0);
	assert_false(is_open(async_fd));
}
