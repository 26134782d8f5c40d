/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/completer.c, behind a requester that sends: what responses complete, fail,
 * or have sent again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "queue/sq_build.h"
#include "transport/completer.h"
#include "transport/requester.h"
#include "wire/headers.h"

#define MTU	   256u
#define FIRST_PSN  0xfffffeu
#define SEED	   3u
#define MEMORY	   (100 * MTU)
#define CQE	   16u
#define NOW_NS	   UINT64_C(1000000)
#define TIMEOUT_NS 5000u
#define RETRIES	   2
#define RNR_CODE   14 /* 1.28 ms */
#define RNR_NS	   1280000u
#define ACK	   (AETH_ACK | AETH_CREDIT_NONE)
#define SIGNALED   IBV_SEND_SIGNALED

static struct fixture fixture;
static struct region memory;
static struct region readable; /* may not be written */
static struct sq sq;
static struct flight flight;
static struct recovery recovery;
static struct requester requester;
static struct completer completer;
static struct early_pool *pool;

static int set_up(void **state)
{
	const struct sq_attr attr = {.max_wr = 64, .max_sge = 4};

	(void)state;
	fixture_set_up(&fixture, MTU, CQE);
	region_set_up(&memory, fixture.pd, MEMORY, IBV_ACCESS_LOCAL_WRITE, SEED);
	region_set_up(&readable, fixture.pd, MTU, 0, SEED + 1);
	assert_int_equal(sq_init(&sq, &attr), 0);
	flight_init(&flight, psn_make(FIRST_PSN));
	flight.max_responses = 16;
	recovery = (struct recovery){
		.timeout_ns = TIMEOUT_NS, .retry_cnt = RETRIES, .rnr_retry = RETRIES};
	recovery_reset(&recovery);
	requester = (struct requester){.sq = &sq,
				       .pd = fixture.pd,
				       .peer = &fixture.peer,
				       .flight = &flight,
				       .pacer = &fixture.pacer,
				       .counters = &fixture.counters,
				       .service = OPCODE_RC};
	requester_reset(&requester, REQUESTER_RUNNING);
	completer = (struct completer){.sq = &sq,
				       .cq = fixture.cq,
				       .pd = fixture.pd,
				       .flight = &flight,
				       .recovery = &recovery,
				       .counters = &fixture.counters,
				       .qpn = FIXTURE_QPN,
				       .mtu = MTU};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	completer_reset(&completer);
	early_pool_destroy(pool);
	pool = NULL;
	sq_fini(&sq);
	region_tear_down(&memory);
	region_tear_down(&readable);
	fixture_tear_down(&fixture);
	return 0;
}

static void post_list(uint64_t wr_id, enum ibv_wr_opcode opcode, unsigned int flags,
		      struct ibv_sge *sge, int num_sge)
{
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .opcode = opcode,
				 .send_flags = flags,
				 .sg_list = sge,
				 .num_sge = num_sge},
			   *bad;

	assert_int_equal(sq_post(&sq, IBV_QPT_RC, &wr, &bad), 0);
}

/* Of the memory's first `length` bytes, signaled. */
static void post(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = region_sge(&memory, 0, length);

	post_list(wr_id, opcode, SIGNALED, &sge, length > 0);
}

/* Send up to so many packets; returns how many went out. */
static unsigned int send_some(unsigned int budget)
{
	unsigned int sent;
	bool more;

	catcher_clear(&fixture.catcher);
	sent = requester_send(&requester, &fixture.catcher.sink, budget, &more);
	if (sent > 0)
		recovery_sent(&recovery, NOW_NS);
	return sent;
}

static unsigned int send_all(void)
{
	return send_some(1000);
}

/* A response; its PSN is counted from FIRST_PSN. */
static enum fault take(struct packet_fields fields)
{
	fields.psn += FIRST_PSN;
	return completer_receive(&completer, fixture_packet(&fixture, &fields), NOW_NS);
}
#define EXPECT_FAULT(fault, op, number, ...)                                                  \
	assert_int_equal(                                                                     \
		take((struct packet_fields){.opcode = (op), .psn = (number), ##__VA_ARGS__}), \
		fault)
#define EXPECT_TAKEN(...) EXPECT_FAULT(FAULT_NONE, __VA_ARGS__)

static void acknowledge(uint32_t psn)
{
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = ACK);
}

static void nak(uint32_t psn)
{
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE);
}

static struct ibv_wc expect_success(uint64_t wr_id)
{
	return fixture_completion(fixture.cq, wr_id, IBV_WC_SUCCESS);
}

static void expect_none(void)
{
	fixture_no_completion(fixture.cq);
}

static void expect_flight(uint32_t una, uint32_t next)
{
	assert_int_equal(flight.una.v, psn_make(FIRST_PSN + una).v);
	assert_int_equal(flight.next.v, psn_make(FIRST_PSN + next).v);
}

/* The payload of the response with this PSN stands at `offset`. */
static void expect_stored(size_t offset, uint32_t psn, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(memory.bytes[offset + i], pattern_byte(FIRST_PSN + psn, i));
}

/* Acknowledgements. */

static void completer_receive__one_acknowledgement_completes_all_before_it(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 2 * MTU);
	post(3, IBV_WR_SEND_WITH_IMM, 0);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 5);
	acknowledge(3);
	for (uint64_t i = 1; i <= 3; i++) {
		const struct ibv_wc wc = expect_success(i);

		assert_int_equal(wc.qp_num, FIXTURE_QPN);
		assert_int_equal(wc.wc_flags, 0);
	}
	expect_none();
	expect_flight(4, 5);
	acknowledge(4);
	expect_success(4);
	assert_int_equal(recovery.deadline_ns, RECOVERY_NEVER);
}

static void completer_receive__in_the_middle_of_a_message_nothing_completes(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 4 * MTU);
	assert_int_equal(send_all(), 4);
	acknowledge(2);
	expect_none();
	expect_flight(3, 4);
	acknowledge(3);
	expect_success(1);
}

static void completer_receive__what_is_not_signaled_completes_silently(void **state)
{
	struct ibv_sge sge = region_sge(&memory, 0, 8);

	(void)state;
	post_list(1, IBV_WR_SEND, 0, &sge, 1);
	post_list(2, IBV_WR_RDMA_READ, 0, &sge, 1);
	post_list(3, IBV_WR_SEND, SIGNALED, &sge, 1);
	assert_int_equal(send_all(), 3);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK, .len = 8);
	expect_none();
	expect_stored(0, 1, 8);
	assert_int_equal(sq.cons, 2);
	acknowledge(2);
	expect_success(3);
	expect_none();
}

static void completer_receive__answers_to_nothing_in_the_air_are_ignored(void **state)
{
	static const uint8_t operations[] = {OPCODE_ACKNOWLEDGE, OPCODE_READ_RESPONSE_ONLY,
					     OPCODE_ATOMIC_ACKNOWLEDGE};

	(void)state;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_SEND, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 3);
	acknowledge(0);
	expect_success(1);
	for (size_t i = 0; i < sizeof(operations); i++) {
		EXPECT_TAKEN(operations[i], 0, .syndrome = ACK);
		EXPECT_TAKEN(operations[i], 3, .syndrome = ACK);
		EXPECT_TAKEN(operations[i], 100, .syndrome = ACK);
		EXPECT_TAKEN(operations[i], 0x800000, .syndrome = ACK);
	}
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_NAK | NAK_REMOTE_ACCESS);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 3, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 3, .syndrome = AETH_RNR_NAK);
	expect_none();
	expect_flight(1, 3);
	assert_int_equal(recovery.state, RECOVERY_SMOOTH);
}

static void completer_receive__answers_before_anything_was_sent_are_ignored(void **state)
{
	(void)state;
	acknowledge(0);
	acknowledge(0u - 1);
	post(1, IBV_WR_SEND, 8);
	acknowledge(0);
	expect_none();
	expect_flight(0, 0);
}

static void completer_receive__each_request_completes_under_its_name(void **state)
{
	static const struct {
		enum ibv_wr_opcode posted;
		enum ibv_wc_opcode completed;
	} names[] = {{IBV_WR_SEND, IBV_WC_SEND},
		     {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
		     {IBV_WR_SEND_WITH_INV, IBV_WC_SEND},
		     {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
		     {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
		     {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		     {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
		     {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
		     {IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE}};

	(void)state;
	for (uint32_t i = 0; i < 9; i++) {
		struct ibv_wc wc;

		post(i, names[i].posted, 8);
		assert_int_equal(send_all(), 1);
		if (i < 5)
			acknowledge(i);
		else if (i == 5 || i == 8)
			EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, i, .syndrome = ACK,
				     .len = i == 5 ? 8 : 0);
		else
			EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, i, .syndrome = ACK);
		wc = expect_success(i);
		assert_int_equal(wc.opcode, names[i].completed);
		assert_int_equal(wc.byte_len, i < 5 || i == 8 ? 0 : 8);
	}
}

static void completer_receive__an_acknowledgement_is_no_word_of_an_atomic_write(void **state)
{
	(void)state;
	post(1, IBV_WR_ATOMIC_WRITE, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	acknowledge(1);
	expect_none();
	/* It is sent again, and only then answered. */
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK);
	expect_success(1);
	expect_success(2);
	assert_int_equal(flight.responses, 0);
}

static void completer_receive__a_flush_is_answered_by_an_empty_response(void **state)
{
	const struct sq_flush flush = {.rkey = 1, .place = FETH_PLACE_GLOBAL, .length = 4 * MTU};
	struct ibv_wc wc;

	(void)state;
	post(1, IBV_WR_RDMA_WRITE, 8);
	sq_build_start(&sq, sq_opcodes(IBV_QPT_RC));
	sq_build_next(&sq, (enum ibv_wr_opcode)LATER_WR_FLUSH, 2, SIGNALED);
	sq_build_flush(&sq, &flush);
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK);
	expect_success(1);
	wc = expect_success(2);
	assert_int_equal(wc.opcode, LATER_WC_FLUSH);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(flight.responses, 0);
}

/* READs and atomics. */

static void completer_receive__a_read_is_stored_in_its_list(void **state)
{
	struct ibv_sge sge[] = {region_sge(&memory, 10 * MTU, 100),
				region_sge(&memory, 0, 2 * MTU)};
	uint8_t first[MTU];

	(void)state;
	post_list(1, IBV_WR_RDMA_READ, SIGNALED, sge, 2);
	assert_int_equal(send_all(), 1);
	for (uint32_t i = 0; i < MTU; i++)
		first[i] = pattern_byte(FIRST_PSN, i);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	expect_none();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = 100);
	assert_int_equal(expect_success(1).byte_len, 2 * MTU + 100);
	assert_memory_equal(memory.bytes + 10 * MTU, first, 100);
	assert_memory_equal(memory.bytes, first + 100, MTU - 100);
	expect_stored(MTU - 100, 1, MTU);
	expect_stored(2 * MTU - 100, 2, 100);
	region_expect_pattern(&memory, 2 * MTU, 8 * MTU, SEED);
	assert_int_equal(flight.responses, 0);
}

static void completer_receive__an_empty_read(void **state)
{
	(void)state;
	post(1, IBV_WR_RDMA_READ, 0);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK);
	assert_int_equal(expect_success(1).byte_len, 0);
}

static void completer_receive__a_response_acknowledges_what_was_sent_before(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 8);
	post(3, IBV_WR_RDMA_READ, 2 * MTU);
	assert_int_equal(send_all(), 3);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	expect_success(2);
	expect_none();
	expect_stored(0, 2, MTU);
}

static void completer_receive__segments_give_their_resource_back(void **state)
{
	const uint32_t segment = REQUESTER_READ_SEGMENT_PKTS;

	(void)state;
	post(1, IBV_WR_RDMA_READ, (segment + 2) * MTU);
	assert_int_equal(send_all(), 2);
	assert_int_equal(flight.responses, 2);
	for (uint32_t i = 0; i < segment; i++) {
		assert_int_equal(flight.responses, 2);
		EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, i, .len = MTU);
	}
	assert_int_equal(flight.responses, 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, segment, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, segment + 1, .syndrome = ACK, .len = MTU);
	assert_int_equal(flight.responses, 0);
	expect_success(1);
}

static void completer_receive__the_result_of_an_atomic_is_in_host_order(void **state)
{
	const uint64_t *result = (const uint64_t *)(const void *)memory.bytes;

	(void)state;
	post(1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 0, .syndrome = ACK, .original = 0x0102030405060708);
	assert_int_equal(expect_success(1).byte_len, 8);
	assert_int_equal(*result, 0x0102030405060708);
	region_expect_pattern(&memory, 8, MTU, SEED);
}

static void completer_receive__responses_of_another_length_are_bad(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t taken; /* responses before it */
		uint32_t len;
	} cases[] = {
		{OPCODE_READ_RESPONSE_FIRST, 0, MTU - 1}, {OPCODE_READ_RESPONSE_FIRST, 0, MTU + 1},
		{OPCODE_READ_RESPONSE_FIRST, 0, 0},	  {OPCODE_READ_RESPONSE_MIDDLE, 1, MTU - 4},
		{OPCODE_READ_RESPONSE_LAST, 2, 7},	  {OPCODE_READ_RESPONSE_LAST, 2, 9},
		{OPCODE_READ_RESPONSE_LAST, 2, MTU},	  {OPCODE_READ_RESPONSE_ONLY, 0, 8},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		post(1, IBV_WR_RDMA_READ, 2 * MTU + 8);
		assert_int_equal(send_all(), 1);
		for (uint32_t psn = 0; psn < cases[i].taken; psn++)
			EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, psn, .len = MTU);
		EXPECT_FAULT(FAULT_BAD_RESPONSE, cases[i].opcode, cases[i].taken, .syndrome = ACK,
			     .len = cases[i].len);
		region_expect_pattern(&memory, cases[i].taken * MTU, MEMORY - cases[i].taken * MTU,
				      SEED);
		expect_none();
		tear_down(state);
		set_up(state);
	}
}

static void completer_receive__responses_to_requests_of_another_kind_are_bad(void **state)
{
	static const struct {
		enum ibv_wr_opcode request;
		uint8_t response;
	} cases[] = {
		{IBV_WR_SEND, OPCODE_READ_RESPONSE_ONLY},
		{IBV_WR_RDMA_WRITE, OPCODE_READ_RESPONSE_ONLY},
		{IBV_WR_SEND, OPCODE_ATOMIC_ACKNOWLEDGE},
		{IBV_WR_RDMA_READ, OPCODE_ATOMIC_ACKNOWLEDGE},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, OPCODE_READ_RESPONSE_ONLY},
		{IBV_WR_ATOMIC_WRITE, OPCODE_READ_RESPONSE_ONLY}, /* with data */
		{IBV_WR_ATOMIC_WRITE, OPCODE_ATOMIC_ACKNOWLEDGE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool read = cases[i].response == OPCODE_READ_RESPONSE_ONLY;

		post(1, cases[i].request, 8);
		assert_int_equal(send_all(), 1);
		EXPECT_FAULT(FAULT_BAD_RESPONSE, cases[i].response, 0, .syndrome = ACK,
			     .len = read ? 8 : 0);
		region_expect_pattern(&memory, 0, MEMORY, SEED);
		expect_none();
		tear_down(state);
		set_up(state);
	}
}

static void completer_receive__data_that_may_not_be_stored(void **state)
{
	struct ibv_sge sge = region_sge(&readable, 0, 8);

	(void)state;
	post_list(1, IBV_WR_RDMA_READ, SIGNALED, &sge, 1);
	assert_int_equal(send_all(), 1);
	EXPECT_FAULT(FAULT_SEND_PROTECTION, OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK,
		     .len = 8);
	completer_flush(&completer);
	flight_init(&flight, psn_make(FIRST_PSN));
	requester_reset(&requester, REQUESTER_RUNNING);
	post_list(2, IBV_WR_ATOMIC_FETCH_AND_ADD, SIGNALED, &sge, 1);
	assert_int_equal(send_all(), 1);
	EXPECT_FAULT(FAULT_SEND_PROTECTION, OPCODE_ATOMIC_ACKNOWLEDGE, 0, .syndrome = ACK);
	region_expect_pattern(&readable, 0, MTU, SEED + 1);
}

static void completer_receive__a_second_response_is_not_stored(void **state)
{
	(void)state;
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = 8);
	expect_success(1);
	for (size_t i = 0; i < 8; i++)
		memory.bytes[i] = pattern_byte(SEED, i);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = 8);
	region_expect_pattern(&memory, 0, MEMORY, SEED);
	expect_none();
}

/* Losses. */

static void completer_receive__a_missing_response_alone_is_asked_for_again(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_READ, 8);
	post(3, IBV_WR_SEND, 8);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	/* The READ's response is lost; what is said of those behind it does not complete them. */
	acknowledge(2);
	expect_success(1);
	expect_none();
	expect_flight(1, 4);
	acknowledge(3);
	assert_int_equal(recovery.retries_left, RETRIES);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_implied_nak_seq_err), 1);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	assert_int_equal(send_all(), 0);
	/* It was remembered that they are executed. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK, .len = 8);
	for (uint64_t i = 2; i <= 4; i++)
		expect_success(i);
	assert_int_equal(recovery.retries_left, RETRIES);
	assert_int_equal(recovery.repair_ns, RECOVERY_NEVER);
	assert_int_equal(recovery.deadline_ns, RECOVERY_NEVER);
}

static void completer_receive__an_acknowledgement_does_not_complete_a_read(void **state)
{
	static const enum ibv_wr_opcode requests[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP};

	for (size_t i = 0; i < 2; i++) {
		post(1, requests[i], 8);
		assert_int_equal(send_all(), 1);
		acknowledge(0);
		expect_none();
		expect_flight(0, 1);
		assert_int_equal(send_all(), 1);
		tear_down(state);
		set_up(state);
	}
}

static void completer_receive__a_lost_response_is_asked_for_again(void **state)
{
	(void)state;
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	region_expect_pattern(&memory, MTU, 3 * MTU, SEED);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	expect_success(1);
	for (uint32_t i = 0; i < 4; i++)
		expect_stored(i * MTU, i, MTU);
	assert_int_equal(flight.responses, 0);
}

/* With a pool, responses that come early are kept. */
static void let_keep(void)
{
	assert_int_equal(early_pool_create(16, &pool), 0);
	completer.early.pool = pool;
}

static void completer_receive__early_responses_are_kept(void **state)
{
	(void)state;
	let_keep();
	post(1, IBV_WR_RDMA_READ, 5 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 4, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU);
	/* The order of the bytes is that of their addresses. */
	region_expect_pattern(&memory, MTU, 4 * MTU, SEED);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_early_kept), 2);
	/* What is missing, and no more, though 3 came after it was asked for. */
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->iova, MTU);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->dma_length, 3 * MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU);
	expect_none();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	for (uint32_t i = 0; i < 5; i++)
		expect_stored(i * MTU, i, MTU);
	assert_int_equal(flight.responses, 0);
	assert_int_equal(completer.early.count, 0);
	assert_int_equal(recovery_deadline_ns(&recovery), RECOVERY_NEVER);
}

static void completer_receive__a_second_gap_is_asked_for_at_once(void **state)
{
	(void)state;
	let_keep();
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	post(2, IBV_WR_RDMA_WRITE, 8);
	post(3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	post(4, IBV_WR_RDMA_READ, 8);
	post(5, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 5);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 6, .syndrome = ACK, .len = 8);
	acknowledge(7);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->dma_length, MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = MTU);
	expect_none();
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	expect_success(2);
	expect_none();
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_FETCH_ADD, FIRST_PSN + 5);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 5, .syndrome = ACK);
	for (uint64_t i = 3; i <= 5; i++)
		expect_success(i);
	assert_int_equal(send_all(), 0);
	assert_int_equal(flight.responses, 0);
	assert_int_equal(flight.waits, false);
}

static void completer_receive__what_is_lost_of_a_repair_is_asked_for_again(void **state)
{
	(void)state;
	let_keep();
	post(1, IBV_WR_RDMA_READ, 6 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 5, .syndrome = ACK, .len = MTU);
	assert_int_equal(send_all(), 1);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->dma_length, 5 * MTU);
	/* This may be late, of the first sending: it tells nothing. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	assert_int_equal(send_all(), 0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 2);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->dma_length, MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 4, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	assert_int_equal(send_all(), 0);
}

static void completer_receive__an_early_response_of_another_length_is_not_kept(void **state)
{
	(void)state;
	let_keep();
	post(1, IBV_WR_RDMA_READ, 2 * MTU + 8);
	post(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU - 4);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 2, .syndrome = ACK);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 3, .syndrome = ACK, .len = 8);
	assert_int_equal(completer.early.count, 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	/* In its turn it is what it is. */
	EXPECT_FAULT(FAULT_BAD_RESPONSE, OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU - 4);
}

static void completer_receive__relaxed_memory_takes_early_responses_at_once(void **state)
{
	struct ibv_sge sge[2];
	struct region relaxed;

	(void)state;
	let_keep();
	region_set_up(&relaxed, fixture.pd, 8 * MTU,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, SEED + 2);
	sge[0] = region_sge(&relaxed, 0, 3 * MTU + 10);
	sge[1] = region_sge(&memory, 0, MTU);
	post_list(1, IBV_WR_RDMA_READ, SIGNALED, sge, 2);
	post_list(2, IBV_WR_RDMA_READ, SIGNALED, sge, 1);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	for (uint32_t i = 0; i < MTU; i++)
		assert_int_equal(relaxed.bytes[2 * MTU + i], pattern_byte(FIRST_PSN + 2, i));
	/* Partly into strict memory, and of another READ: they wait. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 5, .syndrome = ACK, .len = MTU);
	region_expect_pattern(&relaxed, 0, 2 * MTU, SEED + 2);
	region_expect_pattern(&relaxed, 3 * MTU, 10, SEED + 2);
	region_expect_pattern(&memory, 0, MTU, SEED);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_early_placed), 1);
	expect_none();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 4, .syndrome = ACK, .len = 10);
	expect_success(1);
	for (uint32_t i = 0; i < MTU - 10; i++)
		assert_int_equal(memory.bytes[i], pattern_byte(FIRST_PSN + 3, 10 + i));
	completer_flush(&completer);
	region_tear_down(&relaxed);
}

static void completer_receive__a_late_answer_overtakes_a_rewind(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 2 * MTU);
	post(2, IBV_WR_RDMA_READ, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	assert_int_equal(completer_timeout(&completer, NOW_NS + TIMEOUT_NS), FAULT_NONE);
	expect_flight(0, 0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = 8);
	acknowledge(3);
	for (uint64_t i = 1; i <= 3; i++)
		expect_success(i);
	expect_flight(4, 4);
	assert_int_equal(flight.responses, 0);
	assert_int_equal(send_all(), 0);
	assert_int_equal(recovery.deadline_ns, RECOVERY_NEVER);
}

static void completer_receive__a_sequence_nak_sends_the_missing_packet_alone(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 4);
	nak(2);
	expect_success(1);
	expect_flight(2, 4);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
	/* The same news again, before anything was sent: not another loss. */
	nak(2);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 2);
	assert_true(catcher_at(&fixture.catcher, 0)->ack_req);
	nak(2);
	assert_int_equal(send_all(), 0);
}

/* Whether the peer keeps what came early shows in its first answer. */
static void completer_receive__a_peer_that_keeps_is_remembered(void **state)
{
	(void)state;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	/* Until it is known, nothing new is sent. */
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 0);
	acknowledge(3);
	assert_int_equal(flight.peer, FLIGHT_PEER_KEEPS);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 6);
	nak(4);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	catcher_expect(&fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 4);
	catcher_expect(&fixture.catcher, 1, OPCODE_SEND_ONLY, FIRST_PSN + 7);
	acknowledge(7);
	for (uint64_t i = 1; i <= 3; i++)
		expect_success(i);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_retransmitted_packets), 2);
}

static void completer_receive__a_peer_that_drops_gets_everything_again(void **state)
{
	(void)state;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	acknowledge(1);
	assert_int_equal(flight.peer, FLIGHT_PEER_DROPS);
	assert_int_equal(send_all(), 4);
	catcher_expect(&fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 2);
	/* From here on at once. */
	nak(3);
	assert_int_equal(send_all(), 3);
	catcher_expect(&fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 3);
	acknowledge(5);
	expect_success(1);
	assert_int_equal(flight.peer, FLIGHT_PEER_DROPS);
}

static void completer_receive__a_peer_that_was_misjudged_shows_it(void **state)
{
	(void)state;
	flight.peer = FLIGHT_PEER_DROPS;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	catcher_clear(&fixture.catcher);
	assert_int_equal(send_some(1), 1);
	/* More than was sent again. */
	acknowledge(4);
	assert_int_equal(flight.peer, FLIGHT_PEER_KEEPS);
	expect_flight(5, 5);
	assert_int_equal(send_all(), 1);
}

/* After a timeout a late answer says nothing of the kind. */
static void completer_receive__a_late_answer_does_not_tell_what_peer_it_is(void **state)
{
	(void)state;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	assert_int_equal(completer_timeout(&completer, NOW_NS + TIMEOUT_NS), FAULT_NONE);
	assert_int_equal(send_some(1), 1);
	acknowledge(4);
	assert_int_equal(flight.peer, FLIGHT_PEER_UNKNOWN);
}

/* A peer that kept something once, and has no room now. */
static void completer_receive__a_peer_that_keeps_no_more_gets_the_rest_again(void **state)
{
	(void)state;
	flight.peer = FLIGHT_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	acknowledge(1);
	assert_int_equal(flight.peer, FLIGHT_PEER_UNKNOWN);
	assert_int_equal(send_all(), 4);
}

/* Packets next to each other were lost: more each time. */
static void completer_receive__a_gap_that_grows_doubles_the_repair(void **state)
{
	(void)state;
	flight.peer = FLIGHT_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 20 * MTU);
	assert_int_equal(send_all(), 20);
	nak(1);
	assert_int_equal(send_all(), 1);
	nak(2);
	assert_int_equal(send_all(), 2);
	catcher_expect(&fixture.catcher, 1, OPCODE_WRITE_MIDDLE, FIRST_PSN + 3);
	/* From inside of it: that packet is on its way. */
	nak(3);
	assert_int_equal(send_all(), 0);
	nak(4);
	assert_int_equal(send_all(), 4);
	/* The next one elsewhere begins anew. */
	nak(12);
	assert_int_equal(send_all(), 1);
	assert_int_equal(flight.peer, FLIGHT_PEER_KEEPS);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
}

static void completer_receive__an_unknown_peer_does_not_ask_for_ever(void **state)
{
	(void)state;
	post(1, IBV_WR_RDMA_WRITE, 20 * MTU);
	assert_int_equal(send_all(), 20);
	nak(1);
	assert_int_equal(send_all(), 1);
	nak(2);
	assert_int_equal(send_all(), 2);
	nak(4);
	assert_int_equal(flight.peer, FLIGHT_PEER_DROPS);
	assert_int_equal(send_all(), 16);
}

/* Their answers do not tell that nothing more follows. */
static void completer_receive__reads_do_not_judge_an_unknown_peer(void **state)
{
	(void)state;
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	nak(0);
	assert_int_equal(flight.peer, FLIGHT_PEER_UNKNOWN);
	assert_int_equal(send_all(), 2);
}

static void completer_receive__a_read_is_repaired_by_its_request(void **state)
{
	(void)state;
	recovery.timeout_ns = UINT64_C(1) << 40;
	flight.peer = FLIGHT_PEER_KEEPS;
	post(1, IBV_WR_RDMA_READ, 2 * MTU);
	post(2, IBV_WR_SEND, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 3);
	nak(0);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->dma_length, 2 * MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 1, .syndrome = ACK, .len = MTU);
	expect_success(1);
	assert_int_equal(flight.responses, 0);
	/* Nothing says whether the SEND behind it was kept: its timer does. */
	assert_int_equal(send_all(), 0);
	assert_int_not_equal(recovery.repair_ns, RECOVERY_NEVER);
	assert_int_equal(completer_timeout(&completer, recovery.repair_ns), FAULT_NONE);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 2);
	acknowledge(3);
	expect_success(2);
	expect_success(3);
	assert_int_equal(flight.peer, FLIGHT_PEER_KEEPS);
	assert_int_equal(recovery.repair_ns, RECOVERY_NEVER);
}

static void completer_timeout__a_repair_that_is_lost_is_sent_again(void **state)
{
	uint64_t now_ns = NOW_NS;

	(void)state;
	recovery.timeout_ns = UINT64_C(1) << 40;
	flight.peer = FLIGHT_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	nak(1);
	assert_int_equal(send_all(), 1);
	for (int i = 0; i < 4; i++) {
		now_ns += RECOVERY_REPAIR_NS << i;
		assert_int_equal(recovery_deadline_ns(&recovery), now_ns);
		assert_int_equal(completer_timeout(&completer, now_ns - 1), FAULT_NONE);
		assert_int_equal(send_all(), 0);
		assert_int_equal(completer_timeout(&completer, now_ns), FAULT_NONE);
		assert_int_equal(send_all(), 1);
		catcher_expect(&fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
	}
	/* It is no retry, and the acknowledgement timer runs on beside it. */
	assert_int_equal(recovery.retries_left, RETRIES);
	assert_int_equal(recovery.deadline_ns, NOW_NS + recovery.timeout_ns);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_local_ack_timeout_err), 0);
	acknowledge(2);
	expect_success(1);
	assert_int_equal(recovery_deadline_ns(&recovery), RECOVERY_NEVER);
}

/* The last packet of all is lost, or the answer to it: nothing comes behind that would show it. */
static void completer_timeout__a_probe_finds_a_loss_at_the_end(void **state)
{
	(void)state;
	recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_WRITE, 4 * MTU);
	assert_int_equal(send_all(), 4);
	acknowledge(0);
	assert_int_equal(completer_timeout(&completer, recovery.repair_ns), FAULT_NONE);
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
	assert_true(catcher_at(&fixture.catcher, 0)->ack_req);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX);
	/* That one was there: the one behind it is asked for, and no judgement on the peer. */
	acknowledge(2);
	assert_int_equal(flight.peer, FLIGHT_PEER_UNKNOWN);
	assert_int_equal(send_all(), 0);
	assert_int_equal(completer_timeout(&completer, recovery.repair_ns), FAULT_NONE);
	assert_int_equal(send_all(), 1);
	acknowledge(3);
	expect_success(1);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_probes), 2);
	assert_int_equal(recovery.retries_left, RETRIES);
	assert_int_equal(recovery_deadline_ns(&recovery), RECOVERY_NEVER);
}

static void completer_timeout__what_a_probe_does_not_find_is_sent_again(void **state)
{
	(void)state;
	recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_WRITE, 4 * MTU);
	assert_int_equal(send_all(), 4);
	assert_int_equal(completer_timeout(&completer, recovery.repair_ns), FAULT_NONE);
	assert_int_equal(send_all(), 1);
	acknowledge(0);
	assert_int_equal(send_all(), 3);
	catcher_expect(&fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX / 2);
	acknowledge(3);
	expect_success(1);
}

static void completer_timeout__a_probe_of_a_read_asks_for_one_response(void **state)
{
	(void)state;
	recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	assert_int_equal(send_all(), 1);
	assert_int_equal(completer_timeout(&completer, recovery.repair_ns), FAULT_NONE);
	assert_int_equal(send_all(), 1);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->dma_length, MTU);
	assert_int_equal(flight.responses, 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = MTU);
	/* The request was lost, then: the rest of it. */
	assert_int_equal(send_all(), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->dma_length, 3 * MTU);
	assert_int_equal(flight.responses, 1);
}

static void completer_timeout__ends_a_repair(void **state)
{
	(void)state;
	flight.peer = FLIGHT_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	assert_int_equal(completer_timeout(&completer, NOW_NS + TIMEOUT_NS), FAULT_NONE);
	assert_int_equal(flight.repair, REPAIR_NONE);
	assert_int_equal(recovery.repair_ns, RECOVERY_NEVER);
	assert_int_equal(recovery.retries_left, RETRIES - 1);
	assert_int_equal(send_all(), 5);
}

/* On a network that reorders and repeats, one loss may be reported many times. */
static void completer_receive__sequence_naks_use_up_no_retries(void **state)
{
	(void)state;
	flight.peer = FLIGHT_PEER_DROPS;
	post(1, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	for (int i = 0; i < 3 * RETRIES; i++) {
		nak(0);
		assert_int_equal(send_all(), 1);
	}
	assert_int_equal(recovery.retries_left, RETRIES);
	acknowledge(0);
	expect_success(1);
}

static void completer_receive__each_nak_fails_the_request_that_it_names(void **state)
{
	static const struct {
		uint8_t syndrome;
		enum fault fault;
		enum ibv_wc_status status;
	} naks[] = {
		{AETH_NAK | 1, FAULT_NAKED_INVALID, IBV_WC_REM_INV_REQ_ERR},
		{AETH_NAK | 2, FAULT_NAKED_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{AETH_NAK | 3, FAULT_NAKED_OPERATIONAL, IBV_WC_REM_OP_ERR},
		{AETH_NAK | 4, FAULT_BAD_RESPONSE, IBV_WC_BAD_RESP_ERR},
		{AETH_NAK | 31, FAULT_BAD_RESPONSE, IBV_WC_BAD_RESP_ERR},
		{0x40 | ACK, FAULT_BAD_RESPONSE, IBV_WC_BAD_RESP_ERR},
	};

	for (size_t i = 0; i < sizeof(naks) / sizeof(naks[0]); i++) {
		post(1, IBV_WR_SEND, 8);
		post(2, IBV_WR_RDMA_WRITE, 2 * MTU);
		post(3, IBV_WR_SEND, 8);
		assert_int_equal(send_all(), 4);
		EXPECT_FAULT(naks[i].fault, OPCODE_ACKNOWLEDGE, 2, .syndrome = naks[i].syndrome);
		expect_success(1);
		assert_int_equal(completer_fail(&completer, naks[i].fault), FAULT_NONE);
		completer_flush(&completer);
		fixture_completion(fixture.cq, 2, naks[i].status);
		fixture_completion(fixture.cq, 3, IBV_WC_WR_FLUSH_ERR);
		tear_down(state);
		set_up(state);
	}
}

/* Receivers that are not ready, and timers. */

static void completer_receive__an_rnr_nak_waits_and_sends_again(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_SEND, 2 * MTU);
	assert_int_equal(send_all(), 3);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 1, .syndrome = AETH_RNR_NAK | RNR_CODE);
	expect_success(1);
	expect_flight(1, 1);
	/* Nothing was lost. */
	assert_int_equal(flight.window, FLIGHT_WINDOW_MAX);
	assert_int_equal(recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(recovery.deadline_ns, NOW_NS + RNR_NS);
	assert_int_equal(completer_timeout(&completer, NOW_NS + RNR_NS - 1), FAULT_NONE);
	assert_int_equal(recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(completer_timeout(&completer, NOW_NS + RNR_NS), FAULT_NONE);
	assert_int_equal(send_all(), 2);
	catcher_expect(&fixture.catcher, 0, OPCODE_SEND_FIRST, FIRST_PSN + 1);
	acknowledge(2);
	expect_success(2);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_local_ack_timeout_err), 0);
}

static void completer_receive__what_follows_an_rnr_nak_does_not_end_the_wait(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_READ, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 3);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
	/* Linux's Soft-RoCE says that what was sent behind came out of sequence. */
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE);
	/* The network brings it twice. */
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
	assert_int_equal(recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(recovery.deadline_ns, NOW_NS + RNR_NS);
	assert_int_equal(recovery.retries_left, RETRIES);
	assert_int_equal(recovery.rnr_left, RETRIES - 1);
}

static void completer_receive__rnr_naks_use_up_their_own_retries(void **state)
{
	(void)state;
	post(1, IBV_WR_SEND, 8);
	for (uint64_t i = 0; i < RETRIES; i++) {
		assert_int_equal(send_all(), 1);
		EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
		assert_int_equal(completer_timeout(&completer, NOW_NS + RNR_NS), FAULT_NONE);
	}
	assert_int_equal(send_all(), 1);
	EXPECT_FAULT(FAULT_RNR_RETRIES_EXHAUSTED, OPCODE_ACKNOWLEDGE, 0,
		     .syndrome = AETH_RNR_NAK | RNR_CODE);
}

static void completer_timeout__sends_all_again_until_no_retry_is_left(void **state)
{
	uint64_t now_ns = NOW_NS;

	(void)state;
	post(1, IBV_WR_SEND, 2 * MTU);
	assert_int_equal(send_all(), 2);
	assert_int_equal(completer_timeout(&completer, now_ns + TIMEOUT_NS - 1), FAULT_NONE);
	assert_int_equal(send_all(), 0);
	for (int i = 0; i < RETRIES; i++) {
		now_ns += TIMEOUT_NS;
		assert_int_equal(completer_timeout(&completer, now_ns), FAULT_NONE);
		assert_int_equal(send_all(), 2);
	}
	now_ns += TIMEOUT_NS;
	assert_int_equal(completer_timeout(&completer, now_ns), FAULT_RETRIES_EXHAUSTED);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_local_ack_timeout_err),
			 RETRIES + 1);
}

/* Ends. */

static void completer_fail__without_work_there_is_nothing_to_complete(void **state)
{
	(void)state;
	assert_int_equal(completer_fail(&completer, FAULT_RETRIES_EXHAUSTED), FAULT_NONE);
	expect_none();
}

static void completer_fail__tells_also_what_is_not_signaled(void **state)
{
	struct ibv_sge sge = region_sge(&memory, 0, 8);

	(void)state;
	post_list(1, IBV_WR_SEND, 0, &sge, 1);
	post_list(2, IBV_WR_SEND, 0, &sge, 1);
	assert_int_equal(completer_fail(&completer, FAULT_RETRIES_EXHAUSTED), FAULT_NONE);
	completer_flush(&completer);
	fixture_completion(fixture.cq, 1, IBV_WC_RETRY_EXC_ERR);
	fixture_completion(fixture.cq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_none();
	assert_int_equal(counters_get(&fixture.counters, COUNTER_req_cqe_error), 1);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_req_cqe_flush_error), 1);
}

static void completer_receive__a_completion_that_finds_no_room(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= CQE; i++)
		post(i, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), CQE + 1);
	EXPECT_FAULT(FAULT_CQ_OVERRUN, OPCODE_ACKNOWLEDGE, CQE, .syndrome = ACK);
}

static void completer_sent__unreliable_what_is_sent_is_done(void **state)
{
	bool more;

	(void)state;
	requester.service = OPCODE_UC;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(requester_send(&requester, &fixture.catcher.sink, 3, &more), 3);
	assert_int_equal(completer_sent(&completer, NOW_NS), FAULT_NONE);
	expect_success(1);
	expect_none();
	assert_int_equal(send_all(), 1);
	assert_int_equal(completer_sent(&completer, NOW_NS), FAULT_NONE);
	expect_success(2);
}

static void completer_receive__data_with_a_syndrome_of_failure_is_a_bad_response(void **state)
{
	static const uint8_t syndromes[] = {AETH_RNR_NAK | 1, AETH_NAK | NAK_REMOTE_ACCESS,
					    0x40 | ACK};

	(void)state;
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	assert_int_equal(send_all(), 2);
	for (size_t i = 0; i < sizeof(syndromes); i++)
		EXPECT_FAULT(FAULT_BAD_RESPONSE, OPCODE_READ_RESPONSE_ONLY, 0,
			     .syndrome = syndromes[i], .len = 8);
	expect_none();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = 8);
	expect_success(1);
	for (size_t i = 0; i < sizeof(syndromes); i++)
		EXPECT_FAULT(FAULT_BAD_RESPONSE, OPCODE_ATOMIC_ACKNOWLEDGE, 1,
			     .syndrome = syndromes[i]);
	expect_none();
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 1, .syndrome = ACK);
	expect_success(2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(completer_receive__one_acknowledgement_completes_all_before_it),
		TEST(completer_receive__in_the_middle_of_a_message_nothing_completes),
		TEST(completer_receive__what_is_not_signaled_completes_silently),
		TEST(completer_receive__answers_to_nothing_in_the_air_are_ignored),
		TEST(completer_receive__answers_before_anything_was_sent_are_ignored),
		TEST(completer_receive__each_request_completes_under_its_name),
		TEST(completer_receive__an_acknowledgement_is_no_word_of_an_atomic_write),
		TEST(completer_receive__a_flush_is_answered_by_an_empty_response),
		TEST(completer_receive__a_read_is_stored_in_its_list),
		TEST(completer_receive__an_empty_read),
		TEST(completer_receive__a_response_acknowledges_what_was_sent_before),
		TEST(completer_receive__segments_give_their_resource_back),
		TEST(completer_receive__the_result_of_an_atomic_is_in_host_order),
		TEST(completer_receive__responses_of_another_length_are_bad),
		TEST(completer_receive__responses_to_requests_of_another_kind_are_bad),
		TEST(completer_receive__data_that_may_not_be_stored),
		TEST(completer_receive__a_second_response_is_not_stored),
		TEST(completer_receive__a_missing_response_alone_is_asked_for_again),
		TEST(completer_receive__an_acknowledgement_does_not_complete_a_read),
		TEST(completer_receive__a_lost_response_is_asked_for_again),
		TEST(completer_receive__early_responses_are_kept),
		TEST(completer_receive__a_second_gap_is_asked_for_at_once),
		TEST(completer_receive__what_is_lost_of_a_repair_is_asked_for_again),
		TEST(completer_receive__an_early_response_of_another_length_is_not_kept),
		TEST(completer_receive__relaxed_memory_takes_early_responses_at_once),
		TEST(completer_receive__a_late_answer_overtakes_a_rewind),
		TEST(completer_receive__a_sequence_nak_sends_the_missing_packet_alone),
		TEST(completer_receive__a_peer_that_keeps_is_remembered),
		TEST(completer_receive__a_peer_that_drops_gets_everything_again),
		TEST(completer_receive__a_peer_that_was_misjudged_shows_it),
		TEST(completer_receive__a_late_answer_does_not_tell_what_peer_it_is),
		TEST(completer_receive__a_peer_that_keeps_no_more_gets_the_rest_again),
		TEST(completer_receive__a_gap_that_grows_doubles_the_repair),
		TEST(completer_receive__an_unknown_peer_does_not_ask_for_ever),
		TEST(completer_receive__reads_do_not_judge_an_unknown_peer),
		TEST(completer_receive__a_read_is_repaired_by_its_request),
		TEST(completer_timeout__a_repair_that_is_lost_is_sent_again),
		TEST(completer_timeout__a_probe_finds_a_loss_at_the_end),
		TEST(completer_timeout__what_a_probe_does_not_find_is_sent_again),
		TEST(completer_timeout__a_probe_of_a_read_asks_for_one_response),
		TEST(completer_timeout__ends_a_repair),
		TEST(completer_receive__sequence_naks_use_up_no_retries),
		TEST(completer_receive__each_nak_fails_the_request_that_it_names),
		TEST(completer_receive__an_rnr_nak_waits_and_sends_again),
		TEST(completer_receive__what_follows_an_rnr_nak_does_not_end_the_wait),
		TEST(completer_receive__rnr_naks_use_up_their_own_retries),
		TEST(completer_timeout__sends_all_again_until_no_retry_is_left),
		TEST(completer_fail__without_work_there_is_nothing_to_complete),
		TEST(completer_fail__tells_also_what_is_not_signaled),
		TEST(completer_receive__a_completion_that_finds_no_room),
		TEST(completer_sent__unreliable_what_is_sent_is_done),
		TEST(completer_receive__data_with_a_syndrome_of_failure_is_a_bad_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
