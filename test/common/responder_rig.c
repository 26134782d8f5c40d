/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder with everything around it. */
#include "long_memory.h"
#include "responder_rig.h"

#include <sys/mman.h>

#include "test.h"
#include "queues.h"

struct responder_rig rig;

int responder_rig_set_up(TEST_STATE)
{
	struct fixture *fixture = &rig.fixture;

	fixture_set_up(fixture, MTU, CQE);
	region_set_up(&rig.memory, fixture->pd, MEMORY, REMOTE | IBV_ACCESS_LOCAL_WRITE, SEED);
	region_set_up(&rig.inbox, fixture->pd, INBOX, IBV_ACCESS_LOCAL_WRITE, SEED + 1);
	assert_int_equal(rq_init(&rig.rq, CQE, 4), 0);
	rig.replies = (struct replies){
		.peer = &fixture->peer, .counters = &fixture->counters, .qpn = FIXTURE_QPN};
	assert_int_equal(replies_init(&rig.replies, RESOURCES), 0);
	rig.receive = (struct receive){.sge = rig.sge};
	rig.responder = (struct responder){
		.pd = fixture->pd,
		.rq = &rig.rq,
		.cq = fixture->cq,
		.receive = &rig.receive,
		.replies = &rig.replies,
		.counters = &fixture->counters,
		.qpn = FIXTURE_QPN,
		.service = OPCODE_RC,
		.peer_qpn = FIXTURE_PEER_QPN,
		.mtu = MTU,
		.access = REMOTE,
		.min_rnr_timer = RNR_TIMER,
	};
	responder_reset(&rig.responder, psn_make(FIRST_PSN));
	return 0;
}

int responder_rig_tear_down(TEST_STATE)
{
	replies_fini(&rig.replies);
	rq_fini(&rig.rq);
	region_tear_down(&rig.memory);
	region_tear_down(&rig.inbox);
	fixture_tear_down(&rig.fixture);
	return 0;
}

void responder_rig_renew(void)
{
	responder_rig_tear_down(NULL);
	responder_rig_set_up(NULL);
}

enum fault rig_receive(const struct packet *packet)
{
	const enum fault fault = responder_receive(&rig.responder, packet);

	if (fault == FAULT_NONE)
		responder_check(&rig.responder);
	return fault;
}

enum fault rig_take(struct packet_fields fields)
{
	fields.psn += FIRST_PSN;
	return rig_receive(fixture_packet(&rig.fixture, &fields));
}

unsigned int rig_answers(void)
{
	struct catcher *catcher = &rig.fixture.catcher;
	enum fault fault;
	bool more;

	catcher_clear(catcher);
	replies_send(&rig.replies, &catcher->sink, 1000, &more, &fault);
	assert_int_equal(fault, FAULT_NONE);
	return catcher->count;
}

void expect_answer(unsigned int i, uint8_t operation, uint32_t psn)
{
	catcher_expect(&rig.fixture.catcher, i, operation, FIRST_PSN + psn);
}

void expect_no_answer(void)
{
	const unsigned int count = rig_answers();

	assert_int_equal(count, 0);
}

void expect_aeth(uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	const unsigned int count = rig_answers();
	const struct packet *answer = catcher_at(&rig.fixture.catcher, 0);

	assert_int_equal(count, 1);
	expect_answer(0, OPCODE_ACKNOWLEDGE, psn);
	assert_int_equal(answer->syndrome, syndrome);
	assert_int_equal(answer->msn, msn);
}

void expect_memory_untouched(void)
{
	region_expect_pattern(&rig.memory, 0, MEMORY, SEED);
	region_expect_pattern(&rig.inbox, 0, INBOX, SEED + 1);
}

void expect_payload(const uint8_t *at, uint32_t psn, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(at[i], pattern_byte(FIRST_PSN + psn, i));
}

void rig_post(uint64_t wr_id, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(rq_post(&rig.rq, &wr, &bad), 0);
}

uint32_t rig_posted(void)
{
	return rig.rq.prod - rig.rq.cons;
}

void rig_read_on(uint32_t from, uint32_t psns)
{
	const size_t bytes = WIRE_MESSAGE_MAX;
	void *addr = long_memory(bytes);
	struct mr *mr;

	assert_int_equal(mr_register(rig.fixture.pd, addr, bytes, (uintptr_t)addr,
				     IBV_ACCESS_REMOTE_READ, &mr),
			 0);
	while (psns > 0) {
		const uint32_t some = RTE_MIN(psns, WIRE_MESSAGE_MAX / MTU);

		EXPECT_TAKEN(OPCODE_READ_REQUEST, from, .iova = (uintptr_t)addr, .rkey = mr->key,
			     .dma_length = some * MTU);
		rig.replies.head = rig.replies.tail;
		from += some;
		psns -= some;
	}
	assert_int_equal(mr_deregister(mr), 0);
	munmap(addr, bytes);
}
