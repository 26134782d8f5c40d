/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/pass.c: the states of one request that is passed on, and what is sent.
 * test/unit/qp/test_run_pass.c has the way there and back. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/reason.h"
#include "execute.h"
#include "responder_rig.h"
#include "test.h"
#include "transport/pass.h"

#define FAR	 0x8001u
#define NOBODYS	 0xc001u
#define ALIAS	 0x004321u
#define STAND_IN 0x008765u
#define LINK_PSN 0xfffffeu
#define REACH	 (1 << 22) /* of the parts of a READ */

static struct pass pass;
static struct pass_link link, other_link;
static int find_says;
static uint8_t bytes[MTU + 1];

static int find(void *user, uint32_t srqn, struct pass_link **found)
{
	assert_ptr_equal(user, &link);
	*found = &link;
	return srqn == FAR ? find_says : -ENOENT;
}

static int set_up(void **state)
{
	responder_rig_set_up(state);
	find_says = 0;
	link = (struct pass_link){.path = rig.fixture.peer.path,
				  .qpn = STAND_IN,
				  .alias = ALIAS,
				  .psn = psn_make(LINK_PSN)};
	pass = (struct pass){.find = find, .user = &link, .counters = &rig.fixture.counters};
	rig.responder.service = OPCODE_XRC;
	rig.responder.pass = &pass;
	pass_reset(&pass);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 5 + 1);
	return 0;
}

TEST_FIXTURE(set_up, responder_rig_tear_down);

/* Return a request whose fields all have values, whether its headers carry them or not. */
static struct packet request(uint8_t operation, uint32_t psn)
{
	const uint8_t opcode = OPCODE_XRC | operation;
	const bool has_payload = opcode_info(opcode)->flags & OPCODE_PAYLOAD;
	const bool is_atomic_write = operation == OPCODE_ATOMIC_WRITE;

	return (struct packet){.op = opcode_info(opcode),
			       .opcode = opcode,
			       .solicited = true,
			       .psn = psn_make(FIRST_PSN + psn),
			       .xrc_srqn = FAR,
			       .payload = bytes,
			       .payload_len = is_atomic_write ? 8
					      : has_payload   ? 100
							      : 0,
			       .iova = 0x1122334455667788,
			       .rkey = 0x99aabbcc,
			       .dma_length = 100,
			       .flush_place = FETH_PLACE_GLOBAL,
			       .flush_select = FETH_SELECT_REGION,
			       .swap_add = 0x0102030405060708,
			       .compare = 0x1112131415161718,
			       .imm_be = 0xdeadbeef};
}

static enum fault take(uint8_t operation, uint32_t psn)
{
	const struct packet packet = request(operation, psn);

	return pass_take(&rig.responder, &packet);
}

/* Send what is due. Return how many packets these were. */
static unsigned int send(void)
{
	catcher_clear(&rig.fixture.catcher);
	assert_true(pass_send(&pass, &rig.fixture.catcher.sink));
	return rig.fixture.catcher.count;
}

/* Begin with a request, and send it. */
static void begin(uint8_t operation, uint32_t psn)
{
	assert_int_equal(take(operation, psn), RESPONDER_ABSENT);
	assert_int_equal(send(), 1);
}

static struct packet answer_of(uint8_t operation)
{
	const uint8_t opcode = OPCODE_XRC | operation;

	return (struct packet){.op = opcode_info(opcode),
			       .opcode = opcode,
			       .dest_qpn = ALIAS,
			       .psn = pass.link_psn,
			       .payload = bytes,
			       .syndrome = ACK,
			       .atomic_original = 0xabcdef};
}

static bool answer(uint8_t operation, uint8_t syndrome, uint32_t len)
{
	struct packet packet = answer_of(operation);

	packet.syndrome = syndrome;
	packet.payload_len = len;
	return pass_answer(&pass, &packet);
}

static bool acknowledge(void)
{
	return answer(OPCODE_ACKNOWLEDGE, ACK, 0);
}

static struct srq *find_none(void *user, uint32_t srqn)
{
	(void)user;
	(void)srqn;
	return NULL;
}

TEST(responder__passes_on_what_is_for_another_process)
{
	const struct packet packet = request(OPCODE_WRITE_ONLY, 0);

	rig.responder.find_srq = find_none;
	assert_int_equal(rig_receive(&packet), FAULT_NONE);
	assert_int_equal(send(), 1);
	assert_int_equal(rig.responder.epsn.v, packet.psn.v);
}

/* The other process completes the receive request. */
TEST(responder__what_was_passed_on_does_not_complete_here)
{
	const struct packet packet = request(OPCODE_SEND_ONLY, 0);

	rig.responder.find_srq = find_none;
	assert_int_equal(rig_receive(&packet), FAULT_NONE);
	assert_int_equal(send(), 1);
	assert_true(acknowledge());
	assert_int_equal(rig_receive(&packet), FAULT_NONE);
	fixture_no_completion(rig.fixture.cq);
	assert_int_equal(rig.responder.epsn.v, psn_add(packet.psn, 1).v);
}

TEST(pass_send__has_the_headers_of_each_request)
{
	static const uint8_t operations[] = {
		OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE,	  OPCODE_SEND_LAST_IMM,
		OPCODE_SEND_ONLY,  OPCODE_SEND_ONLY_IMM,  OPCODE_SEND_ONLY_INV,
		OPCODE_WRITE_ONLY, OPCODE_WRITE_ONLY_IMM, OPCODE_COMPARE_SWAP,
		OPCODE_FETCH_ADD,  OPCODE_FLUSH,	  OPCODE_ATOMIC_WRITE,
	};

	for (size_t i = 0; i < sizeof(operations); i++) {
		const struct packet asked = request(operations[i], 0);
		const uint32_t flags = asked.op->flags;
		const struct packet *sent;

		pass_reset(&pass);
		begin(operations[i], 0);
		sent = catcher_at(&rig.fixture.catcher, 0);
		assert_int_equal(sent->opcode, asked.opcode);
		assert_int_equal(sent->dest_qpn, STAND_IN);
		assert_int_equal(sent->psn.v, LINK_PSN);
		assert_int_equal(sent->pkey, WIRE_PKEY_DEFAULT);
		assert_int_equal(sent->ack_byte, BTH_ACK_REQ);
		assert_true(sent->solicited);
		assert_true(sent->migrated);
		assert_int_equal(sent->xrc_srqn, FAR);
		assert_int_equal(sent->payload_len, asked.payload_len);
		assert_memory_equal(sent->payload, bytes, asked.payload_len);
		if (flags & OPCODE_HAS_IMM)
			assert_int_equal(sent->imm_be, asked.imm_be);
		if (flags & (OPCODE_HAS_IETH | OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH))
			assert_int_equal(sent->rkey, asked.rkey);
		if (flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH))
			assert_int_equal(sent->iova, asked.iova);
		if (flags & OPCODE_HAS_RETH)
			assert_int_equal(sent->dma_length, asked.dma_length);
		if (operations[i] == OPCODE_COMPARE_SWAP)
			assert_int_equal(sent->compare, asked.compare);
		if (flags & OPCODE_HAS_ATOMICETH)
			assert_int_equal(sent->swap_add, asked.swap_add);
		if (flags & OPCODE_HAS_FETH) {
			assert_int_equal(sent->flush_place, asked.flush_place);
			assert_int_equal(sent->flush_select, asked.flush_select);
		}
	}
	assert_int_equal(rig.fixture.counters.value[COUNTER_xrc_passed], sizeof(operations));
}

TEST(pass_send__once_and_again_when_it_is_due)
{
	assert_int_equal(send(), 0);
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), RESPONDER_ABSENT);
	rig.fixture.catcher.room = 0;
	assert_false(pass_send(&pass, &rig.fixture.catcher.sink));
	rig.fixture.catcher.room = 10;
	assert_int_equal(send(), 1);
	assert_int_equal(send(), 0);
	/* Its requester sends it again, or one that was executed before it. */
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), RESPONDER_ABSENT);
	assert_int_equal(send(), 1);
	pass_again(&pass);
	assert_int_equal(send(), 1);
	assert_true(acknowledge());
	assert_int_equal(send(), 0);
	pass_again(&pass);
	assert_int_equal(send(), 0);
	/* Three packets of the same PSN; the next request has the next one. */
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), FAULT_NONE);
	begin(OPCODE_SEND_ONLY, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->psn.v, (LINK_PSN + 1) & PSN_MASK);
}

TEST(pass_answer__only_of_this_stand_in_to_this_request)
{
	struct packet packet;

	packet = answer_of(OPCODE_ACKNOWLEDGE);
	assert_false(pass_answer(&pass, &packet));
	begin(OPCODE_SEND_ONLY, 0);
	packet = answer_of(OPCODE_ACKNOWLEDGE);
	packet.dest_qpn = ALIAS + 1;
	assert_false(pass_answer(&pass, &packet));
	packet.dest_qpn = ALIAS;
	packet.psn = psn_add(pass.link_psn, -1);
	assert_false(pass_answer(&pass, &packet));
	packet.psn = psn_add(pass.link_psn, 1);
	assert_false(pass_answer(&pass, &packet));
	assert_int_equal(pass.state, PASS_SENT);
	packet.psn = pass.link_psn;
	assert_true(pass_answer(&pass, &packet));
	assert_int_equal(pass.state, PASS_EXECUTED);
	assert_int_equal(link.psn.v, (LINK_PSN + 1) & PSN_MASK);
	assert_null(pass.link);
	assert_false(pass_answer(&pass, &packet));
	assert_int_equal(link.psn.v, (LINK_PSN + 1) & PSN_MASK);
}

TEST(pass_answer__what_each_answer_means_to_each_request)
{
	static const struct {
		uint8_t request;
		uint8_t answer;
		uint8_t syndrome;
		uint32_t len;
		enum pass_state state;
		enum fault fault;
	} cases[] = {
		{OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE, ACK, 0, PASS_EXECUTED, FAULT_NONE},
		{OPCODE_WRITE_ONLY, OPCODE_ACKNOWLEDGE, ACK, 0, PASS_EXECUTED, FAULT_NONE},
		{OPCODE_FETCH_ADD, OPCODE_ACKNOWLEDGE, ACK, 0, PASS_SENT, FAULT_NONE},
		{OPCODE_FLUSH, OPCODE_ACKNOWLEDGE, ACK, 0, PASS_SENT, FAULT_NONE},
		{OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE, AETH_RNR_NAK | 1, 0, PASS_NOT_READY,
		 FAULT_NONE},
		{OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE, AETH_NAK | NAK_PSN_SEQUENCE, 0, PASS_SENT,
		 FAULT_NONE},
		{OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE, AETH_NAK | NAK_INVALID_REQUEST, 0,
		 PASS_FAILED, FAULT_INVALID_REQUEST},
		{OPCODE_FETCH_ADD, OPCODE_ACKNOWLEDGE, AETH_NAK | NAK_REMOTE_ACCESS, 0, PASS_FAILED,
		 FAULT_ACCESS},
		{OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE, AETH_NAK | NAK_REMOTE_OPERATIONAL, 0,
		 PASS_FAILED, FAULT_RECEIVE_PROTECTION},
		{OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE, AETH_NAK | 9, 0, PASS_FAILED,
		 FAULT_INVALID_REQUEST},
		{OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE, 0x40, 0, PASS_SENT, FAULT_NONE},
		{OPCODE_FLUSH, OPCODE_READ_RESPONSE_ONLY, ACK, 0, PASS_EXECUTED, FAULT_NONE},
		{OPCODE_ATOMIC_WRITE, OPCODE_READ_RESPONSE_ONLY, ACK, 0, PASS_EXECUTED, FAULT_NONE},
		{OPCODE_FLUSH, OPCODE_READ_RESPONSE_ONLY, ACK, 1, PASS_SENT, FAULT_NONE},
		{OPCODE_SEND_ONLY, OPCODE_READ_RESPONSE_ONLY, ACK, 0, PASS_SENT, FAULT_NONE},
		{OPCODE_FETCH_ADD, OPCODE_READ_RESPONSE_ONLY, ACK, 0, PASS_SENT, FAULT_NONE},
		{OPCODE_FETCH_ADD, OPCODE_ATOMIC_ACKNOWLEDGE, ACK, 0, PASS_EXECUTED, FAULT_NONE},
		{OPCODE_SEND_ONLY, OPCODE_ATOMIC_ACKNOWLEDGE, ACK, 0, PASS_SENT, FAULT_NONE},
		{OPCODE_SEND_ONLY, OPCODE_READ_RESPONSE_FIRST, ACK, 0, PASS_SENT, FAULT_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool ends = cases[i].state != PASS_SENT;
		const int32_t executed = cases[i].state == PASS_EXECUTED;
		struct psn before = link.psn;

		pass_reset(&pass);
		begin(cases[i].request, 0);
		pass.original = 0;
		assert_int_equal(answer(cases[i].answer, cases[i].syndrome, cases[i].len), ends);
		assert_int_equal(pass.state, cases[i].state);
		assert_int_equal(psn_diff(link.psn, before), executed);
		if (cases[i].state == PASS_FAILED)
			assert_int_equal(pass.fault, cases[i].fault);
		if (cases[i].answer == OPCODE_ATOMIC_ACKNOWLEDGE && executed)
			assert_int_equal(pass.original, 0xabcdef);
	}
}

TEST(pass_take__gives_the_outcome_once)
{
	begin(OPCODE_SEND_ONLY, 0);
	assert_true(answer(OPCODE_ACKNOWLEDGE, AETH_RNR_NAK | 1, 0));
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), RESPONDER_REFUSED);
	assert_true(pass.came);
	begin(OPCODE_SEND_ONLY, 0);
	assert_true(answer(OPCODE_ACKNOWLEDGE, AETH_NAK | NAK_REMOTE_OPERATIONAL, 0));
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), FAULT_RECEIVE_PROTECTION);
	begin(OPCODE_SEND_ONLY, 0);
	assert_true(acknowledge());
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), FAULT_NONE);
	assert_false(pass.came);
	assert_int_equal(pass.state, PASS_NONE);
	expect_no_answer();
}

TEST(pass_take__owes_the_answers_that_acknowledgements_are_not)
{
	begin(OPCODE_FETCH_ADD, 0);
	assert_true(answer(OPCODE_ATOMIC_ACKNOWLEDGE, ACK, 0));
	rig.responder.msn = 6;
	assert_int_equal(take(OPCODE_FETCH_ADD, 0), FAULT_NONE);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_ATOMIC_ACKNOWLEDGE, 0);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->msn, 7);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->atomic_original, 0xabcdef);
	begin(OPCODE_FLUSH, 1);
	assert_true(answer(OPCODE_READ_RESPONSE_ONLY, ACK, 0));
	assert_int_equal(take(OPCODE_FLUSH, 1), FAULT_NONE);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->msn, 7);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->payload_len, 0);
}

/* What it has waited for before says nothing about how soon the answer comes. */
TEST(pass_take__ends_the_wait_for_the_way)
{
	rig.responder.page_wait.since_ns = 1;
	find_says = -EAGAIN;
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), RESPONDER_ABSENT);
	assert_int_equal(rig.responder.page_wait.since_ns, 1);
	find_says = 0;
	begin(OPCODE_SEND_ONLY, 0);
	assert_int_equal(rig.responder.page_wait.since_ns, PAGE_WAIT_NONE);
}

TEST(pass_take__asks_for_the_way)
{
	struct packet nobodys = request(OPCODE_SEND_ONLY, 0);

	nobodys.xrc_srqn = NOBODYS;
	assert_int_equal(pass_take(&rig.responder, &nobodys), FAULT_INVALID_REQUEST);
	find_says = -EAGAIN;
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), RESPONDER_ABSENT);
	assert_int_equal(pass.state, PASS_NONE);
	assert_int_equal(send(), 0);
	find_says = 0;
	begin(OPCODE_SEND_ONLY, 0);
}

TEST(pass_take__no_more_than_the_path_takes)
{
	struct packet packet = request(OPCODE_SEND_ONLY, 0);

	packet.payload_len = MTU + 1;
	assert_int_equal(pass_take(&rig.responder, &packet), FAULT_INVALID_REQUEST);
	packet.payload_len = MTU;
	assert_int_equal(pass_take(&rig.responder, &packet), RESPONDER_ABSENT);
	assert_int_equal(send(), 1);
	assert_memory_equal(catcher_at(&rig.fixture.catcher, 0)->payload, bytes, MTU);
}

/* The requester repeats what it has no answer of, so the one in flight is sent again, too. */
TEST(pass_take__one_at_a_time)
{
	begin(OPCODE_SEND_ONLY, 0);
	assert_int_equal(take(OPCODE_SEND_ONLY, 1), RESPONDER_ABSENT);
	assert_int_equal(pass.psn.v, FIRST_PSN);
	assert_int_equal(send(), 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->psn.v, LINK_PSN);
}

/* C9-110 */
TEST(pass_take__no_more_answers_than_the_resources)
{
	for (uint32_t i = 0; i < RESOURCES; i++) {
		begin(OPCODE_FETCH_ADD, i);
		assert_true(answer(OPCODE_ATOMIC_ACKNOWLEDGE, ACK, 0));
		assert_int_equal(take(OPCODE_FETCH_ADD, i), FAULT_NONE);
	}
	assert_int_equal(take(OPCODE_FETCH_ADD, RESOURCES), FAULT_INVALID_REQUEST);
	assert_int_equal(take(OPCODE_READ_REQUEST, RESOURCES), FAULT_INVALID_REQUEST);
	begin(OPCODE_SEND_ONLY, RESOURCES);
}

TEST(pass_take__reads_are_owed_and_the_next_request_waits_for_them)
{
	struct packet longest = request(OPCODE_READ_REQUEST, 0);

	longest.dma_length = WIRE_MESSAGE_MAX + 1;
	assert_int_equal(pass_take(&rig.responder, &longest), FAULT_INVALID_REQUEST);
	longest.dma_length = WIRE_MESSAGE_MAX;
	assert_int_equal(pass_take(&rig.responder, &longest), FAULT_NONE);
	assert_false(pass.came);
	assert_int_equal(pass.state, PASS_NONE);
	assert_int_equal(take(OPCODE_SEND_ONLY, 1), RESPONDER_ABSENT);
	assert_int_equal(pass.state, PASS_NONE);
	assert_int_equal(send(), 0);
	rig.replies.head = rig.replies.tail;
	begin(OPCODE_SEND_ONLY, 1);
}

TEST(pass_continues__a_message_names_one_queue)
{
	struct packet first = request(OPCODE_SEND_FIRST, 0), last = request(OPCODE_SEND_LAST, 1);
	struct packet again;

	assert_true(pass_continues(&pass, &first));
	assert_true(pass_continues(&pass, &last));
	last.xrc_srqn++;
	assert_false(pass_continues(&pass, &last));
	first.xrc_srqn++;
	assert_true(pass_continues(&pass, &first));
	assert_true(pass_continues(&pass, &last));
	/* Another request with the PSN of the one that is in flight. */
	begin(OPCODE_SEND_ONLY, 0);
	again = request(OPCODE_SEND_ONLY, 0);
	assert_true(pass_continues(&pass, &again));
	again.xrc_srqn++;
	assert_false(pass_continues(&pass, &again));
	again = request(OPCODE_SEND_ONLY_IMM, 0);
	assert_false(pass_continues(&pass, &again));
	again = request(OPCODE_SEND_ONLY_IMM, 1);
	assert_true(pass_continues(&pass, &again));
}

static enum mr_status read(uint32_t psn, uint32_t length, uint8_t **addr)
{
	struct packet part = request(OPCODE_READ_REQUEST, 0);

	part.dma_length = length;
	*addr = NULL;
	return pass_read(&pass, &part, psn_make(psn), addr);
}

TEST(pass_read__fetches_the_payload_of_a_response)
{
	uint8_t *addr;

	assert_int_equal(read(5, 100, &addr), MR_ABSENT);
	assert_int_equal(send(), 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->opcode,
			 OPCODE_XRC | OPCODE_READ_REQUEST);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 100);
	assert_int_equal(read(5, 100, &addr), MR_ABSENT);
	/* Only the requester's repetition makes it due. */
	assert_int_equal(send(), 0);
	assert_false(acknowledge());
	assert_false(answer(OPCODE_ACKNOWLEDGE, AETH_RNR_NAK | 1, 0));
	assert_false(answer(OPCODE_READ_RESPONSE_ONLY, ACK, 99));
	assert_int_equal(read(5, 100, &addr), MR_ABSENT);
	assert_true(answer(OPCODE_READ_RESPONSE_ONLY, ACK, 100));
	assert_int_equal(link.psn.v, LINK_PSN);
	assert_int_equal(read(5, 100, &addr), MR_OK);
	assert_memory_equal(addr, bytes, 100);
	assert_int_equal(read(5, 100, &addr), MR_OK);
	pass_read_done(&pass);
	assert_int_equal(read(5, 100, &addr), MR_ABSENT);
	assert_int_equal(send(), 1);
}

TEST(pass_read__of_memory_that_may_not_be_read)
{
	uint8_t *addr;

	assert_int_equal(read(5, 100, &addr), MR_ABSENT);
	assert_true(answer(OPCODE_ACKNOWLEDGE, AETH_NAK | NAK_REMOTE_ACCESS, 0));
	assert_int_equal(read(5, 100, &addr), MR_NO_ACCESS);
	assert_int_equal(pass.state, PASS_NONE);
	find_says = -ENOENT;
	assert_int_equal(read(5, 100, &addr), MR_NO_ACCESS);
	find_says = -EAGAIN;
	assert_int_equal(read(5, 100, &addr), MR_ABSENT);
	assert_int_equal(pass.state, PASS_NONE);
}

/* A response waits while something else is in flight, and takes the place of what has come for
 * another one. */
TEST(pass_read__of_another_response)
{
	uint8_t *addr;

	assert_int_equal(read(5, 100, &addr), MR_ABSENT);
	assert_int_equal(read(6, 100, &addr), MR_ABSENT);
	assert_int_equal(pass.psn.v, 5);
	assert_true(answer(OPCODE_READ_RESPONSE_ONLY, ACK, 100));
	assert_int_equal(read(5, 99, &addr), MR_ABSENT);
	assert_int_equal(pass.packet.dma_length, 99);
	assert_int_equal(send(), 1);
	assert_true(answer(OPCODE_READ_RESPONSE_ONLY, ACK, 99));
	assert_int_equal(read(6, 99, &addr), MR_ABSENT);
	assert_int_equal(pass.psn.v, 6);
	pass_reset(&pass);
	begin(OPCODE_SEND_ONLY, 0);
	assert_true(acknowledge());
	/* The outcome of a request is not lost for a READ. */
	assert_int_equal(read(6, 99, &addr), MR_ABSENT);
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), FAULT_NONE);
}

static void expect_part(int32_t before, int32_t expected)
{
	uint8_t *addr;

	link.read_psn = psn_add(link.psn, before);
	pass_reset(&pass);
	assert_int_equal(read(5, 100, &addr), MR_ABSENT);
	assert_int_equal(psn_diff(pass.link_psn, link.psn), expected);
	assert_int_equal(psn_diff(link.read_psn, link.psn), expected);
}

/* The stand-in answers a READ again from its range of duplicates. */
TEST(pass_read__each_part_has_a_psn_of_its_own_before_the_next_request)
{
	expect_part(-100, -99);
	expect_part(-2, -1);
	expect_part(-1, -REACH);
	expect_part(0, -REACH);
	expect_part(5, -REACH);
	expect_part(-REACH - 1, -REACH);
	expect_part(-REACH - 2, -REACH);
	expect_part(-REACH, -REACH + 1);
}

TEST(pass_forget_link__fails_what_is_in_flight_there)
{
	begin(OPCODE_SEND_ONLY, 0);
	pass_again(&pass);
	pass_forget_link(&pass, &other_link);
	assert_int_equal(pass.state, PASS_SENT);
	pass_forget_link(&pass, &link);
	assert_int_equal(send(), 0);
	assert_null(pass.link);
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), FAULT_INVALID_REQUEST);
}

/* Return what was said of the newest fault. */
static const char *why(void)
{
	const char *reason = reason_take(REASON_FAULT);

	assert_non_null(reason);
	return reason;
}

TEST(pass_take__says_why_it_refuses)
{
	struct packet packet = request(OPCODE_SEND_ONLY, 0);

	reason_wanted = true;
	packet.payload_len = MTU + 1;
	assert_int_equal(pass_take(&rig.responder, &packet), FAULT_INVALID_REQUEST);
	assert_non_null(strstr(why(), "path_mtu"));
	packet = request(OPCODE_SEND_ONLY, 0);
	packet.xrc_srqn = NOBODYS;
	assert_int_equal(pass_take(&rig.responder, &packet), FAULT_INVALID_REQUEST);
	assert_non_null(strstr(why(), "no shared receive queue 49153"));
	begin(OPCODE_SEND_ONLY, 0);
	packet = answer_of(OPCODE_ACKNOWLEDGE);
	packet.syndrome = AETH_NAK | NAK_REMOTE_ACCESS;
	assert_true(pass_answer(&pass, &packet));
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), FAULT_ACCESS);
	assert_string_equal(why(),
			    "the process with the shared receive queue 32769 refused it; if it "
			    "has --explain, it says why under PSN 0xfffffe");
	begin(OPCODE_SEND_ONLY, 0);
	pass_forget_link(&pass, &link);
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), FAULT_INVALID_REQUEST);
	assert_non_null(strstr(why(), "has ended"));
	reason_wanted = false;
}

TEST(pass_reset__forgets_everything)
{
	const uint32_t epoch = pass.epoch;
	struct packet last = request(OPCODE_SEND_LAST, 1), first = request(OPCODE_SEND_FIRST, 0);

	assert_true(pass_continues(&pass, &first));
	assert_int_equal(take(OPCODE_SEND_ONLY, 0), RESPONDER_ABSENT);
	responder_reset(&rig.responder, psn_make(FIRST_PSN));
	assert_int_equal(pass.epoch, epoch + 1);
	assert_int_equal(pass.state, PASS_NONE);
	assert_false(pass.came);
	assert_null(pass.link);
	assert_int_equal(send(), 0);
	assert_false(pass_continues(&pass, &last));
}
