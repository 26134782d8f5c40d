/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of how long a queue pair keeps requests that came out of order (lib/qp/run.c). */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#include "../../../lib/qp/qp_internal.h"
#include "qp_rig.h"
#include "test.h"
#include "transport/ooo.h"
#include "transport/responder.h"
#include "wire/headers.h"

#define LEN   8u
#define FIRST 10  /* wr_id of the first receive request */
#define TIMES 20u /* at which a PSN is guessed */
#define NEAR  32  /* of these PSNs, each is guessed, and then one in FAR */
#define FAR   36

/* A packet may still be kept. */
static int tear_down(void **state)
{
	end_modify(B, IBV_QPS_RESET);
	return qp_rig_tear_down(state);
}

static int set_up(void **state)
{
	qp_rig_set_up(state);
	assert_int_equal(ooo_pool_create(64, &rig.ooo), 0);
	end_recreate(A, IBV_QPT_RC, NULL);
	end_recreate(B, IBV_QPT_RC, NULL);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* B receives a SEND that A has not sent, `ahead` packets behind A's first one. */
static void plant(uint32_t ahead)
{
	static const uint8_t bytes[LEN] = "forged";
	const struct packet_fields fields = {.opcode = OPCODE_RC | OPCODE_SEND_ONLY,
					     .psn = A->attr.sq_psn + ahead,
					     .payload = bytes,
					     .len = LEN};
	struct packet packet = *fixture_packet(&rig.fixture, &fields);

	memcpy(packet.sgid, A->gid, sizeof(packet.sgid));
	memcpy(packet.dgid, B->gid, sizeof(packet.dgid));
	qp_receive(B->qp, &packet, rig.now_ns);
}

static void post_receives(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(end_receive(B, FIRST + i, i * LEN, LEN), 0);
}

/* A sends its message number `i`. */
static void send_one(unsigned int i)
{
	memset(A->memory.bytes, (int)i + 1, LEN);
	assert_int_equal(end_send(A, i, IBV_WR_SEND, 0, LEN, 0), 0);
	rig_run();
	end_sent(A, i, IBV_WC_SUCCESS);
}

static void expect_message(unsigned int i)
{
	end_received(B, FIRST + i, IBV_WC_SUCCESS);
	for (unsigned int k = 0; k < LEN; k++)
		assert_int_equal(B->memory.bytes[i * LEN + k], i + 1);
}

/* An idle peer has nothing in flight: what is ahead is not from it. */
TEST(qp_receive__a_packet_ahead_of_an_idle_peer_is_not_executed)
{
	rig_connect();
	post_receives(4);
	for (unsigned int i = 0; i < 3; i++) {
		plant(i + 1);
		rig.now_ns += RESPONDER_KEEP_NS + 1;
		send_one(i);
		expect_message(i);
		end_idle(B);
	}
	assert_int_equal(rig_counter(COUNTER_out_of_order_late), 3);
}

/* Requests come in order, and no gap is known any more, but the packet is still kept. */
TEST(qp_receive__a_packet_far_ahead_is_forgotten_without_a_gap)
{
	rig_connect();
	post_receives(4);
	plant(4);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(rig_counter(COUNTER_out_of_order_late), 0);
		if (i == 2)
			rig.now_ns += RESPONDER_KEEP_NS + 1;
		send_one(i);
		expect_message(i);
	}
	assert_int_equal(rig_counter(COUNTER_out_of_order_late), 1);
}

/* Sweeps over all PSNs leave neighbours. They would be evidence of each other. */
TEST(qp_receive__packets_of_many_sweeps_are_not_executed)
{
	rig_connect();
	post_receives(8);
	for (uint32_t sweep = 0; sweep < 40; sweep++) {
		plant(5 + sweep);
		rig_run();
		rig.now_ns += RESPONDER_KEEP_NS + 1;
	}
	for (unsigned int i = 0; i < 5; i++) {
		send_one(i);
		expect_message(i);
	}
	/* A's next packet is awaited, and only one behind it is kept. */
	plant(44);
	rig_run();
	send_one(5);
	expect_message(5);
	end_idle(B);
}

/* Take the messages that B has received. Return how many of them were forged. */
static unsigned int take_messages(void)
{
	static const uint8_t bytes[LEN] = "forged";
	unsigned int forged = 0;
	struct ibv_wc wc;

	while (cq_poll(B->recv_cq, 1, &wc) == 1) {
		const size_t at = (wc.wr_id - FIRST) * LEN;

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		forged += memcmp(B->memory.bytes + at, bytes, LEN) == 0;
		assert_int_equal(end_receive(B, wc.wr_id, at, LEN), 0);
	}
	return forged;
}

/* A sends a message. If a forged one behind it was executed, too, then B acknowledges that one, and
 * A believes only the next answer. */
static void send_beside_forger(void)
{
	struct ibv_wc wc;

	assert_int_equal(end_send(A, 0, IBV_WR_SEND, 0, LEN, 0), 0);
	rig_run();
	while (cq_poll(A->send_cq, 1, &wc) == 1)
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	A->attr.sq_psn++;
}

/* Let A send a message in each period, and guess PSNs that may be kept, at TIMES times between two
 * messages. Return how many guesses were executed. */
static unsigned int guess(uint64_t period_ns)
{
	const unsigned int after = (unsigned int)(RESPONDER_KEEP_NS / period_ns) + 2;
	unsigned int forged = 0;

	for (uint32_t ahead = 0; ahead <= OOO_REACH; ahead += ahead < NEAR ? 1 : FAR) {
		for (unsigned int time = 0; time < TIMES; time++) {
			const uint64_t begun_ns = rig.now_ns;

			rig.now_ns += period_ns * (2 * time + 1) / (2 * TIMES);
			plant(ahead);
			rig_run();
			for (unsigned int i = 1; i <= after; i++) {
				rig.now_ns = RTE_MAX(rig.now_ns, begun_ns + i * period_ns);
				send_beside_forger();
				forged += take_messages();
			}
			/* What is kept now is too old. */
			rig.now_ns += RESPONDER_KEEP_NS + 1;
			send_beside_forger();
			forged += take_messages();
		}
	}
	return forged;
}

/* The next PSN is a hit, one in 2^24. How many others would be hits depends on the peer. */
TEST(qp_receive__a_guess_is_worth_two_at_most)
{
	/* A does not give up meanwhile. */
	A->attr.timeout = 0;
	rig_connect();
	post_receives(WRS);
	assert_int_equal(guess(10 * RESPONDER_KEEP_NS), TIMES + TIMES / 10);
	assert_int_equal(guess(2 * RESPONDER_KEEP_NS), TIMES + TIMES / 2);
	assert_in_range(guess(RESPONDER_KEEP_NS / 2), TIMES, 2 * TIMES);
	assert_in_range(guess(RESPONDER_KEEP_NS / 20), TIMES, 2 * TIMES);
}

/* A packet that is late by less than that costs no retransmission. */
TEST(qp_receive__a_late_packet_is_executed_with_those_behind_it)
{
	struct packet late;

	rig_connect();
	post_receives(3);
	for (unsigned int i = 0; i < 3; i++) {
		memset(A->memory.bytes + i * LEN, (int)i + 1, LEN);
		assert_int_equal(end_send(A, i, IBV_WR_SEND, i * LEN, LEN, 0), 0);
	}
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 3);
	late = *catcher_at(&A->catcher, 0);
	qp_receive(B->qp, catcher_at(&A->catcher, 1), rig.now_ns);
	qp_receive(B->qp, catcher_at(&A->catcher, 2), rig.now_ns + 1);
	qp_receive(B->qp, &late, rig.now_ns + RESPONDER_KEEP_NS);
	for (unsigned int i = 0; i < 3; i++)
		expect_message(i);
	assert_int_equal(rig_counter(COUNTER_out_of_order_late), 0);
}

/* If it is later, the packets behind it are sent again. */
TEST(qp_receive__what_was_dropped_too_early_is_sent_again)
{
	rig_connect();
	post_receives(3);
	rig.lose[0] = 1;
	for (unsigned int i = 0; i < 3; i++) {
		memset(A->memory.bytes + i * LEN, (int)i + 1, LEN);
		assert_int_equal(end_send(A, i, IBV_WR_SEND, i * LEN, LEN, 0), 0);
	}
	end_run(A, 9);
	end_deliver(A);
	rig.now_ns += RESPONDER_KEEP_NS + 1;
	rig_run();
	while (qp_deadline_ns(A->qp) != UINT64_MAX) {
		end_time_out(A);
		rig_run();
	}
	for (unsigned int i = 0; i < 3; i++) {
		end_sent(A, i, IBV_WC_SUCCESS);
		expect_message(i);
	}
	assert_int_equal(rig_counter(COUNTER_out_of_order_late), 2);
}

TEST(qp_receive__nothing_slows_it_down_when_nothing_is_kept_any_more)
{
	rig_connect();
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(end_send(A, i, IBV_WR_RDMA_WRITE, 0, LEN, 0), 0);
	rig.lose[0] = 1;
	end_run(A, 9);
	end_deliver(A);
	assert_true(B->qp->unusual & QP_KEEPS);
	end_time_out(A);
	rig_run();
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, LEN, 0), 0);
	rig_run();
	end_sent(A, 0, IBV_WC_SUCCESS);
	assert_int_equal(B->qp->unusual, 0);
}
