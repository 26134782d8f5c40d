/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of loss_reserve in lib/transport/loss.c: the memory for losses is allocated with the first
 * of them. Without memory an answer that shows a loss counts as lost, too. */
#include <errno.h>
#include <string.h>

#include "base/cachelines.h"
#include "completer_rig.h"
#include "transport/cc.h"
#include "transport/check.h"
#include "test.h"

#define CAPABILITY (BTH_SACK_RESPONSE | 4)

static bool is_full; /* there is no memory */
static unsigned int blocks;

void *__real_cachelines_alloc(size_t bytes);
void *__wrap_cachelines_alloc(size_t bytes);
void __real_cachelines_free(void *at, size_t bytes);
void __wrap_cachelines_free(void *at, size_t bytes);

void *__wrap_cachelines_alloc(size_t bytes)
{
	void *at = is_full ? NULL : __real_cachelines_alloc(bytes);

	blocks += at != NULL;
	return at;
}

void __wrap_cachelines_free(void *at, size_t bytes)
{
	blocks -= at != NULL;
	__real_cachelines_free(at, bytes);
}

static int set_up(void **state)
{
	is_full = false;
	completer_rig_set_up(state);
	rig.loss.board = NULL;
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	loss_init(&rig.loss, rig.loss.una);
	return 0;
}

static int tear_down(void **state)
{
	is_full = false;
	loss_fini(&rig.loss);
	assert_null(rig.loss.board);
	return completer_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

/* Check that nothing is known to be lost, and that timers run. */
static void expect_nothing(void)
{
	loss_check(&rig.loss);
	assert_null(rig.loss.board);
	assert_int_equal(rig.loss.state, LOSS_NONE);
	assert_int_equal(send_all(), 0);
	assert_int_not_equal(recovery_deadline_ns(&rig.loss.recovery), RECOVERY_NEVER);
}

TEST(loss_reserve__allocates_once_and_only_for_a_loss)
{
	const unsigned int before = blocks;
	const struct scoreboard *board;

	post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	acknowledge(2);
	expect_success(1);
	assert_null(rig.loss.board);
	post(2, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	nak(4);
	board = rig.loss.board;
	assert_non_null(board);
	assert_int_equal(blocks, before + 1);
	assert_true(loss_reserve(&rig.loss));
	assert_ptr_equal(rig.loss.board, board);
	assert_int_equal(send_all(), 1);
	acknowledge(5);
	expect_success(2);
	assert_int_equal(rig.loss.state, LOSS_NONE);
	loss_check(&rig.loss);
	loss_fini(&rig.loss);
	assert_int_equal(blocks, before);
}

TEST(loss_on_nak__without_memory_it_counts_as_lost)
{
	post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	is_full = true;
	nak(1);
	expect_flight(1, 3);
	expect_nothing();
	is_full = false;
	nak(1);
	assert_int_equal(send_all(), 1);
	acknowledge(2);
	expect_success(1);
}

TEST(loss_on_nak_ahead__without_memory_it_counts_as_lost)
{
	post(1, IBV_WR_RDMA_READ, MTU);
	post(2, IBV_WR_RDMA_WRITE, MTU);
	assert_int_equal(send_all(), 2);
	is_full = true;
	nak(1);
	expect_flight(0, 2);
	expect_nothing();
	is_full = false;
	nak(1);
	assert_int_equal(send_all(), 2);
}

TEST(loss_on_rnr__without_memory_it_counts_as_lost)
{
	post(1, IBV_WR_SEND, 2 * MTU);
	assert_int_equal(send_all(), 2);
	is_full = true;
	for (int i = 0; i < RETRIES + 2; i++)
		EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
	expect_nothing();
	assert_int_equal(rig.loss.recovery.rnr_left, RETRIES);
	is_full = false;
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
}

TEST(loss_on_out_of_order__without_memory_the_response_counts_as_lost)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 3 * MTU);
	assert_int_equal(send_all(), 1);
	is_full = true;
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 0);
	expect_nothing();
	is_full = false;
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 1);
	/* The requester asks for the packets that are missing. */
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
}

TEST(loss_on_timer__without_memory_timeouts_use_up_the_retries)
{
	uint64_t now_ns = NOW_NS;

	rig.loss.recovery.timeout_ns = TIMEOUT_NS;
	post(1, IBV_WR_RDMA_WRITE, MTU);
	assert_int_equal(send_all(), 1);
	is_full = true;
	for (int i = 0; i < RETRIES; i++) {
		now_ns += TIMEOUT_NS;
		assert_int_equal(completer_timeout(&rig.completer, false, now_ns), FAULT_NONE);
		expect_nothing();
		assert_int_equal(rig.loss.recovery.retries_left, RETRIES - 1 - i);
	}
	is_full = false;
	now_ns += TIMEOUT_NS;
	assert_int_equal(completer_timeout(&rig.completer, false, now_ns), FAULT_RETRIES_EXHAUSTED);
}

TEST(loss_on_timer__without_memory_probes_wait_for_it)
{
	uint64_t now_ns;

	post(1, IBV_WR_RDMA_WRITE, MTU);
	assert_int_equal(send_all(), 1);
	is_full = true;
	now_ns = recovery_deadline_ns(&rig.loss.recovery);
	assert_int_equal(completer_timeout(&rig.completer, false, now_ns), FAULT_NONE);
	expect_nothing();
	is_full = false;
	now_ns = recovery_deadline_ns(&rig.loss.recovery);
	assert_int_equal(completer_timeout(&rig.completer, false, now_ns), FAULT_NONE);
	assert_int_equal(send_all(), 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_probes), 1);
}

/* The peer is SACK-capable, and no answer is understood before there is memory. */
TEST(loss_on_sign__without_memory_the_next_answer_shows_it)
{
	struct packet_fields sack = {.opcode = OPCODE_SACK,
				     .psn = FIRST_PSN + 1,
				     .capability = CAPABILITY,
				     .serial = 1,
				     .payload = &(uint8_t){1},
				     .len = 1};

	rig.loss.sack_use = SACK_ALWAYS;
	loss_init(&rig.loss, rig.loss.una);
	post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	is_full = true;
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = ACK, .capability = CAPABILITY);
	expect_flight(1, 3);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	assert_int_equal(
		completer_sack(&rig.completer, fixture_packet(&rig.fixture, &sack), NOW_NS),
		FAULT_NONE);
	expect_nothing();
	is_full = false;
	assert_int_equal(
		completer_sack(&rig.completer, fixture_packet(&rig.fixture, &sack), NOW_NS),
		FAULT_NONE);
	assert_int_equal(rig.loss.peer, LOSS_PEER_SACK);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
}

TEST(cc_create__without_memory_fails)
{
	const struct cc_attr attr = {.kind = CC_SWIFT};
	struct cc *cc;

	is_full = true;
	assert_int_equal(cc_create(&attr, &rig.fixture.pacer, &rig.loss, &cc), -ENOMEM);
	assert_null(cc);
}
