/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/explain.c: what a user is told of a queue pair that fails. What programs see is
 * in test/zoo. */
#include <stdint.h>
#include <string.h>

#include "base/origin.h"
#include "base/reason.h"
#include "base/verbs_later.h"
#include "printed.h"
#include "qp_rig.h"
#include "queue/ah.h"
#include "queues.h"
#include "raise_qp.h"
#include "test.h"

static int set_up(void **state)
{
	reason_wanted = true;
	return qp_rig_set_up(state);
}

static int tear_down(void **state)
{
	reason_wanted = false;
	return qp_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

/* Run both until none sends, and return what is told. */
static const char *run(void)
{
	const char *told;

	printed_begin();
	rig_run();
	told = printed_take();
	printed_end();
	return told;
}

TEST(qp_explain__both_sides_of_a_refused_request)
{
	const char *told;

	rig_connect();
	assert_int_equal(end_send(A, 7, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	told = run();
	assert_contains(
		told,
		"uroce: queue pair 0x345678 refuses a request of 10.0.0.1 queue pair 0x11, PSN "
		"0x000064: remote access error (IBV_EVENT_QP_ACCESS_ERR): the access to 8 bytes");
	assert_contains(
		told, "uroce: WRITE of 8 bytes (wr_id 7) by queue pair 0x11 to 10.0.0.2 queue pair "
		      "0x345678: remote access error: ");
}

TEST(qp_explain__tells_who_created_either_queue_pair)
{
	const char *told;
	unsigned int creators = 0;

	rig_connect();
	origin_keep(A->qp);
	origin_keep(B->qp);
	assert_int_equal(end_send(A, 7, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	told = run();
	while ((told = strstr(told, "; the queue pair was created by: ")) != NULL) {
		creators++;
		told++;
	}
	assert_int_equal(creators, 2);
	origin_drop(A->qp);
	origin_drop(B->qp);
}

TEST(qp_explain__an_invalid_request_has_its_own_event)
{
	B->attr.qp_access_flags = 0;
	rig_connect();
	assert_int_equal(end_send(A, 7, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	assert_contains(run(),
			"remote invalid request error (IBV_EVENT_QP_REQ_ERR): the queue pair's "
			"qp_access_flags lack IBV_ACCESS_REMOTE_READ");
}

TEST(qp_explain__a_refusal_without_an_event)
{
	rig_connect();
	assert_int_equal(end_receive(B, 10, 0, 4), 0);
	assert_int_equal(end_send(A, 7, IBV_WR_SEND, 0, 8, 0), 0);
	assert_contains(run(),
			"remote invalid request error: the message is longer than the receive "
			"request (wr_id 10), which has room for 4 bytes");
}

TEST(qp_explain__a_receive_request_that_is_wrong)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	rig_connect();
	assert_int_equal(qp_post_recv(B->qp, &wr, &bad), 0);
	assert_int_equal(end_send(A, 7, IBV_WR_SEND, 0, 8, 0), 0);
	assert_contains(run(),
			"uroce: queue pair 0x345678: a receive request of it: local protection "
			"error: no region has the lkey 0x0, or none any more");
}

TEST(qp_explain__a_message_that_has_come_and_cannot_be_completed)
{
	struct ibv_sge sge = region_sge(&A->memory, 0, 8);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .invalidate_rkey = FIXTURE_NOBODY},
			   *bad;

	rig_connect();
	assert_int_equal(end_receive(B, 10, 0, 8), 0);
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_contains(run(),
			"uroce: queue pair 0x345678: a message of 10.0.0.1 queue pair 0x11 has "
			"come, and cannot be completed: ");
}

TEST(qp_explain__a_completion_queue_that_is_full)
{
	end_recreate_with_small_cq(A);
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_contains(run(), "uroce: queue pair 0x11: its completion queue is full "
			       "(IBV_EVENT_QP_FATAL): it must have room for all that may complete "
			       "before the program polls\n");
}

TEST(qp_explain__peers_have_addresses_of_ipv6_too)
{
	struct path_attr path = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};

	path.sgid[0] = path.dgid[0] = 0xfd;
	path.sgid[15] = 1;
	path.dgid[15] = 2;
	assert_int_equal(path_init(&A->path, &path), 0);
	rig_connect();
	assert_int_equal(end_send(A, 7, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	region_deregister(&A->memory);
	assert_contains(run(), "to fd00::2 queue pair 0x345678: local protection error");
}

TEST(qp_explain__a_datagram_is_for_a_queue_pair)
{
	struct ah ah = {.path = A->path};
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_send_wr wr = {.wr_id = 7,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.ud = {.ah = &ah.ibv, .remote_qpn = 0x77}},
			   *bad;

	end_recreate(A, IBV_QPT_UD, NULL);
	for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
		struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)to, .port_num = 1};

		assert_int_equal(
			qp_modify(A->qp, &attr, raise_mask(IBV_QPT_UD, attr.qp_state), NULL), 0);
	}
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_contains(run(),
			"uroce: SEND of 64 bytes (wr_id 7) by queue pair 0x11 to queue pair 0x77: "
			"local protection error");
}

/* Requests that fail by order of the user have their own names. */
static void expect_name(int opcode, const char *name)
{
	const struct ibv_send_wr wr = {.wr_id = 7, .opcode = (enum ibv_wr_opcode)opcode};

	end_recreate(A, IBV_QPT_RC, NULL);
	end_raise(A, IBV_QPS_RTS);
	assert_int_equal(qp_post_failure(A->qp, &wr, IBV_WC_LOC_PROT_ERR), 0);
	assert_contains(run(), name);
	end_sent(A, 7, IBV_WC_LOC_PROT_ERR);
}

TEST(qp_explain__each_operation_has_its_name)
{
	expect_name(IBV_WR_RDMA_WRITE, "uroce: WRITE of 0 bytes");
	expect_name(IBV_WR_RDMA_WRITE_WITH_IMM, "uroce: WRITE with immediate data of 0 bytes");
	expect_name(IBV_WR_SEND, "uroce: SEND of 0 bytes");
	expect_name(IBV_WR_SEND_WITH_IMM, "uroce: SEND with immediate data of 0 bytes");
	expect_name(IBV_WR_RDMA_READ, "uroce: READ of 0 bytes");
	expect_name(IBV_WR_ATOMIC_CMP_AND_SWP, "uroce: compare and swap of 0 bytes");
	expect_name(IBV_WR_ATOMIC_FETCH_AND_ADD, "uroce: fetch and add of 0 bytes");
	expect_name(IBV_WR_SEND_WITH_INV, "uroce: SEND with invalidation of 0 bytes");
	expect_name(LATER_WR_FLUSH, "uroce: FLUSH of 0 bytes");
	expect_name(IBV_WR_ATOMIC_WRITE, "uroce: ATOMIC WRITE of 0 bytes");
	expect_name(IBV_WR_TSO, "uroce: work request of 0 bytes");
	expect_name(IBV_WR_ATOMIC_WRITE + 1, "uroce: work request of 0 bytes");
	expect_name(31, "uroce: work request of 0 bytes");
}

/* They go to nobody. */
TEST(qp_explain__local_operations)
{
	expect_name(IBV_WR_LOCAL_INV, "uroce: local invalidation (wr_id 7) by queue pair 0x11: ");
	expect_name(IBV_WR_BIND_MW, "uroce: binding of a window (wr_id 7) by queue pair 0x11: ");
}
