/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/requester.c: requests that cannot be sent. */
#include "requester_rig.h"

TEST_FIXTURE(requester_rig_set_up, requester_rig_tear_down);

TEST(requester_send__a_bad_key_fails_at_its_turn)
{
	post(IBV_WR_SEND, 8, 0);
	post_bad();
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 1);
	assert_false(requester_fault_due(&rig.requester));
	/* The packets before it are still sent again, and none behind it. */
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_SEND_ONLY, 0);
	assert_false(requester_fault_due(&rig.requester));
	acknowledge(1, 1);
	assert_int_equal(send_all(), 0);
	assert_true(requester_fault_due(&rig.requester));
	assert_int_equal(rig.requester.fault, FAULT_SEND_PROTECTION);
}

TEST(requester_send__a_bad_key_in_the_second_packet)
{
	struct ibv_sge sge[] = {region_sge(&rig.memory, 0, MTU + 8), region_sge(&rig.memory, 8, 8)};

	sge[1].lkey = FIXTURE_NOBODY;
	post(IBV_WR_SEND, 2 * MTU, 0);
	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, sge, 2);
	assert_int_equal(send_all(), 3);
	expect_packet(2, OPCODE_SEND_FIRST, 2);
	assert_false(requester_fault_due(&rig.requester));
	acknowledge(1, 0);
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_SEND_LAST, 1);
	expect_packet(1, OPCODE_SEND_FIRST, 2);
	assert_false(requester_fault_due(&rig.requester));
	acknowledge(2, 1);
	send_all();
	assert_true(requester_fault_due(&rig.requester));
}

TEST(requester_send__a_fault_that_an_acknowledgement_overtook_is_none)
{
	struct region other;
	struct ibv_sge sge;

	region_set_up(&other, rig.fixture.pd, MTU, 0, 8);
	sge = region_sge(&other, 0, 8);
	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, &sge, 1);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 2);
	/* The application deregisters too early, which would show only if the acknowledgement were
	 * lost. */
	region_deregister(&other);
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 0);
	acknowledge(2, 2);
	assert_int_equal(send_all(), 0);
	assert_false(requester_fault_due(&rig.requester));
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_SEND_ONLY, 2);
	region_tear_down(&other);
}

TEST(requester_send__a_fault_is_judged_anew_each_poll)
{
	struct region other;
	struct ibv_sge sge[3];

	region_set_up(&other, rig.fixture.pd, MTU, 0, 8);
	sge[0] = region_sge(&rig.memory, 0, MTU);
	sge[1] = region_sge(&other, 0, MTU);
	sge[2] = region_sge(&rig.memory, 2 * MTU, MTU);
	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, sge, 3);
	assert_int_equal(send_all(), 3);
	region_deregister(&other);
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 1);
	/* The packet that cannot be sent again had arrived. */
	acknowledge(2, 0);
	assert_int_equal(send_all(), 1);
	expect_payload(0, 2 * MTU, MTU);
	assert_false(requester_fault_due(&rig.requester));
	region_tear_down(&other);
}

TEST(requester_send__a_faulty_requester_still_drains)
{
	post(IBV_WR_SEND, 8, 0);
	post_bad();
	assert_int_equal(send_all(), 1);
	rig.requester.state = REQUESTER_DRAINING;
	acknowledge(1, 1);
	send_all();
	assert_true(requester_fault_due(&rig.requester));
}

TEST(requester_reset__forgets_the_fault)
{
	post_bad();
	assert_int_equal(send_all(), 0);
	assert_true(requester_fault_due(&rig.requester));
	requester_reset(&rig.requester, REQUESTER_STOPPED);
	assert_false(requester_fault_due(&rig.requester));
}
