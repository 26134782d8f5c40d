/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/pass.c and lib/qp/run.c: an XRC target passes requests for a shared
 * receive queue of another process to a queue pair there. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "away.h"
#include "mem/pd.h"
#include "qp_rig.h"
#include "queue/srq.h"
#include "test.h"
#include "transport/pass.h"
#include "wire/headers.h"
#include "queues.h"

#define NEAR	 0x4001u /* the target's own queue */
#define FAR	 0x8001u /* the other process's */
#define NOBODYS	 0xc001u
#define ALIAS	 0x004321u
#define STAND_IN 0x008765u
#define LINK_PSN 0xfffffeu

/* A is the target, B its requester, and this is the other process. */
static struct {
	struct qp *qp;
	struct srq *srq;
	struct cq *cq;
	struct catcher catcher;
} far;
static struct srq *near;
static struct pass_link link;
static int find_says;
static unsigned int passed;
/* The packets between target and stand-in to lose, counted from 1 at the next one; 0: none. */
static unsigned int lose_passed, lose_answer;
/* The same for the packets to the requester. */
static unsigned int lose_response;

static struct srq *find_near(void *domain, uint32_t number)
{
	(void)domain;
	return number == NEAR ? near : NULL;
}

static struct srq *find_far(void *domain, uint32_t number)
{
	(void)domain;
	return number == FAR ? far.srq : NULL;
}

static int find_link(void *user, uint32_t srqn, struct pass_link **found)
{
	(void)user;
	*found = &link;
	return srqn == FAR ? find_says : -ENOENT;
}

static void create(struct qp **qp, uint32_t qpn, bool is_target)
{
	const struct qp_init init = {
		.pd = rig.fixture.other_pd,
		.type = IBV_QPT_XRC_RECV,
		.qpn = qpn,
		.target_qpn = is_target ? 0 : FIXTURE_QPN,
		.find_srq = is_target ? find_near : find_far,
		.find_link = is_target ? find_link : NULL,
		.counters = &rig.fixture.counters,
		.waiting = &rig.waiting,
		.ooo = rig.ooo,
		.max_rd_atomic = READS,
		.max_dest_rd_atomic = READS,
		.max_rate_kbps = RATE_MAX,
		.port_mtu = IBV_MTU_1024,
	};
	struct ibv_qp_cap cap;

	assert_int_equal(qp_create(&init, &cap, qp), 0);
}

static void connect_stand_in(void)
{
	struct ibv_qp_attr attr = A->attr;
	const int masks[] = {IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER};

	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(qp_modify(far.qp, &attr, masks[0], NULL), 0);
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = ALIAS;
	attr.rq_psn = LINK_PSN;
	assert_int_equal(qp_modify(far.qp, &attr, masks[1], &link.path), 0);
}

static int set_up(void **state)
{
	struct path_attr path = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};

	qp_rig_set_up(state);
	assert_int_equal(ooo_pool_create(64, &rig.ooo), 0);
	memcpy(path.sgid, A->gid, sizeof(path.sgid));
	memcpy(path.dgid, A->gid, sizeof(path.dgid));
	link = (struct pass_link){.qpn = STAND_IN, .alias = ALIAS, .psn = psn_make(LINK_PSN)};
	assert_int_equal(path_init(&link.path, &path), 0);
	find_says = 0;
	passed = lose_passed = lose_answer = lose_response = 0;
	assert_int_equal(srq_create(CQE, 1, rig.fixture.pd, &near), 0);
	assert_int_equal(srq_create(CQE, 1, rig.fixture.pd, &far.srq), 0);
	near->cq = A->recv_cq;
	assert_int_equal(cq_create(CQE, NULL, NULL, NULL, &far.cq), 0);
	far.srq->cq = far.cq;
	catcher_set_up(&far.catcher);
	qp_destroy(A->qp);
	create(&A->qp, FIXTURE_QPN, true);
	create(&far.qp, STAND_IN, false);
	end_recreate(B, IBV_QPT_XRC_SEND, NULL);
	connect_stand_in();
	for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTR; s++)
		assert_int_equal(end_modify(A, (enum ibv_qp_state)s), 0);
	end_raise(B, IBV_QPS_RTS);
	return 0;
}

static int tear_down(void **state)
{
	qp_retire(A->qp);
	qp_retire(far.qp);
	qp_destroy(far.qp);
	assert_int_equal(srq_destroy(far.srq), 0);
	assert_int_equal(cq_destroy(far.cq), 0);
	catcher_tear_down(&far.catcher);
	qp_destroy(A->qp);
	A->qp = NULL;
	assert_int_equal(srq_destroy(near), 0);
	return qp_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static bool is_lost(unsigned int *lose)
{
	return *lose > 0 && --*lose == 0;
}

static void deliver(struct catcher *catcher)
{
	for (unsigned int i = 0; i < catcher->count; i++) {
		const struct packet *packet = &catcher->caught[i].packet;

		if (packet->dest_qpn == STAND_IN) {
			passed++;
			if (!is_lost(&lose_passed))
				qp_receive(far.qp, packet, rig.now_ns);
		} else if (packet->dest_qpn == FIXTURE_PEER_QPN) {
			if (!is_lost(&lose_response))
				qp_receive(B->qp, packet, rig.now_ns);
		} else if (packet->dest_qpn != ALIAS || !is_lost(&lose_answer)) {
			qp_receive(A->qp, packet, rig.now_ns);
		}
	}
	catcher_clear(catcher);
}

/* Return a copy of a READ request that outlives its frame. */
static struct packet kept(struct catcher *catcher)
{
	static uint8_t mac[6];
	struct packet packet = *catcher_at(catcher, 0);

	memcpy(mac, packet.src_mac, sizeof(mac));
	packet.src_mac = mac;
	return packet;
}

static unsigned int poll_once(struct qp *qp, struct catcher *catcher)
{
	unsigned int moved;

	while (qp_run(qp, rig.now_ns, &catcher->sink, 64))
		;
	moved = catcher->count;
	deliver(catcher);
	return moved;
}

static void run(void)
{
	while (poll_once(B->qp, &B->catcher) + poll_once(A->qp, &A->catcher) +
		       poll_once(far.qp, &far.catcher) >
	       0)
		;
}

/* The requester's timers run out until something has completed. */
static void run_with_losses(void)
{
	run();
	for (int i = 0; i < 20 && qp_deadline_ns(B->qp) != UINT64_MAX; i++) {
		end_time_out(B);
		run();
	}
}

static void post(struct srq *srq, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = region_sge(&A->memory, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
}

static void send_to(uint32_t srqn, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset,
		    uint32_t length, size_t remote)
{
	struct ibv_sge sge = region_sge(&B->memory, offset, length);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = length > 0,
				 .imm_data = 0x1234},
			   *bad = NULL;

	wr.qp_type.xrc.remote_srqn = srqn;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = region_iova(&A->memory, remote);
		wr.wr.atomic.rkey = A->memory.mr->key;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = region_iova(&A->memory, remote);
		wr.wr.rdma.rkey = A->memory.mr->key;
	}
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
}

static struct ibv_wc arrived(uint64_t wr_id, enum ibv_wc_status status)
{
	return fixture_completion(far.cq, wr_id, status);
}

TEST(pass__a_message_for_the_other_process_arrives_there)
{
	struct ibv_wc wc;

	post(near, 1, 0, 16 * MTU);
	post(far.srq, 2, 0, 16 * MTU);
	send_to(FAR, 3, IBV_WR_SEND_WITH_IMM, 0, 5 * MTU + 3, 0);
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	wc = arrived(2, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, FIXTURE_QPN);
	assert_int_equal(wc.byte_len, 5 * MTU + 3);
	assert_int_equal(wc.imm_data, 0x1234);
	region_expect_pattern(&A->memory, 5 * MTU + 3, MTU, SEED);
	assert_memory_equal(A->memory.bytes, B->memory.bytes, 5 * MTU + 3);
	end_idle(A);
	assert_int_equal(passed, 6);
	assert_int_equal(rig_counter(COUNTER_xrc_passed), 6);
}

TEST(pass__messages_of_one_queue_pair_go_where_each_says)
{
	for (uint64_t i = 0; i < 8; i++)
		post(i % 2 ? near : far.srq, i, i * MTU, MTU);
	for (uint64_t i = 0; i < 8; i++)
		send_to(i % 2 ? NEAR : FAR, 10 + i, IBV_WR_SEND, i * MTU, 100, 0);
	run();
	for (uint64_t i = 0; i < 8; i++) {
		end_sent(B, 10 + i, IBV_WC_SUCCESS);
		if (i % 2)
			end_received(A, i, IBV_WC_SUCCESS);
		else
			arrived(i, IBV_WC_SUCCESS);
		assert_memory_equal(A->memory.bytes + i * MTU, B->memory.bytes + i * MTU, 100);
	}
}

TEST(pass__a_write_with_immediate_data_tells_its_whole_length)
{
	post(far.srq, 2, 0, 0);
	send_to(FAR, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 3 * MTU + 1, 7 * MTU);
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	assert_int_equal(arrived(2, IBV_WC_SUCCESS).byte_len, 3 * MTU + 1);
	assert_memory_equal(A->memory.bytes + 7 * MTU, B->memory.bytes, 3 * MTU + 1);
}

TEST(pass__an_atomic_is_executed_once_and_answered_again)
{
	uint64_t value = 40, got;

	memcpy(A->memory.bytes + 64, &value, sizeof(value));
	lose_answer = 1;
	send_to(FAR, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, 64);
	run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	memcpy(&got, B->memory.bytes + 8, sizeof(got));
	assert_int_equal(got, 40);
	memcpy(&value, A->memory.bytes + 64, sizeof(value));
	assert_int_equal(value, 45);
	assert_int_equal(passed, 2);
}

TEST(pass__a_read_comes_from_the_other_process)
{
	post(far.srq, 2, 0, MTU);
	send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, 6 * MTU + 9, MTU);
	send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
	assert_memory_equal(B->memory.bytes + 20 * MTU, A->memory.bytes + MTU, 6 * MTU + 9);
}

TEST(pass__a_read_survives_losses)
{
	for (unsigned int i = 1; i < 5; i++) {
		lose_passed = i;
		send_to(FAR, i, IBV_WR_RDMA_READ, 20 * MTU, 4 * MTU, i * MTU);
		run_with_losses();
		end_sent(B, i, IBV_WC_SUCCESS);
		assert_memory_equal(B->memory.bytes + 20 * MTU, A->memory.bytes + i * MTU, 4 * MTU);
		lose_answer = i;
		send_to(FAR, 10 + i, IBV_WR_RDMA_READ, 30 * MTU, 4 * MTU, 2 * i * MTU);
		run_with_losses();
		end_sent(B, 10 + i, IBV_WC_SUCCESS);
		assert_memory_equal(B->memory.bytes + 30 * MTU, A->memory.bytes + 2 * i * MTU,
				    4 * MTU);
	}
}

TEST(pass__a_lost_request_or_answer_is_passed_again)
{
	for (uint64_t i = 1; i < 5; i++) {
		post(far.srq, i, 0, 4 * MTU);
		lose_passed = (unsigned int)i;
		send_to(FAR, i, IBV_WR_SEND, i * MTU, 4 * MTU, 0);
		run_with_losses();
		end_sent(B, i, IBV_WC_SUCCESS);
		arrived(i, IBV_WC_SUCCESS);
		assert_memory_equal(A->memory.bytes, B->memory.bytes + i * MTU, 4 * MTU);
		post(far.srq, 10 + i, 0, 4 * MTU);
		lose_answer = (unsigned int)i;
		send_to(FAR, 10 + i, IBV_WR_SEND, 2 * i * MTU, 4 * MTU, 0);
		run_with_losses();
		end_sent(B, 10 + i, IBV_WC_SUCCESS);
		arrived(10 + i, IBV_WC_SUCCESS);
		fixture_no_completion(far.cq);
		assert_memory_equal(A->memory.bytes, B->memory.bytes + 2 * i * MTU, 4 * MTU);
	}
}

TEST(pass__an_empty_queue_there_is_an_rnr_nak)
{
	send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	run();
	assert_int_equal(rig_counter(COUNTER_rnr_nak_retry_err), 1);
	post(far.srq, 2, 0, 8);
	run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
}

TEST(pass__memory_that_is_nobodys_there_is_an_access_error)
{
	struct ibv_sge sge = region_sge(&B->memory, 0, MTU);
	struct ibv_send_wr wr = {.wr_id = 3,
				 .opcode = IBV_WR_RDMA_READ,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	wr.qp_type.xrc.remote_srqn = FAR;
	wr.wr.rdma.remote_addr = 4096;
	wr.wr.rdma.rkey = FIXTURE_NOBODY;
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	run();
	end_sent(B, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_ERR);
}

/* The network loses all but some packets that the requester has just sent. */
static void deliver_only(unsigned int count)
{
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	assert_true(count < B->catcher.count);
	for (unsigned int i = 0; i < count; i++)
		qp_receive(A->qp, catcher_at(&B->catcher, i), rig.now_ns);
	catcher_clear(&B->catcher);
}

/* The READ's response is lost, and some of the message behind it has arrived. */
TEST(pass__a_read_is_answered_again_within_a_message)
{
	post(far.srq, 2, 0, 8 * MTU);
	send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, 2 * MTU, 40 * MTU);
	send_to(FAR, 4, IBV_WR_SEND, 0, 8 * MTU, 0);
	deliver_only(4);
	lose_response = 1;
	while (poll_once(A->qp, &A->catcher) + poll_once(far.qp, &far.catcher) > 0)
		;
	assert_int_equal(lose_response, 0);
	assert_int_equal(passed, 5);
	run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
	assert_memory_equal(B->memory.bytes + 20 * MTU, A->memory.bytes + 40 * MTU, 2 * MTU);
	assert_memory_equal(A->memory.bytes, B->memory.bytes, 8 * MTU);
}

/* The requester may have got the response, and the program there has deregistered the memory. */
TEST(pass__a_read_that_cannot_be_answered_again_is_no_fault)
{
	lose_response = 1;
	send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	run();
	end_idle(B);
	region_deregister(&A->memory);
	run_with_losses();
	end_sent(B, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTR);
	assert_int_equal(qp_state(far.qp), IBV_QPS_RTR);
}

/* A message was passed on twice. The stand-in had no receive request at first, and then one. */
TEST(pass__a_read_is_answered_again_before_a_message_that_was_not_ready)
{
	struct packet packet, read;

	lose_response = 1;
	send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	read = kept(&B->catcher);
	run();
	send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	poll_once(B->qp, &B->catcher);
	while (qp_run(A->qp, rig.now_ns, &A->catcher.sink, 64))
		;
	assert_int_equal(A->catcher.count, 1);
	packet = *catcher_at(&A->catcher, 0);
	for (int i = 0; i < 2; i++) {
		qp_receive(far.qp, &packet, rig.now_ns);
		while (qp_run(far.qp, rig.now_ns, &far.catcher.sink, 64))
			;
		if (i == 0)
			post(far.srq, 2, 0, 8);
	}
	catcher_clear(&A->catcher);
	deliver(&far.catcher);
	lose_response = 1;
	poll_once(A->qp, &A->catcher);
	qp_receive(A->qp, &read, rig.now_ns);
	while (poll_once(A->qp, &A->catcher) + poll_once(far.qp, &far.catcher) > 0)
		;
	run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
	fixture_no_completion(far.cq);
}

/* Its key is checked in the domain of its shared receive queue, which has ended. */
TEST(pass__a_read_of_a_queue_that_has_ended_is_refused)
{
	struct srq *ended = far.srq;

	lose_response = 1;
	send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	run();
	qp_forget_srq(far.qp, ended, true);
	far.srq = NULL;
	run_with_losses();
	far.srq = ended;
	end_sent(B, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTR);
}

/* The requester sends the READ again, but not the message that is behind it. */
TEST(pass__a_lost_message_does_not_hold_a_read_back)
{
	struct packet packet;

	post(far.srq, 2, 0, 8);
	lose_response = 1;
	lose_passed = 2;
	send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	packet = kept(&B->catcher);
	send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	run();
	assert_int_equal(lose_passed, 0);
	end_idle(B);
	qp_receive(A->qp, &packet, rig.now_ns);
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
}

TEST(pass__a_number_that_nobody_has_is_refused)
{
	post(far.srq, 1, 0, 8);
	post(near, 2, 0, 8);
	send_to(NOBODYS, 3, IBV_WR_SEND, 0, 8, 0);
	run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
	fixture_no_completion(far.cq);
	end_idle(A);
}

TEST(pass__a_request_waits_for_its_link)
{
	find_says = -EAGAIN;
	post(far.srq, 2, 0, 8);
	send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	run();
	fixture_no_completion(far.cq);
	end_idle(B);
	find_says = 0;
	qp_look_again(A->qp);
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
}

TEST(pass__a_process_that_has_ended_is_an_error)
{
	post(far.srq, 2, 0, 8);
	lose_passed = 1;
	send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	run();
	end_idle(B);
	qp_forget_link(A->qp, &link);
	run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
	fixture_no_completion(far.cq);
}

/* Somebody else must not answer for the stand-in, nor use the number to which it answers. */
TEST(pass__only_the_stand_in_answers)
{
	struct packet packet;

	post(far.srq, 2, 0, 8);
	send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	poll_once(B->qp, &B->catcher);
	poll_once(A->qp, &A->catcher);
	while (qp_run(far.qp, rig.now_ns, &far.catcher.sink, 64))
		;
	packet = *catcher_at(&far.catcher, 0);
	packet.sgid[15] ^= 1;
	qp_receive(A->qp, &packet, rig.now_ns);
	packet.sgid[15] ^= 1;
	packet.dest_qpn = FIXTURE_QPN;
	qp_receive(A->qp, &packet, rig.now_ns);
	packet.dest_qpn = ALIAS;
	packet.psn = psn_add(packet.psn, 1);
	qp_receive(A->qp, &packet, rig.now_ns);
	poll_once(A->qp, &A->catcher);
	end_idle(B);
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	send_to(NEAR, 4, IBV_WR_SEND, 0, 8, 0);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	packet = *catcher_at(&B->catcher, 0);
	packet.dest_qpn = ALIAS;
	post(near, 1, 0, 8);
	qp_receive(A->qp, &packet, rig.now_ns);
	end_idle(A);
}

TEST(pass__a_message_to_two_processes_is_refused)
{
	struct packet packet;

	post(near, 1, 0, 4 * MTU);
	post(far.srq, 2, 0, 4 * MTU);
	send_to(FAR, 3, IBV_WR_SEND, 0, 2 * MTU, 0);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	qp_receive(A->qp, catcher_at(&B->catcher, 0), rig.now_ns);
	packet = *catcher_at(&B->catcher, 1);
	packet.xrc_srqn = NEAR;
	qp_receive(A->qp, &packet, rig.now_ns);
	catcher_clear(&B->catcher);
	run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
	end_idle(A);
}

/* The requester retries RNR NAKs for ever, but not a request without an answer. */
TEST(pass__a_queue_there_that_stays_empty_is_an_rnr_nak_each_time)
{
	send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	for (uint64_t i = 1; i <= RETRIES; i++) {
		run();
		assert_int_equal(rig_counter(COUNTER_rnr_nak_retry_err), i);
		end_time_out(B);
	}
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
	post(far.srq, 2, 0, 8);
	run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
}

/* While the link was made, the requester asked again and was told to wait. What it sends then is
 * kept again until the answer comes. */
TEST(pass__a_long_wait_for_a_link_does_not_delay_the_answer)
{
	find_says = -EAGAIN;
	post(far.srq, 2, 0, 8);
	send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	run();
	for (int i = 0; i < 3; i++) {
		end_time_out(B);
		run();
	}
	assert_true(rig_counter(COUNTER_rnr_nak_sent) > 0);
	find_says = 0;
	qp_look_again(A->qp);
	run();
	end_time_out(B);
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
}

/* The room for an answer is reserved by the opcode of the request that was passed on. */
TEST(pass__another_request_with_the_same_psn_is_refused)
{
	struct packet packet;

	post(far.srq, 2, 0, 8);
	send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	packet = *catcher_at(&B->catcher, 0);
	packet.opcode = OPCODE_XRC | OPCODE_FETCH_ADD;
	packet.op = opcode_info(packet.opcode);
	packet.payload_len = 0;
	packet.iova = region_iova(&A->memory, 0);
	packet.rkey = A->memory.mr->key;
	qp_receive(A->qp, catcher_at(&B->catcher, 0), rig.now_ns);
	qp_receive(A->qp, &packet, rig.now_ns);
	catcher_clear(&B->catcher);
	assert_int_equal(qp_state(A->qp), IBV_QPS_ERR);
	run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
}

/* The port is full when the last response of a READ could be sent. */
TEST(pass__a_request_behind_a_read_goes_on_when_the_port_has_room)
{
	post(far.srq, 2, 0, MTU);
	send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	poll_once(B->qp, &B->catcher);
	poll_once(A->qp, &A->catcher);
	while (qp_run(far.qp, rig.now_ns, &far.catcher.sink, 64))
		;
	deliver(&far.catcher);
	assert_true(qp_run(A->qp, rig.now_ns, &A->catcher.sink, 0));
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
}

static void note(struct qp *qp, void *arg)
{
	(void)arg;
	assert_ptr_equal(qp, A->qp);
}

/* No timer and no further packet is needed. */
TEST(pass__a_request_behind_one_that_waits_for_its_page_goes_on)
{
	away_begin(rig.fixture.pd);
	A->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	away_go(A->memory.bytes, MTU);
	post(near, 1, 0, 8);
	post(far.srq, 2, 2 * MTU, 8);
	send_to(NEAR, 3, IBV_WR_SEND, 0, 8, 0);
	send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	run();
	assert_int_equal(passed, 0);
	away_come();
	qp_wake_waiting(&rig.waiting, note, NULL);
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
}

/* Pages come for whatever queue pair; the requester has not sent its request again. */
TEST(pass__a_request_in_flight_is_not_passed_again_when_a_page_comes)
{
	post(far.srq, 2, 0, 8);
	send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	poll_once(B->qp, &B->catcher);
	for (unsigned int i = 1; i <= 2; i++) {
		poll_once(A->qp, &A->catcher);
		assert_int_equal(passed, i);
		qp_wake_waiting(&rig.waiting, note, NULL);
		poll_once(A->qp, &A->catcher);
		assert_int_equal(passed, i);
		poll_once(far.qp, &far.catcher);
	}
	run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	arrived(2, IBV_WC_SUCCESS);
}
