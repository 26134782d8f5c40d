/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Behaviour of verbs that programs written for adapters rely on: expectations NAME. The queue pairs
 * are of one process, on the library that the program gets. The exit status is 0 if the behaviour
 * is as expected.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"

#define DEPTH  16
#define BYTES  4096
#define QKEY   0x1111
#define PSN    1000
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static union ibv_gid gid;
static char memory[BYTES] __attribute__((aligned(8)));

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	MUST(context && ibv_query_gid(context, 1, 0, &gid) == 0);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0);
	MUST(pd && cq);
	mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_MW_BIND);
	MUST(mr);
}

static struct ibv_ah_attr to_ourselves(void)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}};
}

static struct ibv_qp *create(enum ibv_qp_type type)
{
	struct ibv_qp *qp = raise_create(pd, type, cq, cq, NULL, DEPTH);

	MUST(qp);
	return qp;
}

static void connect_to(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = raise_attr(&gid, dest_qpn, PSN);

	attr.qp_access_flags = REMOTE;
	MUST(raise_qp(qp, &attr) == 0);
}

static struct ibv_qp *create_datagrams(void)
{
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = QKEY, .sq_psn = PSN};
	struct ibv_qp *qp = create(IBV_QPT_UD);

	MUST(raise_qp(qp, &attr) == 0);
	return qp;
}

static void post(struct ibv_qp *qp, struct ibv_send_wr wr)
{
	struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
	struct ibv_send_wr *bad;

	if (wr.opcode != IBV_WR_BIND_MW) {
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	MUST(ibv_post_send(qp, &wr, &bad) == 0);
}

/* Poll for the next completion. */
static struct ibv_wc wait_for(struct ibv_cq *from)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(from, 1, &wc);
	while (n == 0);
	MUST(n == 1);
	return wc;
}

/* After ibv_destroy_qp a program frees the memory that a wr_id points to. */
static void destroyed(void)
{
	struct ibv_cq *first = cq;
	struct ibv_cq *other = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	struct ibv_qp *doomed, *stays, *clock;
	struct ibv_wc wc;

	doomed = create(IBV_QPT_RC);
	stays = create(IBV_QPT_RC);
	connect_to(doomed, doomed->qp_num);
	connect_to(stays, stays->qp_num);
	cq = other;
	clock = create(IBV_QPT_RC);
	connect_to(clock, clock->qp_num);
	cq = first;
	for (int i = 0; i < DEPTH; i++) {
		struct ibv_send_wr wr = {.wr_id = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .wr.rdma = {(uintptr_t)memory + 8, mr->rkey}};

		post(doomed, wr);
		wr.wr_id = 2;
		post(stays, wr);
		post(clock, wr);
	}
	/* When this work request completes, all earlier ones have completed. */
	for (int i = 0; i < DEPTH; i++)
		wait_for(other);
	MUST(ibv_destroy_qp(doomed) == 0);
	for (int i = 0; i < DEPTH; i++)
		MUST(wait_for(cq).wr_id == 2);
	MUST(ibv_poll_cq(cq, 1, &wc) == 0);
}

/* Use one value of access flags for regions and for queue pairs. */
static void relaxed(void)
{
	struct ibv_qp_attr attr = {.port_num = 1,
				   .qp_access_flags = REMOTE | IBV_ACCESS_RELAXED_ORDERING};
	struct ibv_qp *qp = create(IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr told;

	MUST(raise_qp_to(qp, &attr, IBV_QPS_INIT) == 0);
	MUST(ibv_query_qp(qp, &told, IBV_QP_ACCESS_FLAGS, &init) == 0);
	MUST(told.qp_access_flags == attr.qp_access_flags);
}

/* Check the PSN of the next datagram, and the calls that a datagram queue pair refuses. */
static void datagrams(void)
{
	struct ibv_ah_attr ah_attr = to_ourselves();
	struct ibv_ah *ah = ibv_create_ah(pd, &ah_attr);
	struct ibv_qp *qp = create_datagrams();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(ah);
	for (int i = 0; i < 5; i++) {
		post(qp,
		     (struct ibv_send_wr){.opcode = IBV_WR_SEND, .wr.ud = {ah, qp->qp_num, QKEY}});
		MUST(wait_for(cq).status == IBV_WC_SUCCESS);
	}
	MUST(ibv_query_qp(qp, &attr, IBV_QP_SQ_PSN, &init) == 0 && attr.sq_psn == PSN + 5);
	post(qp, (struct ibv_send_wr){.opcode = IBV_WR_RDMA_READ,
				      .wr.rdma = {(uintptr_t)memory, mr->rkey}});
	MUST(wait_for(cq).status == IBV_WC_LOC_QP_OP_ERR);
}

/* A work request may name any remote address; the responder refuses a wrong one. */
static void atomic(void)
{
	struct ibv_qp *qp = create(IBV_QPT_RC), *peer = create(IBV_QPT_RC);

	connect_to(qp, peer->qp_num);
	connect_to(peer, qp->qp_num);
	post(qp, (struct ibv_send_wr){
			 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			 .wr.atomic = {.remote_addr = (uintptr_t)memory + 4, .rkey = mr->rkey}});
	MUST(wait_for(cq).status == IBV_WC_REM_INV_REQ_ERR);
}

/* The program chooses the lowest byte of a window's next key, and the call returns the key at
 * once. */
static void window(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_qp *qp = create(IBV_QPT_RC);
	uint32_t rkey;

	MUST(mw);
	rkey = (mw->rkey & ~0xffu) | 0x42;
	connect_to(qp, qp->qp_num);
	post(qp, (struct ibv_send_wr){.opcode = IBV_WR_BIND_MW,
				      .bind_mw = {.mw = mw,
						  .rkey = 0x42,
						  .bind_info = {mr, (uintptr_t)memory, 64,
								IBV_ACCESS_REMOTE_WRITE}}});
	MUST(mw->rkey == rkey && wait_for(cq).status == IBV_WC_SUCCESS);
	post(qp, (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
				      .wr.rdma = {(uintptr_t)memory + 8, rkey}});
	MUST(wait_for(cq).status == IBV_WC_SUCCESS);
}

/* Check that errno equals the returned value, and that no handle can be destroyed twice. */
static void ended(void)
{
	struct ibv_qp *qp = create(IBV_QPT_RC);

	errno = 0;
	MUST(ibv_destroy_cq(cq) == EBUSY && errno == EBUSY);
	MUST(ibv_destroy_qp(qp) == 0);
	errno = 0;
	MUST(ibv_destroy_qp(qp) == EINVAL && errno == EINVAL);
	MUST(ibv_destroy_qp(create(IBV_QPT_RC)) == 0);
	MUST(ibv_destroy_cq(cq) == 0 && ibv_destroy_cq(cq) == EINVAL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*expect)(void);
	} all[] = {{"destroyed", destroyed}, {"relaxed", relaxed}, {"datagrams", datagrams},
		   {"atomic", atomic},	     {"window", window},   {"ended", ended}};

	for (size_t i = 0; argc == 2 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[1], all[i].name) == 0) {
			open_device();
			all[i].expect();
			return 0;
		}
	}
	return 2;
}
