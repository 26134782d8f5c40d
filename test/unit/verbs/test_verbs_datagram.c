/* SPDX-License-Identifier: BSD-3-Clause */
/* A program's view of datagrams: an address, the header in front of what is received, the way back.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/guard.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define GRH   40
#define BYTES 4096

static uint8_t inbox[BYTES];
static uint8_t outbox[BYTES];

struct datagrams {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *in;
	struct ibv_mr *out;
	struct ibv_qp *qp[2];
};

static struct ibv_qp *create_qp(const struct datagrams *datagrams)
{
	struct ibv_qp_init_attr init = {
		.send_cq = datagrams->cq,
		.recv_cq = datagrams->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = ibv_create_qp(datagrams->pd, &init);

	assert_non_null(qp);
	assert_int_equal(fake_connect(qp, 0, 0, IBV_QPS_RTS), 0);
	return qp;
}

static struct datagrams start(struct ibv_context *context)
{
	struct datagrams datagrams = {
		.pd = ibv_alloc_pd(context),
		.cq = ibv_create_cq(context, 16, NULL, NULL, 0),
	};

	fake.carries = true;
	datagrams.in = ibv_reg_mr(datagrams.pd, inbox, BYTES, IBV_ACCESS_LOCAL_WRITE);
	datagrams.out = ibv_reg_mr(datagrams.pd, outbox, BYTES, 0);
	for (int i = 0; i < 2; i++)
		datagrams.qp[i] = create_qp(&datagrams);
	memset(inbox, 0xee, BYTES);
	for (size_t i = 0; i < BYTES; i++)
		outbox[i] = (uint8_t)(i * 13 + 5);
	return datagrams;
}

static void end(struct datagrams *datagrams)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(datagrams->qp[i]), 0);
	assert_int_equal(ibv_dereg_mr(datagrams->in), 0);
	assert_int_equal(ibv_dereg_mr(datagrams->out), 0);
	assert_int_equal(ibv_destroy_cq(datagrams->cq), 0);
	assert_int_equal(ibv_dealloc_pd(datagrams->pd), 0);
}

static void receive(struct datagrams *datagrams, int at)
{
	struct ibv_sge sge = {(uintptr_t)inbox, BYTES, datagrams->in->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(datagrams->qp[at], &wr, &bad), 0);
}

static void send(struct datagrams *datagrams, int from, struct ibv_ah *ah, uint32_t qpn,
		 uint32_t qkey)
{
	struct ibv_sge sge = {(uintptr_t)outbox, 100, datagrams->out->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 0x12345678,
		.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(datagrams->qp[from], &wr, &bad), 0);
}

static void expect_received(struct datagrams *datagrams, int at, struct ibv_wc *wc)
{
	assert_int_equal(ibv_poll_cq(datagrams->cq, 1, wc), 1);
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->opcode, IBV_WC_RECV);
	assert_int_equal(wc->byte_len, GRH + 100);
	assert_int_equal(wc->qp_num, datagrams->qp[at]->qp_num);
	assert_int_equal(wc->src_qp, datagrams->qp[!at]->qp_num);
	assert_int_equal(wc->wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc->imm_data, 0x12345678);
	assert_memory_equal(inbox + GRH, outbox, 100);
	assert_int_equal(inbox[GRH + 100], 0xee);
}

/* Send a datagram, and a reply to the address that the completion and the GRH give. */
static void send__and_reply(struct ibv_context *context, uint8_t gid_index)
{
	struct datagrams datagrams = start(context);
	struct ibv_ah_attr attr = fake_ah_attr(gid_index);
	struct ibv_ah *ah, *back;
	struct ibv_wc wc;

	attr.grh.flow_label = gid_index == FAKE_GID_V6 ? 0x54321 : 0;
	attr.grh.traffic_class = 0x28;
	attr.grh.hop_limit = 9;
	ah = ibv_create_ah(datagrams.pd, &attr);
	assert_non_null(ah);
	receive(&datagrams, 1);
	send(&datagrams, 0, ah, datagrams.qp[1]->qp_num, FAKE_QKEY);
	expect_received(&datagrams, 1, &wc);
	assert_int_equal(ibv_init_ah_from_wc(context, 1, &wc, (struct ibv_grh *)inbox, &attr), 0);
	assert_memory_equal(&attr.grh.dgid, &fake.device->gids[gid_index].gid, 16);
	assert_int_equal(attr.grh.sgid_index, gid_index);
	assert_int_equal(attr.grh.flow_label, gid_index == FAKE_GID_V6 ? 0x54321 : 0);
	assert_int_equal(attr.grh.traffic_class, 0x28);
	assert_int_equal(attr.grh.hop_limit, 9);
	back = ibv_create_ah_from_wc(datagrams.pd, &wc, (struct ibv_grh *)inbox, 1);
	assert_non_null(back);
	memset(inbox, 0xee, BYTES);
	receive(&datagrams, 0);
	send(&datagrams, 1, back, wc.src_qp, FAKE_QKEY);
	expect_received(&datagrams, 0, &wc);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(back), 0);
	end(&datagrams);
}

TEST(send__and_reply_ipv4)
{
	send__and_reply(*state, FAKE_GID_V4);
}

TEST(send__and_reply_ipv6)
{
	send__and_reply(*state, FAKE_GID_V6);
}

TEST(send__with_a_wrong_qkey_is_dropped_and_counted)
{
	struct datagrams datagrams = start(*state);
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_ah *ah = ibv_create_ah(datagrams.pd, &attr);
	struct ibv_port_attr before, after;
	struct ibv_wc wc;

	assert_int_equal(ibv_query_port(*state, 1, &before), 0);
	receive(&datagrams, 1);
	send(&datagrams, 0, ah, datagrams.qp[1]->qp_num, FAKE_QKEY + 1);
	assert_int_equal(ibv_poll_cq(datagrams.cq, 1, &wc), 0);
	assert_int_equal(inbox[0], 0xee);
	assert_int_equal(ibv_query_port(*state, 1, &after), 0);
	assert_int_equal(after.qkey_viol_cntr, before.qkey_viol_cntr + 1);
	/* A Q_Key with the highest bit set stands for the queue pair's own. */
	send(&datagrams, 0, ah, datagrams.qp[1]->qp_num, 0x80000000);
	expect_received(&datagrams, 1, &wc);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	end(&datagrams);
}

/* Adapters do the same; the program goes on from SQE. */
TEST(write__completes_as_what_the_queue_pair_cannot_do)
{
	struct datagrams datagrams = start(*state);
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_ah *ah = ibv_create_ah(datagrams.pd, &attr);
	struct ibv_sge sge = {(uintptr_t)outbox, 100, datagrams.out->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 5,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)inbox, .rkey = datagrams.in->rkey},
	};
	struct ibv_qp_attr again = {.qp_state = IBV_QPS_RTS};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(datagrams.qp[0], &wr, &bad), 0);
	assert_int_equal(ibv_poll_cq(datagrams.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(inbox[0], 0xee);
	assert_int_equal(ibv_modify_qp(datagrams.qp[0], &again, IBV_QP_STATE), 0);
	receive(&datagrams, 1);
	send(&datagrams, 0, ah, datagrams.qp[1]->qp_num | 0x80000000, FAKE_QKEY);
	assert_int_equal(ibv_poll_cq(datagrams.cq, 1, &wc), 0);
	send(&datagrams, 0, ah, datagrams.qp[1]->qp_num, FAKE_QKEY);
	expect_received(&datagrams, 1, &wc);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	end(&datagrams);
}

/* A posted request holds the address, so the handle may go. */
TEST(destroy_ah__after_posting_does_no_harm)
{
	struct datagrams datagrams = start(*state);
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_ah *ah = ibv_create_ah(datagrams.pd, &attr);
	struct ibv_wc wc;

	receive(&datagrams, 1);
	fake.carries = false;
	send(&datagrams, 0, ah, datagrams.qp[1]->qp_num, FAKE_QKEY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	fake.carries = true;
	expect_received(&datagrams, 1, &wc);
	end(&datagrams);
}

/* Memory that went under its region, on either side. */
TEST(datagram__from_and_into_memory_that_is_gone)
{
	struct datagrams datagrams = start(*state);
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_ah *ah = ibv_create_ah(datagrams.pd, &attr);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(datagrams.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {.addr = (uintptr_t)page, .length = 4096, .lkey = mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(munmap(page, 4096), 0);
	assert_int_equal(ibv_post_recv(datagrams.qp[1], &recv, &bad_recv), 0);
	send(&datagrams, 0, ah, datagrams.qp[1]->qp_num, FAKE_QKEY);
	assert_int_equal(ibv_poll_cq(datagrams.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc.qp_num, datagrams.qp[1]->qp_num);
	sge.length = 100;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = datagrams.qp[1]->qp_num;
	wr.wr.ud.remote_qkey = FAKE_QKEY;
	assert_int_equal(ibv_post_send(datagrams.qp[0], &wr, &bad), 0);
	assert_int_equal(ibv_poll_cq(datagrams.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc.qp_num, datagrams.qp[0]->qp_num);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	end(&datagrams);
}
