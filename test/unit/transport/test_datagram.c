/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/datagram.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "away.h"
#include "fixture.h"
#include "queue/ah.h"
#include "transport/datagram.h"
#include "wire/headers.h"
#include "test.h"
#include "queues.h"

#define MTU	   1024u
#define MEMORY	   (4 * MTU)
#define SEED	   2u
#define CQE	   8u
#define QKEY	   0x11223344u
#define REMOTE_QPN 0xabcdefu
#define FIRST_PSN  0xffffffu
#define GRH	   DATAGRAM_GRH_BYTES

static struct fixture fixture;
static struct region memory;
static struct sq sq;
static struct rq rq;
static struct cq *recv_cq;
static struct completer completer;
static struct datagram datagram;
static struct receive receive;
static struct ibv_sge list[PACKET_FRAGS_MAX];
static struct ah ah;

static int set_up(TEST_STATE)
{
	const struct sq_attr attr = {
		.max_wr = 16, .max_sge = 2, .max_inline = 64, .sig_all = true, .type = IBV_QPT_UD};

	fixture_set_up(&fixture, MTU, CQE);
	region_set_up(&memory, fixture.pd, MEMORY, IBV_ACCESS_LOCAL_WRITE, SEED);
	assert_int_equal(sq_init(&sq, &attr), 0);
	assert_int_equal(rq_init(&rq, 8, 2), 0);
	assert_int_equal(cq_create(CQE, NULL, NULL, NULL, &recv_cq), 0);
	completer = (struct completer){
		.sq = &sq, .cq = fixture.cq, .counters = &fixture.counters, .qpn = FIXTURE_QPN};
	receive = (struct receive){.sge = list};
	datagram = (struct datagram){.sq = &sq,
				     .rq = &rq,
				     .recv_cq = recv_cq,
				     .receive = &receive,
				     .completer = &completer,
				     .pacer = &fixture.pacer,
				     .pd = fixture.pd,
				     .counters = &fixture.counters,
				     .qpn = FIXTURE_QPN,
				     .mtu = MTU,
				     .pkey = WIRE_PKEY_DEFAULT,
				     .qkey = QKEY,
				     .psn = {FIRST_PSN}};
	ah.path = fixture.peer.path;
	return 0;
}

static int tear_down(TEST_STATE)
{
	sq_fini(&sq);
	rq_fini(&rq);
	assert_int_equal(cq_destroy(recv_cq), 0);
	region_tear_down(&memory);
	fixture_tear_down(&fixture);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void post_list(uint64_t wr_id, struct ibv_send_wr wr, struct ibv_sge *sge, int num_sge)
{
	struct ibv_send_wr *bad;

	wr.wr_id = wr_id;
	wr.sg_list = sge;
	wr.num_sge = num_sge;
	wr.wr.ud.ah = &ah.ibv;
	wr.wr.ud.remote_qpn = REMOTE_QPN;
	if (wr.wr.ud.remote_qkey == 0)
		wr.wr.ud.remote_qkey = 0x55;
	assert_int_equal(sq_post(&sq, IBV_QPT_UD, &wr, &bad), 0);
}

static void post(uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = region_sge(&memory, 0, length);

	post_list(wr_id, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, &sge, length > 0);
}

static void post_bad(uint64_t wr_id)
{
	struct ibv_sge sge = {.addr = 4096, .length = 1, .lkey = FIXTURE_NOBODY};

	post_list(wr_id, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, &sge, 1);
}

static enum fault send_some(unsigned int budget, bool *more)
{
	catcher_clear(&fixture.catcher);
	return datagram_send(&datagram, &fixture.catcher.sink, budget, more);
}

static enum fault send_all(void)
{
	bool more;
	const enum fault fault = send_some(1000, &more);

	assert_false(more);
	return fault;
}

static const struct packet *sent(unsigned int i)
{
	return catcher_at(&fixture.catcher, i);
}

TEST(datagram_send__one_packet_a_message)
{
	post(1, 0);
	post(2, MTU);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(sent(i)->opcode, OPCODE_UD | OPCODE_SEND_ONLY);
		assert_int_equal(sent(i)->psn.v, psn_make(FIRST_PSN + i).v);
		assert_int_equal(sent(i)->dest_qpn, REMOTE_QPN);
		assert_int_equal(sent(i)->src_qpn, FIXTURE_QPN);
		assert_int_equal(sent(i)->qkey, 0x55);
		assert_int_equal(sent(i)->pkey, WIRE_PKEY_DEFAULT);
		assert_false(sent(i)->ack_req);
	}
	assert_int_equal(sent(0)->payload_len, 0);
	assert_int_equal(sent(1)->payload_len, MTU);
	assert_memory_equal(sent(1)->payload, memory.bytes, MTU);
	assert_int_equal(fixture_completion(fixture.cq, 1, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	fixture_completion(fixture.cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_tx_payload_bytes_read), MTU);
}

TEST(datagram_send__immediate_solicited_and_inline)
{
	uint8_t bytes[11] = {1, 2, 3};
	struct ibv_sge sge = {.addr = (uintptr_t)bytes, .length = sizeof(bytes)};

	post_list(1,
		  (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM,
				       .send_flags = IBV_SEND_SOLICITED | IBV_SEND_INLINE,
				       .imm_data = 0x0a0b0c0d},
		  &sge, 1);
	bytes[0] = 9;
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(sent(0)->opcode, OPCODE_UD | OPCODE_SEND_ONLY_IMM);
	assert_int_equal(sent(0)->imm_be, 0x0a0b0c0d);
	assert_true(sent(0)->solicited);
	bytes[0] = 1;
	assert_memory_equal(sent(0)->payload, bytes, sizeof(bytes));
}

TEST(datagram_send__a_privileged_key_means_our_own)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	wr.wr.ud.remote_qkey = 0x80000000;
	post_list(1, wr, NULL, 0);
	wr.wr.ud.remote_qkey = 0x7fffffff;
	post_list(2, wr, NULL, 0);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(sent(0)->qkey, QKEY);
	assert_int_equal(sent(1)->qkey, 0x7fffffff);
}

TEST(datagram_send__takes_the_path_when_it_is_posted)
{
	post(1, 8);
	/* The program may call ibv_destroy_ah(3) as soon as the request is posted. */
	memset(&ah, 0xff, sizeof(ah));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(sent(0)->dgid[15], 2);
}

TEST(datagram_send__stops_at_budget_and_sink)
{
	struct packet_out *(*const get)(struct packet_sink *) = fixture.catcher.sink.get;
	bool more;

	post(1, 8);
	post(2, 8);
	post(3, 8);
	/* Without a budget the sink is not asked for a packet. */
	fixture.catcher.sink.get = NULL;
	assert_int_equal(send_some(0, &more), FAULT_NONE);
	assert_true(more);
	fixture_no_completion(fixture.cq);
	fixture.catcher.sink.get = get;
	assert_int_equal(send_some(1, &more), FAULT_NONE);
	assert_true(more);
	fixture_completion(fixture.cq, 1, IBV_WC_SUCCESS);
	catcher_clear(&fixture.catcher);
	fixture.catcher.room = 1;
	assert_int_equal(datagram_send(&datagram, &fixture.catcher.sink, 9, &more), FAULT_NONE);
	assert_true(more);
	fixture_completion(fixture.cq, 2, IBV_WC_SUCCESS);
	fixture_no_completion(fixture.cq);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(sent(0)->psn.v, psn_make(FIRST_PSN + 2).v);
	fixture_completion(fixture.cq, 3, IBV_WC_SUCCESS);
}

TEST(datagram_send__what_cannot_be_sent_is_a_fault)
{
	post(1, 8);
	post(2, MTU + 1);
	post(3, 8);
	assert_int_equal(send_all(), FAULT_SEND_LENGTH);
	assert_int_equal(fixture.catcher.count, 1);
	fixture_completion(fixture.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(completer_fail(&completer, FAULT_SEND_LENGTH), FAULT_NONE);
	fixture_completion(fixture.cq, 2, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(send_all(), FAULT_NONE);
	fixture_completion(fixture.cq, 3, IBV_WC_SUCCESS);
	post_bad(4);
	assert_int_equal(send_all(), FAULT_SEND_PROTECTION);
	assert_int_equal(fixture.catcher.count, 0);
}

/* Such work can be posted, as to adapters. The field that looks like an address handle is not one.
 */
TEST(datagram_send__of_other_services_is_a_fault)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						     IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_sge sge = region_sge(&memory, 0, 8);

	for (uint64_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct ibv_send_wr wr = {.wr_id = i,
					 .opcode = opcodes[i],
					 .sg_list = &sge,
					 .num_sge = 1,
					 .wr.rdma = {.remote_addr = 8, .rkey = 9}},
				   *bad;

		assert_int_equal(sq_post(&sq, IBV_QPT_UD, &wr, &bad), 0);
		assert_int_equal(send_all(), FAULT_SEND_OPERATION);
		assert_int_equal(fixture.catcher.count, 0);
		completer_fail(&completer, FAULT_SEND_OPERATION);
		fixture_completion(fixture.cq, i, IBV_WC_LOC_QP_OP_ERR);
	}
}

/* The datagram is lost, and not sent to the queue pair whose number is the lower 24 bits. */
TEST(datagram_send__to_more_than_24_bits_is_dropped)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = &ah.ibv, .remote_qpn = 0x1000000 | REMOTE_QPN}},
			   *bad;
	bool more;

	for (wr.wr_id = 1; wr.wr_id <= 3; wr.wr_id++)
		assert_int_equal(sq_post(&sq, IBV_QPT_UD, &wr, &bad), 0);
	post(4, 8);
	assert_int_equal(send_some(2, &more), FAULT_NONE);
	assert_true(more);
	fixture_completion(fixture.cq, 1, IBV_WC_SUCCESS);
	fixture_completion(fixture.cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(fixture.catcher.count, 0);
	assert_int_equal(send_all(), FAULT_NONE);
	fixture_completion(fixture.cq, 3, IBV_WC_SUCCESS);
	fixture_completion(fixture.cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(fixture.catcher.count, 1);
	assert_int_equal(sent(0)->psn.v, FIRST_PSN);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_tx_wrong_qpn), 3);
}

/* Receiving. */

static void post_receive(uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = region_sge(&memory, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(rq_post(&rq, &wr, &bad), 0);
}

static enum fault take(uint32_t qkey, uint32_t len)
{
	const struct packet_fields fields = {.opcode = OPCODE_UD | OPCODE_SEND_ONLY_IMM,
					     .psn = 77,
					     .qkey = qkey,
					     .src_qpn = REMOTE_QPN,
					     .imm_be = 4,
					     .len = len};

	return datagram_receive(&datagram, fixture_packet(&fixture, &fields));
}

TEST(datagram_receive__stores_the_message_behind_forty_bytes)
{
	struct ibv_wc wc;

	post_receive(1, 0, 200);
	assert_int_equal(take(QKEY, 100), FAULT_NONE);
	wc = fixture_completion(recv_cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, GRH + 100);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 4);
	assert_int_equal(wc.qp_num, FIXTURE_QPN);
	assert_int_equal(wc.src_qp, REMOTE_QPN);
	assert_int_equal(wc.sl, 10);
	/* A17.4.5.1: the IPv4 header is in the second half of the 40 bytes. */
	assert_memory_equal(memory.bytes + 20, fixture.packet.l3, 20);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(memory.bytes[GRH + i], pattern_byte(77, i));
	region_expect_pattern(&memory, GRH + 100, MEMORY - GRH - 100, SEED);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_rx_payload_bytes_written),
			 GRH + 100);
}

TEST(datagram_receive__tells_ipv6_header_and_packet_type)
{
	struct path_attr attr = {.vlan_tci = 5 << 13 | 7,
				 .sgid = {0xfe, 0x80, [15] = 2},
				 .dgid = {0xfe, 0x80, [15] = 1},
				 .tclass = 3,
				 .hop_limit = 9,
				 .udp_sport = 0xc001};

	assert_int_equal(path_init(&fixture.path_back, &attr), 0);
	post_receive(1, 0, 200);
	assert_int_equal(take(QKEY, 8), FAULT_NONE);
	assert_int_equal(fixture_completion(recv_cq, 1, IBV_WC_SUCCESS).sl, 9);
	assert_memory_equal(memory.bytes, fixture.packet.l3, GRH);
}

TEST(datagram_receive__the_wrong_key_is_dropped)
{
	post_receive(1, 0, 200);
	assert_int_equal(take(QKEY ^ 1, 8), FAULT_NONE);
	fixture_no_completion(recv_cq);
	region_expect_pattern(&memory, 0, MEMORY, SEED);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_rx_wrong_qkey), 1);
	assert_int_equal(rq.prod - rq.cons, 1);
}

TEST(datagram_receive__without_a_request_it_is_dropped)
{
	assert_int_equal(take(QKEY, 8), FAULT_NONE);
	fixture_no_completion(recv_cq);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_rx_no_receive), 1);
}

TEST(datagram_receive__what_does_not_fit_is_dropped_and_the_request_waits)
{
	post_receive(1, 0, GRH + 8);
	assert_int_equal(take(QKEY, 9), FAULT_NONE);
	fixture_no_completion(recv_cq);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_resp_local_length_error), 1);
	region_expect_pattern(&memory, 0, MEMORY, SEED);
	assert_int_equal(take(QKEY, 8), FAULT_NONE);
	assert_int_equal(fixture_completion(recv_cq, 1, IBV_WC_SUCCESS).byte_len, GRH + 8);
	region_expect_pattern(&memory, GRH + 8, MEMORY - GRH - 8, SEED);
}

TEST(datagram_receive__longer_than_the_port_carries)
{
	post_receive(1, 0, MEMORY);
	assert_int_equal(take(QKEY, MTU + 1), FAULT_NONE);
	fixture_no_completion(recv_cq);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_rx_no_receive), 1);
	assert_int_equal(take(QKEY, MTU), FAULT_NONE);
	fixture_completion(recv_cq, 1, IBV_WC_SUCCESS);
}

TEST(datagram_receive__memory_that_may_not_be_written)
{
	struct ibv_sge sge = {.addr = 4096, .length = 200, .lkey = FIXTURE_NOBODY};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(rq_post(&rq, &wr, &bad), 0);
	assert_int_equal(take(QKEY, 8), FAULT_RECEIVE_PROTECTION);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_resp_operational_errors), 1);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_resp_cqe_error), 1);
	fixture_completion(recv_cq, 1, IBV_WC_LOC_PROT_ERR);
}

TEST(datagram_receive__a_shared_queue_has_a_domain_of_its_own)
{
	struct ibv_recv_wr wr = {.wr_id = 1, .num_sge = 1}, *bad;
	struct region other;
	struct ibv_sge sge;
	struct srq *srq;

	region_set_up(&other, fixture.other_pd, 64, IBV_ACCESS_LOCAL_WRITE, 1);
	assert_int_equal(srq_create(2, 1, fixture.other_pd, &srq), 0);
	datagram.srq = srq;
	datagram.rq = &srq->rq;
	wr.sg_list = &sge;
	sge = region_sge(&other, 0, 64);
	assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	sge = region_sge(&memory, 0, 64);
	assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	assert_int_equal(take(QKEY, 8), FAULT_NONE);
	fixture_completion(recv_cq, 1, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(other.bytes[GRH + i], pattern_byte(77, i));
	assert_int_equal(take(QKEY, 8), FAULT_RECEIVE_PROTECTION);
	fixture_completion(recv_cq, 1, IBV_WC_LOC_PROT_ERR);
	region_expect_pattern(&memory, 0, MEMORY, SEED);
	assert_int_equal(srq_destroy(srq), 0);
	region_tear_down(&other);
}

/* Pages that are not in memory. */

static struct ooo_pool *pool;

/* Make the pages of the receive buffers absent. The pool has room for `room` datagrams. */
static void go(uint32_t room)
{
	away_begin(fixture.pd);
	memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	away_go(memory.bytes, MEMORY);
	assert_int_equal(ooo_pool_create(room, &pool), 0);
	datagram.ooo.pool = pool;
}

static void come_and_go(void)
{
	away_come();
	assert_int_equal(datagram_resume(&datagram), FAULT_NONE);
	assert_int_equal(datagram.ooo.count, 0);
	ooo_pool_destroy(pool);
}

TEST(datagram_receive__keeps_messages_until_the_page_comes)
{
	go(8);
	for (uint64_t i = 0; i < 3; i++)
		post_receive(i, i * MTU, GRH + 100);
	assert_int_equal(take(QKEY, 8), FAULT_NONE);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_page_waits), 1);
	assert_int_equal(take(QKEY, 0), FAULT_NONE);
	assert_int_equal(take(QKEY, 100), FAULT_NONE);
	assert_int_equal(datagram_resume(&datagram), FAULT_NONE);
	fixture_no_completion(recv_cq);
	region_expect_pattern(&memory, 0, MEMORY, SEED);
	come_and_go();
	assert_int_equal(fixture_completion(recv_cq, 0, IBV_WC_SUCCESS).byte_len, GRH + 8);
	assert_int_equal(fixture_completion(recv_cq, 1, IBV_WC_SUCCESS).byte_len, GRH);
	assert_int_equal(fixture_completion(recv_cq, 2, IBV_WC_SUCCESS).byte_len, GRH + 100);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(memory.bytes[2 * MTU + GRH + i], pattern_byte(77, i));
	assert_int_equal(memory.bytes[20], 0x45);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_page_waits), 1);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_page_drops), 0);
}

TEST(datagram_receive__keeps_a_single_byte)
{
	go(8);
	post_receive(1, 0, GRH + 1);
	memory.bytes[GRH] = (uint8_t)~pattern_byte(77, 0);
	assert_int_equal(take(QKEY, 1), FAULT_NONE);
	come_and_go();
	assert_int_equal(fixture_completion(recv_cq, 1, IBV_WC_SUCCESS).byte_len, GRH + 1);
	assert_int_equal(memory.bytes[GRH], pattern_byte(77, 0));
}

TEST(datagram_receive__without_room_a_message_is_lost)
{
	go(2);
	post_receive(1, 0, GRH + 8);
	for (int i = 0; i < 3; i++)
		assert_int_equal(take(QKEY, 8), FAULT_NONE);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_page_drops), 1);
	come_and_go();
	fixture_completion(recv_cq, 1, IBV_WC_SUCCESS);
	/* The second datagram finds no receive request. */
	fixture_no_completion(recv_cq);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_rx_no_receive), 1);
}

TEST(datagram_resume__of_memory_that_is_gone_is_a_fault)
{
	go(2);
	post_receive(1, 0, GRH + 8);
	assert_int_equal(take(QKEY, 8), FAULT_NONE);
	region_deregister(&memory);
	assert_int_equal(datagram_resume(&datagram), FAULT_RECEIVE_PROTECTION);
	fixture_completion(recv_cq, 1, IBV_WC_LOC_PROT_ERR);
	datagram_flush(&datagram);
	assert_int_equal(datagram.ooo.count, 0);
	ooo_pool_destroy(pool);
}

TEST(datagram_send__waits_for_an_absent_page)
{
	bool more;

	away_begin(fixture.pd);
	memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	away_go(memory.bytes, MEMORY);
	post(1, 8);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(send_some(9, &more), FAULT_NONE);
		assert_false(more);
		assert_true(datagram.absent);
		assert_int_equal(fixture.catcher.count, 0);
	}
	assert_int_equal(counters_get(&fixture.counters, COUNTER_page_waits), 1);
	away_come();
	assert_int_equal(send_some(9, &more), FAULT_NONE);
	assert_false(datagram.absent);
	fixture_completion(fixture.cq, 1, IBV_WC_SUCCESS);
}

TEST(datagram_reset__drops_what_is_kept)
{
	go(2);
	post_receive(1, 0, GRH + 8);
	assert_int_equal(take(QKEY, 8), FAULT_NONE);
	assert_int_equal(datagram.ooo.count, 1);
	datagram.absent = true;
	datagram_reset(&datagram);
	assert_int_equal(datagram.ooo.count, 0);
	assert_false(datagram.absent);
	ooo_pool_destroy(pool);
}

TEST(datagram_flush__in_order)
{
	post_receive(1, 0, 8);
	post_receive(2, 0, 8);
	/* A message that did not fit has taken the receive request. */
	assert_int_equal(take(QKEY, 8), FAULT_NONE);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_resp_local_length_error), 1);
	datagram_flush(&datagram);
	fixture_completion(recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
	fixture_completion(recv_cq, 2, IBV_WC_WR_FLUSH_ERR);
	fixture_no_completion(recv_cq);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_resp_cqe_flush_error), 2);
}

TEST(datagram_send__paced)
{
	bool more = true;

	pacer_set(&fixture.pacer, 8000, 1, MTU);
	pacer_poll(&fixture.pacer, 0);
	post(1, MTU);
	post(2, MTU);
	assert_int_equal(send_some(9, &more), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	assert_false(more);
	assert_in_range(fixture.pacer.deadline_ns, MTU * 1000, (MTU + 200) * 1000);
	pacer_poll(&fixture.pacer, fixture.pacer.deadline_ns);
	assert_int_equal(send_some(9, &more), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	fixture_completion(fixture.cq, 1, IBV_WC_SUCCESS);
	fixture_completion(fixture.cq, 2, IBV_WC_SUCCESS);
}
