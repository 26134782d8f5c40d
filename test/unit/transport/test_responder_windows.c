/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder.c: SENDs that invalidate the window of READs before them. */

#include "mem/mw.h"
#include "responder_rig.h"
#include "test.h"

static struct region bindable;
static struct mw *window; /* of type 2, bound to it for reading */
static struct mw_list bound;

static int set_up(void **state)
{
	struct mw_binding binding = {.length = MEMORY, .access = IBV_ACCESS_REMOTE_READ};

	responder_rig_set_up(state);
	region_set_up(&bindable, rig.fixture.pd, MEMORY,
		      REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, SEED);
	assert_int_equal(mw_create(rig.fixture.pd, IBV_MW_TYPE_2, &window), 0);
	binding.window = window->view.key;
	binding.rkey = ibv_inc_rkey(window->view.key);
	binding.lkey = bindable.mr->key;
	binding.addr = region_iova(&bindable, 0);
	assert_int_equal(mw_bind(rig.fixture.pd, rig.responder.qpn, &bound, &binding), 0);
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	return 0;
}

static int tear_down(void **state)
{
	mw_destroy(window);
	region_tear_down(&bindable);
	return responder_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

#define BY_WINDOW .iova = region_iova(&bindable, 0), .rkey = window->view.key
#define INVALIDATE(number)                                                             \
	EXPECT_TAKEN(OPCODE_SEND_ONLY_INV, number, .rkey = window->view.key, .len = 8, \
		     .ack_req = true)

TEST(responder__an_invalidation_waits_for_the_reads_before_it)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, BY_WINDOW, .dma_length = 3 * MTU);
	INVALIDATE(3);
	/* Nothing of it is executed, because a program that sees the completion may reuse the
	 * memory. */
	fixture_no_completion(rig.fixture.cq);
	region_expect_pattern(&rig.inbox, 0, INBOX, SEED + 1);
	assert_int_equal(rig_answers(), 4);
	expect_answer(2, OPCODE_READ_RESPONSE_LAST, 2);
	expect_answer(3, OPCODE_ACKNOWLEDGE, 3);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 3)->syndrome,
			 AETH_NAK | NAK_PSN_SEQUENCE);
	/* The SEND is requested again behind the READ's last response. */
	INVALIDATE(3);
	assert_int_equal(fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS).invalidated_rkey,
			 window->view.key);
	expect_aeth(ACK, 3, 2);
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_READ_REQUEST, 4, BY_WINDOW, .dma_length = 8);
}

/* A part of the READ was lost and is requested again, before the SEND with invalidation comes
 * again. */
TEST(responder__an_invalidation_waits_for_a_repeated_read)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, BY_WINDOW, .dma_length = 2 * MTU);
	assert_int_equal(rig_answers(), 2);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, BY_WINDOW, .dma_length = 2 * MTU);
	INVALIDATE(2);
	assert_int_equal(rig_answers(), 3);
	expect_answer(1, OPCODE_READ_RESPONSE_LAST, 1);
	INVALIDATE(2);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
}

TEST(responder__an_invalidation_waits_for_no_other_key)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 3 * MTU);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 3, TO_MEMORY, .swap_add = 1);
	INVALIDATE(4);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
}
