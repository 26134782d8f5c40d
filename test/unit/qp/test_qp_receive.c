/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of qp_receive (lib/qp/qp_receive.c): which packets a queue pair accepts, and in which
 * states. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "qp_rig.h"
#include "queue/ah.h"
#include "raise_qp.h"
#include "test.h"
#include "wire/headers.h"
#include "wire/qpn_block.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

static void expect_unheard(const struct packet *packet)
{
	const uint64_t dropped = rig_counter(COUNTER_rx_wrong_qpn);

	qp_receive(A->qp, packet, rig.now_ns);
	fixture_no_completion(A->recv_cq);
	assert_int_equal(rig_counter(COUNTER_rx_wrong_qpn), dropped + 1);
}

TEST(qp_receive__a_connected_queue_pair_hears_its_peer_only)
{
	struct packet packet;

	end_raise(A, IBV_QPS_RTR);
	end_raise(B, IBV_QPS_RTS);
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	packet = *catcher_at(&B->catcher, 0);
	packet.sgid[15] ^= 1;
	expect_unheard(&packet);
	packet.sgid[15] ^= 1;
	packet.dgid[15] ^= 1;
	expect_unheard(&packet);
	packet.dgid[15] ^= 1;
	packet.vlan_id = 5;
	expect_unheard(&packet);
	packet.vlan_id = -1;
	qp_receive(A->qp, &packet, rig.now_ns);
	end_received(A, 1, IBV_WC_SUCCESS);
}

static void connect_with(enum cc_kind kind)
{
	rig.cc = (struct cc_attr){.kind = kind, .link_mbps = 1000};
	end_recreate(A, IBV_QPT_RC, NULL);
	end_recreate(B, IBV_QPT_RC, NULL);
	rig_connect();
}

TEST(qp_expects__packets_of_its_service_from_its_peer)
{
	struct packet packet;

	connect_with(CC_NONE);
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	packet = *catcher_at(&B->catcher, 0);
	assert_true(qp_expects(A->qp, &packet));
	packet.sgid[15] ^= 1;
	assert_false(qp_expects(A->qp, &packet));
	packet.sgid[15] ^= 1;
	packet.dgid[15] ^= 1;
	assert_false(qp_expects(A->qp, &packet));
	packet.dgid[15] ^= 1;
	packet.vlan_id = 5;
	assert_false(qp_expects(A->qp, &packet));
	packet.vlan_id = -1;
	packet.opcode ^= OPCODE_UC;
	assert_false(qp_expects(A->qp, &packet));
	packet.opcode = OPCODE_CNP;
	assert_false(qp_expects(A->qp, &packet));
	packet = *catcher_at(&B->catcher, 0);
	qp_receive_expected(A->qp, &packet, rig.now_ns);
	end_received(A, 1, IBV_WC_SUCCESS);
}

/* Congestion control looks at all packets. */
TEST(qp_expects__nothing_before_it_knows_its_peer_or_with_congestion_control)
{
	struct packet packet;

	connect_with(CC_DCQCN);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	packet = *catcher_at(&B->catcher, 0);
	assert_false(qp_expects(A->qp, &packet));
	connect_with(CC_NONE);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	packet = *catcher_at(&B->catcher, 0);
	assert_true(qp_expects(A->qp, &packet));
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_false(qp_expects(A->qp, &packet));
}

/* Programs that share a port have the same addresses. The port's owner marks packets of those that
 * are not trusted. */
TEST(qp_receive__a_marked_packet_is_of_the_peers_program)
{
	const uint32_t peers = A->attr.dest_qp_num & ~((1u << WIRE_QPN_BLOCK_SHIFT) - 1);
	uint8_t marked[6];
	struct packet packet;

	rig_connect();
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	packet = *catcher_at(&B->catcher, 0);
	packet.src_mac = marked;
	for (unsigned int bit = WIRE_QPN_BLOCK_SHIFT; bit < 24; bit++) {
		wire_mark_sender(marked, peers ^ 1u << bit);
		expect_unheard(&packet);
	}
	wire_mark_sender(marked, peers);
	qp_receive(A->qp, &packet, rig.now_ns);
	end_received(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_receive__a_queue_pair_of_a_vlan_hears_that_only)
{
	struct path_attr path = {.vlan_tci = 0x2005, .hop_limit = 64, .udp_sport = 0xc000};
	struct packet packet;

	memcpy(path.sgid, A->gid, sizeof(path.sgid));
	memcpy(path.dgid, B->gid, sizeof(path.dgid));
	assert_int_equal(path_init(&A->path, &path), 0);
	rig_connect();
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	packet = *catcher_at(&B->catcher, 0);
	expect_unheard(&packet);
	packet.vlan_id = 6;
	expect_unheard(&packet);
	packet.vlan_id = 5;
	qp_receive(A->qp, &packet, rig.now_ns);
	end_received(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_receive__another_service_is_not_heard)
{
	static const uint8_t services[] = {OPCODE_UC, OPCODE_UD, OPCODE_XRC};
	struct packet packet;

	rig_connect();
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	for (size_t i = 0; i < sizeof(services); i++) {
		packet = *catcher_at(&B->catcher, 0);
		packet.opcode |= services[i];
		packet.op = opcode_info(packet.opcode);
		qp_receive(A->qp, &packet, rig.now_ns);
	}
	packet.opcode = OPCODE_CNP;
	packet.op = opcode_info(packet.opcode);
	qp_receive(A->qp, &packet, rig.now_ns);
	fixture_no_completion(A->recv_cq);
	assert_int_equal(rig_counter(COUNTER_rx_wrong_opcode), 3);
	assert_int_equal(rig_counter(COUNTER_rp_cnp_ignored), 1);
}

/* Receive, at an end of an XRC connection, a packet for the role that it does not have. */
static void receive_other_role(const struct end *from, struct end *to, uint8_t opcode)
{
	static const uint8_t src_mac[6] = {2};
	struct packet packet = {.opcode = opcode,
				.op = opcode_info(opcode),
				.dest_qpn = to == A ? FIXTURE_QPN : FIXTURE_PEER_QPN,
				.src_mac = src_mac,
				.vlan_id = -1};
	const uint64_t before = rig_counter(COUNTER_rx_wrong_opcode);

	memcpy(packet.sgid, from->gid, sizeof(packet.sgid));
	memcpy(packet.dgid, to->gid, sizeof(packet.dgid));
	qp_receive(to->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_rx_wrong_opcode), before + 1);
}

/* Only one end of an XRC connection has requests, and only the other one answers. */
TEST(qp_receive__the_ends_of_xrc_have_one_role_each)
{
	static const enum cc_kind kinds[] = {CC_NONE, CC_DCQCN};

	for (size_t i = 0; i < 2; i++) {
		rig.cc = (struct cc_attr){.kind = kinds[i], .link_mbps = 1000};
		end_recreate(A, IBV_QPT_XRC_SEND, NULL);
		end_recreate(B, IBV_QPT_XRC_RECV, NULL);
		rig_connect();
		receive_other_role(B, A, OPCODE_XRC | OPCODE_SEND_ONLY);
		receive_other_role(A, B, OPCODE_XRC | OPCODE_ACKNOWLEDGE);
	}
}

TEST(qp_receive__requests_are_taken_from_rtr_on)
{
	end_raise(B, IBV_QPS_RTS);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	for (int s = IBV_QPS_RESET; s <= IBV_QPS_INIT; s++) {
		if (s == IBV_QPS_INIT) {
			end_raise(A, IBV_QPS_INIT);
			assert_int_equal(end_receive(A, 1, 0, 8), 0);
		}
		qp_receive(A->qp, catcher_at(&B->catcher, 0), rig.now_ns);
		fixture_no_completion(A->recv_cq);
	}
	assert_int_equal(rig_counter(COUNTER_rx_qp_state), 2);
	assert_int_equal(end_modify(A, IBV_QPS_RTR), 0);
	end_deliver(B);
	end_received(A, 1, IBV_WC_SUCCESS);
	/* The request is acknowledged before the queue pair may send. */
	rig_run();
	end_sent(B, 2, IBV_WC_SUCCESS);
}

TEST(qp_receive__requests_are_not_taken_in_error)
{
	rig_connect();
	assert_int_equal(end_send(B, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(B, 9);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	end_deliver(B);
	assert_int_equal(rig_counter(COUNTER_rx_qp_state), 1);
	assert_false(end_run(A, 9));
	assert_int_equal(A->catcher.count, 0);
}

/* Move a queue pair for datagrams on to this state. */
static void raise_datagrams(struct end *end, enum ibv_qp_state to)
{
	for (int s = (int)qp_state(end->qp) + 1; s <= (int)to; s++) {
		struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)s, .port_num = 1};

		assert_int_equal(
			qp_modify(end->qp, &attr, raise_mask(IBV_QPT_UD, attr.qp_state), NULL), 0);
	}
}

TEST(qp_receive__datagrams_are_taken_from_rtr_on)
{
	struct ah ah = {.path = B->path};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = &ah.ibv, .remote_qpn = FIXTURE_QPN}},
			   *bad;

	end_recreate(A, IBV_QPT_UD, NULL);
	end_recreate(B, IBV_QPT_UD, NULL);
	raise_datagrams(B, IBV_QPS_RTS);
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	end_run(B, 9);
	for (int s = IBV_QPS_RESET; s <= IBV_QPS_INIT; s++) {
		if (s == IBV_QPS_INIT) {
			raise_datagrams(A, IBV_QPS_INIT);
			assert_int_equal(end_receive(A, 1, 0, MTU), 0);
		}
		qp_receive(A->qp, catcher_at(&B->catcher, 0), rig.now_ns);
		fixture_no_completion(A->recv_cq);
	}
	assert_int_equal(rig_counter(COUNTER_rx_qp_state), 2);
	raise_datagrams(A, IBV_QPS_RTR);
	end_deliver(B);
	end_received(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_receive__datagrams_with_its_q_key_only)
{
	struct ibv_qp_attr attr = {.qkey = 0x1234};
	struct ah ah = {.path = B->path};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = &ah.ibv, .remote_qpn = FIXTURE_QPN}},
			   *bad;

	end_recreate(A, IBV_QPT_UD, NULL);
	end_recreate(B, IBV_QPT_UD, NULL);
	raise_datagrams(A, IBV_QPS_RTS);
	raise_datagrams(B, IBV_QPS_RTS);
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_QKEY, NULL), 0);
	assert_int_equal(end_receive(A, 1, 0, MTU), 0);
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	end_run(B, 9);
	end_deliver(B);
	fixture_no_completion(A->recv_cq);
	wr.wr.ud.remote_qkey = 0x1234;
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	end_run(B, 9);
	end_deliver(B);
	end_received(A, 1, IBV_WC_SUCCESS);
}

/* Send a datagram without bytes from B to A. */
static void deliver_datagram(void)
{
	struct ah ah = {.path = B->path};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = &ah.ibv, .remote_qpn = FIXTURE_QPN}},
			   *bad;

	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	end_run(B, 9);
	end_deliver(B);
}

TEST(qp_receive__datagrams_are_not_taken_in_error)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	end_recreate(A, IBV_QPT_UD, NULL);
	end_recreate(B, IBV_QPT_UD, NULL);
	raise_datagrams(A, IBV_QPS_RTS);
	raise_datagrams(B, IBV_QPS_RTS);
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
	deliver_datagram();
	assert_int_equal(rig_counter(COUNTER_rx_qp_state), 1);
}

TEST(qp_receive__a_datagram_for_memory_that_may_not_be_written_is_an_error)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_recv_wr wr = {.wr_id = 10, .sg_list = &sge, .num_sge = 1}, *bad;

	end_recreate(A, IBV_QPT_UD, NULL);
	end_recreate(B, IBV_QPT_UD, NULL);
	raise_datagrams(A, IBV_QPS_RTS);
	raise_datagrams(B, IBV_QPS_RTS);
	assert_int_equal(qp_post_recv(A->qp, &wr, &bad), 0);
	deliver_datagram();
	end_received(A, 10, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_ERR);
}

/* Only its sending half fails. */
TEST(qp_run__a_datagram_longer_than_the_ports_mtu)
{
	struct ah ah = {.path = B->path};
	struct ibv_sge sge = region_sge(&B->memory, 0, 1025);
	struct ibv_send_wr wr = {.wr_id = 1,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.ud = {.ah = &ah.ibv, .remote_qpn = FIXTURE_QPN}},
			   *bad;

	end_recreate(B, IBV_QPT_UD, NULL);
	raise_datagrams(B, IBV_QPS_RTS);
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	end_run(B, 9);
	end_sent(B, 1, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(qp_state(B->qp), IBV_QPS_SQE);
}

TEST(qp_receive__the_first_packet_in_rtr_is_told_once)
{
	end_raise(A, IBV_QPS_RTR);
	end_raise(B, IBV_QPS_RTS);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(end_send(B, i, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	assert_int_equal(A->events, 1);
	end_expect_event(A, 0, IBV_EVENT_COMM_EST);
	assert_int_equal(B->events, 0);
	/* And once of the next connection. */
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	end_raise(A, IBV_QPS_RTR);
	end_raise(B, IBV_QPS_RTS);
	assert_int_equal(end_send(B, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	assert_int_equal(A->events, 2);
}

TEST(qp_receive__answers_are_taken_from_rts_on)
{
	const struct packet_fields ack = {
		.opcode = OPCODE_ACKNOWLEDGE, .psn = 100, .syndrome = AETH_ACK | AETH_CREDIT_NONE};
	struct packet packet = *fixture_packet(&rig.fixture, &ack);

	end_raise(A, IBV_QPS_RTR);
	memcpy(packet.sgid, B->gid, 16);
	qp_receive(A->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_rx_qp_state), 1);
	/* This is not the first request of the peer. */
	assert_int_equal(A->events, 0);
}
