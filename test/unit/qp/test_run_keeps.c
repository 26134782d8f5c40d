/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of how long a queue pair keeps requests that came out of order (lib/qp/run.c). */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "qp_rig.h"
#include "test.h"
#include "transport/responder.h"
#include "wire/headers.h"

#define LEN 8u

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
		assert_int_equal(end_receive(B, 10 + i, i * LEN, LEN), 0);
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
	end_received(B, 10 + i, IBV_WC_SUCCESS);
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
