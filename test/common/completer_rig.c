/* SPDX-License-Identifier: BSD-3-Clause */
/* A completer with a requester that sends. */
#include "completer_rig.h"
#include "test.h"
#include "queues.h"
#include "transport/check.h"

struct completer_rig completer_rig;

int completer_rig_set_up(TEST_STATE)
{
	const struct sq_attr attr = {.max_wr = 512, .max_sge = 4};

	fixture_set_up(&rig.fixture, MTU, CQE);
	region_set_up(&rig.memory, rig.fixture.pd, MEMORY, IBV_ACCESS_LOCAL_WRITE, SEED);
	region_set_up(&rig.readable, rig.fixture.pd, MTU, 0, SEED + 1);
	assert_int_equal(sq_init(&rig.sq, &attr), 0);
	scoreboard_init(&rig.board);
	rig.loss = (struct loss){
		.board = &rig.board,
		.max_responses = 16,
		.recovery = {.timeout_ns = TIMEOUT_NS, .retry_cnt = RETRIES, .rnr_retry = RETRIES}};
	loss_init(&rig.loss, psn_make(FIRST_PSN));
	rig.requester = (struct requester){.sq = &rig.sq,
					   .pd = rig.fixture.pd,
					   .peer = &rig.fixture.peer,
					   .loss = &rig.loss,
					   .pacer = &rig.fixture.pacer,
					   .counters = &rig.fixture.counters,
					   .service = OPCODE_RC};
	fixture_pace(&rig.fixture, &rig.loss);
	requester_reset(&rig.requester, REQUESTER_RUNNING);
	rig.completer = (struct completer){.sq = &rig.sq,
					   .cq = rig.fixture.cq,
					   .pd = rig.fixture.pd,
					   .loss = &rig.loss,
					   .counters = &rig.fixture.counters,
					   .qpn = FIXTURE_QPN,
					   .mtu = MTU};
	return 0;
}

int completer_rig_tear_down(TEST_STATE)
{
	completer_reset(&rig.completer);
	ooo_pool_destroy(rig.pool);
	rig.pool = NULL;
	scoreboard_fini(&rig.board);
	sq_fini(&rig.sq);
	region_tear_down(&rig.memory);
	region_tear_down(&rig.readable);
	fixture_tear_down(&rig.fixture);
	return 0;
}

void post_list(uint64_t wr_id, enum ibv_wr_opcode opcode, unsigned int flags, struct ibv_sge *sge,
	       int num_sge)
{
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .opcode = opcode,
				 .send_flags = flags,
				 .sg_list = sge,
				 .num_sge = num_sge},
			   *bad;

	assert_int_equal(sq_post(&rig.sq, IBV_QPT_RC, &wr, &bad), 0);
}

void post(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = region_sge(&rig.memory, 0, length);

	post_list(wr_id, opcode, SIGNALED, &sge, length > 0);
}

/* Check what holds between two calls. */
static void check(void)
{
	loss_check(&rig.loss);
	requester_check(&rig.requester);
	completer_check(&rig.completer);
}

unsigned int send_some(unsigned int budget)
{
	unsigned int sent;
	bool more;

	catcher_clear(&rig.fixture.catcher);
	sent = requester_send(&rig.requester, &rig.fixture.catcher.sink, budget, &more);
	if (sent > 0)
		recovery_sent(&rig.loss.recovery, NOW_NS);
	check();
	return sent;
}

unsigned int send_all(void)
{
	return send_some(1000);
}

enum fault take(struct packet_fields fields)
{
	enum fault fault;

	fields.psn += FIRST_PSN;
	fault = completer_receive(&rig.completer, fixture_packet(&rig.fixture, &fields), NOW_NS);
	if (fault == FAULT_NONE)
		check();
	return fault;
}

void acknowledge(uint32_t psn)
{
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = ACK);
}

void nak(uint32_t psn)
{
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE);
}

struct ibv_wc expect_success(uint64_t wr_id)
{
	return fixture_completion(rig.fixture.cq, wr_id, IBV_WC_SUCCESS);
}

void expect_none(void)
{
	fixture_no_completion(rig.fixture.cq);
}

void expect_flight(uint32_t una, uint32_t next)
{
	assert_int_equal(rig.loss.una.v, psn_make(FIRST_PSN + una).v);
	assert_int_equal(rig.loss.next.v, psn_make(FIRST_PSN + next).v);
}

void expect_stored(size_t offset, uint32_t psn, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(rig.memory.bytes[offset + i], pattern_byte(FIRST_PSN + psn, i));
}

void let_keep(void)
{
	assert_int_equal(ooo_pool_create(16, &rig.pool), 0);
	rig.completer.ooo.pool = rig.pool;
}
