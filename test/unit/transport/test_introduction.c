/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/replies.c and replies_send.c: when a responder introduces itself. */
#include <stdint.h>

#include "fixture.h"
#include "transport/replies.h"
#include "transport/sack.h"
#include "wire/headers.h"
#include "test.h"

#define MTU	 256u
#define EXPECTED 5u

static struct fixture fixture;
static struct replies replies;
static struct region region;

static int set_up(TEST_STATE)
{
	fixture_set_up(&fixture, MTU, 4);
	region_set_up(&region, fixture.pd, 2 * MTU, IBV_ACCESS_REMOTE_READ, 1);
	replies = (struct replies){.peer = &fixture.peer,
				   .counters = &fixture.counters,
				   .introductions = SACK_INTRODUCTIONS_MAX - 1};
	assert_int_equal(replies_init(&replies, 1), 0);
	replies_introduce(&replies, psn_make(EXPECTED));
	return 0;
}

static int tear_down(TEST_STATE)
{
	replies_fini(&replies);
	region_tear_down(&region);
	fixture_tear_down(&fixture);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static unsigned int send_into(unsigned int room, unsigned int budget)
{
	enum fault fault;
	bool more;
	unsigned int sent;

	catcher_clear(&fixture.catcher);
	fixture.catcher.room = room;
	sent = replies_send(&replies, &fixture.catcher.sink, budget, &more, &fault);
	assert_int_equal(fault, FAULT_NONE);
	return sent;
}

static unsigned int send(unsigned int budget)
{
	return send_into(UINT32_MAX, budget);
}

static void expect_introduction(unsigned int i)
{
	const struct packet *packet = catcher_at(&fixture.catcher, i);

	catcher_expect(&fixture.catcher, i, OPCODE_ACKNOWLEDGE,
		       psn_add(psn_make(EXPECTED), -SACK_INTRODUCTION_PSNS).v);
	assert_int_equal(packet->syndrome, AETH_ACK | AETH_CREDIT_NONE);
	assert_int_equal(packet->msn, sack_introduction_msn(psn_make(EXPECTED), fixture.peer.qpn));
}

/* It goes with the next answer, and a packet of its own would tell the peer nothing more. */
TEST(introduction__follows_an_answer)
{
	assert_int_equal(send(9), 0);
	assert_int_equal(fixture.catcher.count, 0);
	replies_ack(&replies, psn_make(EXPECTED - 1), 1);
	assert_int_equal(send(9), 1);
	assert_int_equal(fixture.catcher.count, 2);
	catcher_expect(&fixture.catcher, 0, OPCODE_ACKNOWLEDGE, EXPECTED - 1);
	expect_introduction(1);
}

TEST(introduction__is_sent_once)
{
	for (uint32_t i = 0; i < 2; i++) {
		replies_ack(&replies, psn_make(EXPECTED - 1 + i), 1 + i);
		assert_int_equal(send(9), 1);
		assert_int_equal(fixture.catcher.count, 2 - i);
	}
	assert_int_equal(replies.introductions, SACK_INTRODUCTIONS_MAX - 2);
}

TEST(introduction__is_owed_until_the_sink_has_room)
{
	for (uint32_t i = 0; i < 2; i++) {
		replies_ack(&replies, psn_make(EXPECTED - 1 + i), 1 + i);
		assert_int_equal(send_into(1 + i, 9), 1);
		assert_int_equal(fixture.catcher.count, 1 + i);
	}
	expect_introduction(1);
}

/* Soft-RoCE of some kernels takes it for the end of the READ. */
TEST(introduction__does_not_come_between_responses)
{
	const struct reply read = {.kind = REPLY_READ,
				   .pd = fixture.pd,
				   .first = psn_make(EXPECTED),
				   .last = psn_make(EXPECTED + 1),
				   .msn = 1,
				   .iova = region_iova(&region, 0),
				   .rkey = region.mr->key,
				   .length = 2 * MTU};

	assert_true(replies_reserve(&replies));
	replies_add(&replies, &read);
	assert_int_equal(send(1), 1);
	assert_int_equal(fixture.catcher.count, 1);
	assert_int_equal(send(1), 1);
	assert_int_equal(fixture.catcher.count, 2);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_RESPONSE_LAST, EXPECTED + 1);
	expect_introduction(1);
}
