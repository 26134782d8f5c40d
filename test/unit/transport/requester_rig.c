/* SPDX-License-Identifier: BSD-3-Clause */
/* A requester with a send queue and everything around it. */
#include "requester_rig.h"

struct requester_rig rig;

int requester_rig_set_up(TEST_STATE)
{
	const struct sq_attr attr = {.max_wr = 64, .max_sge = 32, .max_inline = 600};

	fixture_set_up(&rig.fixture, MTU, 4);
	region_set_up(&rig.memory, rig.fixture.pd, MEMORY, IBV_ACCESS_LOCAL_WRITE, SEED);
	assert_int_equal(sq_init(&rig.sq, &attr), 0);
	scoreboard_init(&rig.board);
	rig.loss = (struct loss){.board = &rig.board, .max_responses = RESPONSES};
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
	return 0;
}

int requester_rig_tear_down(TEST_STATE)
{
	sq_fini(&rig.sq);
	region_tear_down(&rig.memory);
	fixture_tear_down(&rig.fixture);
	return 0;
}

void post_list(struct ibv_send_wr wr, struct ibv_sge *sge, int num_sge)
{
	struct ibv_send_wr *bad;

	wr.sg_list = sge;
	wr.num_sge = num_sge;
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = REMOTE;
		wr.wr.atomic.rkey = RKEY;
	} else if (wr.opcode != IBV_WR_SEND_WITH_INV) {
		wr.wr.rdma.remote_addr = REMOTE;
		wr.wr.rdma.rkey = RKEY;
	}
	assert_int_equal(sq_post(&rig.sq, IBV_QPT_RC, &wr, &bad), 0);
}

void post(enum ibv_wr_opcode opcode, uint32_t length, unsigned int flags)
{
	struct ibv_sge sge = region_sge(&rig.memory, 0, length);

	post_list((struct ibv_send_wr){.opcode = opcode, .send_flags = flags}, &sge, length > 0);
}

void post_bad(void)
{
	struct ibv_sge sge = {
		.addr = region_iova(&rig.memory, 0), .length = 1, .lkey = FIXTURE_NOBODY};

	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, &sge, 1);
}

unsigned int send_some(unsigned int budget)
{
	unsigned int sent;

	catcher_clear(&rig.fixture.catcher);
	sent = requester_send(&rig.requester, &rig.fixture.catcher.sink, budget, &rig.more);
	assert_int_equal(sent, rig.fixture.catcher.count);
	return sent;
}

unsigned int send_all(void)
{
	const unsigned int sent = send_some(10000);

	assert_false(rig.more);
	return sent;
}

void acknowledge(uint32_t psn, unsigned int pops)
{
	loss_on_ack(&rig.loss, psn_make(FIRST_PSN + psn), 0);
	while (pops-- > 0)
		sq_pop(&rig.sq);
}

const struct packet *packet_at(unsigned int i)
{
	return catcher_at(&rig.fixture.catcher, i);
}

void expect_packet(unsigned int i, uint8_t operation, uint32_t psn)
{
	catcher_expect(&rig.fixture.catcher, i, operation, FIRST_PSN + psn);
}

void expect_payload(unsigned int i, size_t offset, uint32_t len)
{
	assert_int_equal(packet_at(i)->payload_len, len);
	assert_memory_equal(packet_at(i)->payload, rig.memory.bytes + offset, len);
}

void expect_reth(unsigned int i, uint64_t offset, uint32_t length)
{
	assert_int_equal(packet_at(i)->iova, REMOTE + offset);
	assert_int_equal(packet_at(i)->rkey, RKEY);
	assert_int_equal(packet_at(i)->dma_length, length);
}