/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp: what the engine asks of a queue pair, and what else is done to one in its
 * operation. */
#include <stdint.h>
#include <string.h>

#include "qp_rig.h"
#include "queue/ah.h"
#include "queue/comp_cntr.h"
#include "raise_qp.h"
#include "test.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

/* Let a request of B arrive at A, for which A owes an acknowledgement. */
static void owe_acknowledgement(void)
{
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(B, 9);
	end_deliver(B);
}

TEST(qp_owes_ack_only__when_nothing_else_is_due)
{
	rig_connect();
	assert_false(qp_owes_ack_only(A->qp));
	owe_acknowledgement();
	assert_true(qp_owes_ack_only(A->qp));
	end_run(A, 9);
	assert_false(qp_owes_ack_only(A->qp));
}

TEST(qp_owes_ack_only__before_it_may_send)
{
	end_raise(A, IBV_QPS_RTR);
	end_raise(B, IBV_QPS_RTS);
	owe_acknowledgement();
	assert_true(qp_owes_ack_only(A->qp));
}

TEST(qp_owes_ack_only__but_not_while_a_request_is_due)
{
	rig_connect();
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	owe_acknowledgement();
	assert_false(qp_owes_ack_only(A->qp));
	/* A request that has left is no reason to run. */
	end_run(A, 9);
	owe_acknowledgement();
	assert_true(qp_owes_ack_only(A->qp));
}

TEST(qp_sends_to__the_next_hop)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 7}, other[6] = {2, 0, 0, 0, 0, 8};
	struct path_attr path = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};

	memcpy(path.dst_mac, mac, sizeof(path.dst_mac));
	memcpy(path.sgid, A->gid, sizeof(path.sgid));
	memcpy(path.dgid, B->gid, sizeof(path.dgid));
	assert_int_equal(path_init(&A->path, &path), 0);
	rig_connect();
	assert_true(qp_sends_to(A->qp, mac));
	assert_false(qp_sends_to(A->qp, other));
}

TEST(qp_peer_qpn__is_the_peers)
{
	rig_connect();
	assert_int_equal(qp_peer_qpn(A->qp), FIXTURE_PEER_QPN);
}

TEST(qp_break__ends_a_queue_pair_with_an_event)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_true(qp_break(A->qp, IBV_EVENT_QP_FATAL));
	end_sent(A, 1, IBV_WC_WR_FLUSH_ERR);
	end_expect_error(A);
	assert_int_equal(A->events, 1);
	end_expect_event(A, 0, IBV_EVENT_QP_FATAL);
}

TEST(qp_break__not_before_it_receives_nor_twice)
{
	assert_false(qp_break(A->qp, IBV_EVENT_QP_FATAL));
	end_raise(A, IBV_QPS_INIT);
	assert_false(qp_break(A->qp, IBV_EVENT_QP_FATAL));
	assert_int_equal(end_modify(A, IBV_QPS_RTR), 0);
	assert_true(qp_break(A->qp, IBV_EVENT_QP_FATAL));
	assert_false(qp_break(A->qp, IBV_EVENT_QP_FATAL));
	assert_int_equal(A->events, 1);
}

TEST(qp_count__each_kind_of_request_by_itself)
{
	struct comp_cntr counts[COMP_CNTR_OPS] = {0};
	struct comp_cntrs cntrs;

	for (int op = 0; op < COMP_CNTR_OPS; op++)
		cntrs.of[op] = &counts[op];
	rig_connect();
	qp_count(A->qp, &cntrs);
	assert_int_equal(end_receive(A, 10, 0, 8), 0);
	assert_int_equal(end_receive(B, 11, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	assert_int_equal(end_send(B, 4, IBV_WR_SEND, 0, 8, 0), 0);
	assert_int_equal(end_send(B, 5, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	assert_int_equal(counts[COMP_CNTR_SEND].done, 1);
	assert_int_equal(counts[COMP_CNTR_RECV].done, 1);
	assert_int_equal(counts[COMP_CNTR_RDMA_READ].done, 1);
	assert_int_equal(counts[COMP_CNTR_RDMA_WRITE].done, 1);
	assert_int_equal(counts[COMP_CNTR_REMOTE_RDMA_WRITE].done, 1);
}

TEST(qp_count__datagrams)
{
	struct comp_cntr count = {0};
	const struct comp_cntrs cntrs = {.of[COMP_CNTR_SEND] = &count};
	struct ah ah = {.path = A->path};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = &ah.ibv, .remote_qpn = FIXTURE_PEER_QPN}},
			   *bad;

	end_recreate(A, IBV_QPT_UD, NULL);
	for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
		struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)to, .port_num = 1};

		assert_int_equal(
			qp_modify(A->qp, &attr, raise_mask(IBV_QPT_UD, attr.qp_state), NULL), 0);
	}
	qp_count(A->qp, &cntrs);
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	end_run(A, 9);
	assert_int_equal(count.done, 1);
}

TEST(qp_count__the_peers_writes_only_if_they_are_counted)
{
	struct comp_cntr count = {0};
	const struct comp_cntrs cntrs = {.of[COMP_CNTR_SEND] = &count};

	rig_connect();
	qp_count(A->qp, &cntrs);
	assert_int_equal(end_send(B, 5, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(B, 5, IBV_WC_SUCCESS);
	assert_int_equal(count.done, 0);
}
