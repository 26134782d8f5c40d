/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pairs of wrong programs of verbs. */
#include "zoo_world.h"

#include <string.h>
#include <unistd.h>

struct world world;
uint8_t memory[2][2 * BYTES] __attribute__((aligned(BYTES)));

void zoo_set_up(void)
{
	const struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = REMOTE,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
	};
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(list && list[0], "no device");
	world.context = ibv_open_device(list[0]);
	must(world.context, "ibv_open_device");
	ibv_free_device_list(list);
	world.pd = ibv_alloc_pd(world.context);
	must(world.pd, "ibv_alloc_pd");
	world.from = ibv_reg_mr(world.pd, memory[0], BYTES, ALL);
	world.to = ibv_reg_mr(world.pd, memory[1], BYTES, ALL);
	must(world.from && world.to, "ibv_reg_mr");
	world.cqe = 256;
	world.init = (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	world.attr_a = attr;
	world.attr_b = attr;
	must(ibv_query_gid(world.context, 1, 0, &world.attr_a.ah_attr.grh.dgid) == 0,
	     "ibv_query_gid");
	world.attr_b.ah_attr.grh.dgid = world.attr_a.ah_attr.grh.dgid;
	world.attr_a.sq_psn = (uint32_t)getpid();
	world.attr_b.rq_psn = world.attr_a.sq_psn;
}

void zoo_tear_down(void)
{
	must(!world.a || ibv_destroy_qp(world.a) == 0, "ibv_destroy_qp");
	must(!world.b || ibv_destroy_qp(world.b) == 0, "ibv_destroy_qp");
	must(!world.cq || ibv_destroy_cq(world.cq) == 0, "ibv_destroy_cq");
	must(!world.channel || ibv_destroy_comp_channel(world.channel) == 0,
	     "ibv_destroy_comp_channel");
	must(!world.from || ibv_dereg_mr(world.from) == 0, "ibv_dereg_mr");
	must(!world.to || ibv_dereg_mr(world.to) == 0, "ibv_dereg_mr");
	must(ibv_dealloc_pd(world.pd) == 0, "ibv_dealloc_pd");
	must(ibv_close_device(world.context) == 0, "ibv_close_device");
}

void make(void)
{
	world.cq = ibv_create_cq(world.context, (int)world.cqe, NULL, world.channel, 0);
	must(world.cq, "ibv_create_cq");
	world.init.send_cq = world.cq;
	world.init.recv_cq = world.cq;
	world.a = ibv_create_qp(world.pd, &world.init);
	world.b = ibv_create_qp(world.pd, &world.init);
	must(world.a && world.b, "ibv_create_qp");
	if (world.attr_a.dest_qp_num == 0)
		world.attr_a.dest_qp_num = world.b->qp_num;
	world.attr_b.dest_qp_num = world.a->qp_num;
}

int move(struct ibv_qp *qp, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	return ibv_modify_qp(qp, attr, mask);
}

void connect_one(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	must(move(qp, attr, IBV_QPS_INIT, RC_INIT_MASK) == 0, "INIT");
	must(move(qp, attr, IBV_QPS_RTR, RC_RTR_MASK) == 0, "RTR");
	must(move(qp, attr, IBV_QPS_RTS, RC_RTS_MASK) == 0, "RTS");
}

void connect_both(void)
{
	make();
	connect_one(world.a, &world.attr_a);
	connect_one(world.b, &world.attr_b);
}

struct ibv_send_wr request(enum ibv_wr_opcode opcode)
{
	static struct ibv_sge sge;

	sge = (struct ibv_sge){
		.addr = (uintptr_t)memory[0], .length = BYTES, .lkey = world.from->lkey};
	return (struct ibv_send_wr){
		.wr_id = 7,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)memory[1], .rkey = world.to->rkey},
	};
}

int post(struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(world.a, &wr, &bad);
}

void receive(uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory[1], .length = bytes, .lkey = world.to->lkey};
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1}, *bad;

	must(ibv_post_recv(world.b, &wr, &bad) == 0, "ibv_post_recv");
}

void await(int count)
{
	struct ibv_wc wc;

	while (count > 0) {
		const int n = ibv_poll_cq(world.cq, 1, &wc);

		must(n >= 0, "ibv_poll_cq");
		must(n == 0 || wrong || wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
		count -= n;
	}
}

void run(struct ibv_send_wr wr, int completions)
{
	must(post(wr) == 0, "ibv_post_send");
	await(completions);
}
