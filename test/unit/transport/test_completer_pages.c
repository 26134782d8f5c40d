/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/requester.c and completer.c: requests whose own pages are not in memory.
 */
#include "away.h"
#include "completer_rig.h"
#include "test.h"

#define READ_LEN (3 * MTU)

static int set_up(void **state)
{
	completer_rig_set_up(state);
	away_begin(rig.fixture.pd);
	rig.memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	return 0;
}

TEST_FIXTURE(set_up, completer_rig_tear_down);

static uint64_t waits(void)
{
	return counters_get(&rig.fixture.counters, COUNTER_page_waits);
}

/* Make the memory of a message absent, from this packet on. */
static void go_from(uint32_t packet)
{
	away_go(rig.memory.bytes + packet * MTU, MEMORY - packet * MTU);
}

static void respond(uint8_t opcode, uint32_t psn, uint32_t len)
{
	EXPECT_TAKEN(opcode, psn, .syndrome = ACK, .len = len);
}

static void resume(void)
{
	completer_resume(&rig.completer, NOW_NS);
}

TEST(requester_send__waits_at_an_absent_page)
{
	go_from(1);
	post(1, IBV_WR_RDMA_WRITE, READ_LEN);
	assert_int_equal(send_all(), 1);
	assert_int_equal(send_all(), 0);
	assert_true(rig.requester.absent);
	assert_int_equal(waits(), 1);
	/* The rest of the list's entry is likely to be needed, and no byte behind it. */
	assert_int_equal(away.touch.now, MTU);
	assert_int_equal(away.touch.ahead, MTU);
	away_come();
	assert_int_equal(send_all(), 2);
	assert_false(rig.requester.absent);
	acknowledge(2);
	expect_success(1);
}

/* Nothing is sent behind the packet, so no later packet would ask for an acknowledgement. */
TEST(requester_send__asks_for_an_acknowledgement_before_an_absent_page)
{
	go_from(1);
	post(1, IBV_WR_RDMA_WRITE, READ_LEN);
	assert_int_equal(send_all(), 1);
	/* Swift times the first packet. */
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->ack_req, fixture_cc() == CC_SWIFT);
	assert_true(loss_on_nak_ahead(&rig.loss, NOW_NS));
	assert_int_equal(send_all(), 1);
	assert_true(catcher_at(&rig.fixture.catcher, 0)->ack_req);
}

TEST(requester_send__retransmissions_wait_at_an_absent_page)
{
	post(1, IBV_WR_RDMA_WRITE, READ_LEN);
	assert_int_equal(send_all(), 3);
	go_from(0);
	nak(0);
	assert_int_equal(send_all(), 0);
	assert_true(rig.requester.absent);
	expect_flight(0, 3);
	away_come();
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_FIRST, FIRST_PSN);
}

/* The request is repeated although no timer runs. */
TEST(completer_resume__asks_again_for_what_an_absent_page_had_dropped)
{
	rig.loss.recovery.timeout_ns = 0;
	post(1, IBV_WR_RDMA_READ, READ_LEN);
	assert_int_equal(send_all(), 1);
	go_from(1);
	respond(OPCODE_READ_RESPONSE_FIRST, 0, MTU);
	respond(OPCODE_READ_RESPONSE_MIDDLE, 1, MTU);
	assert_true(rig.completer.page_absent);
	respond(OPCODE_READ_RESPONSE_LAST, 2, MTU);
	expect_none();
	expect_flight(1, 1);
	assert_true(recovery_deadline_ns(&rig.loss.recovery) == RECOVERY_NEVER);
	assert_int_equal(waits(), 1);
	away_come();
	resume();
	assert_false(rig.completer.page_absent);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 2 * MTU);
	respond(OPCODE_READ_RESPONSE_FIRST, 1, MTU);
	respond(OPCODE_READ_RESPONSE_LAST, 2, MTU);
	expect_success(1);
	for (uint32_t psn = 0; psn < 3; psn++)
		expect_stored(psn * MTU, psn, MTU);
}

/* A page that becomes present wakes all queue pairs that wait, whichever page it is. */
TEST(completer_resume__waits_on_if_another_page_has_come)
{
	post(1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	assert_int_equal(send_all(), 1);
	go_from(0);
	respond(OPCODE_ATOMIC_ACKNOWLEDGE, 0, 0);
	assert_true(rig.completer.page_absent);
	resume();
	assert_true(rig.completer.page_absent);
	assert_true(recovery_deadline_ns(&rig.loss.recovery) == RECOVERY_NEVER);
	away_come();
	resume();
	assert_false(rig.completer.page_absent);
	/* From now on a lost answer is noticed. */
	assert_true(recovery_deadline_ns(&rig.loss.recovery) != RECOVERY_NEVER);
	assert_int_equal(send_all(), 1);
	respond(OPCODE_ATOMIC_ACKNOWLEDGE, 0, 0);
	expect_success(1);
}

TEST(completer_resume__of_memory_that_is_gone_asks_again_and_finds_out)
{
	post(1, IBV_WR_RDMA_READ, MTU);
	assert_int_equal(send_all(), 1);
	go_from(0);
	respond(OPCODE_READ_RESPONSE_ONLY, 0, MTU);
	region_deregister(&rig.memory);
	resume();
	assert_false(rig.completer.page_absent);
	assert_int_equal(send_all(), 1);
	EXPECT_FAULT(FAULT_SEND_PROTECTION, OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK,
		     .len = MTU);
}
