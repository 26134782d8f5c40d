/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/replies.c: READ responses, atomic results and acknowledgements, their
 * order and their memory. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "calloc_limit.h"
#include "fixture.h"
#include "transport/replies.h"
#include "transport/sack.h"
#include "wire/headers.h"
#include "test.h"

#define MTU	  256u
#define RESOURCES 3u
#define SEED	  5u

static struct fixture fixture;
static struct replies replies;
static struct region region;

static int set_up(TEST_STATE)
{
	fixture_set_up(&fixture, MTU, 4);
	region_set_up(&region, fixture.pd, 8 * MTU, IBV_ACCESS_REMOTE_READ, SEED);
	replies = (struct replies){.peer = &fixture.peer, .counters = &fixture.counters};
	assert_int_equal(replies_init(&replies, RESOURCES), 0);
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

static struct reply read_of(uint32_t psn, size_t offset, uint32_t length, uint32_t msn)
{
	const uint32_t psns = length == 0 ? 1 : (length + MTU - 1) / MTU;

	return (struct reply){.kind = REPLY_READ,
			      .pd = fixture.pd,
			      .first = psn_make(psn),
			      .last = psn_make(psn + psns - 1),
			      .msn = msn,
			      .iova = region_iova(&region, offset),
			      .rkey = region.mr->key,
			      .length = length};
}

static struct reply atomic_of(uint32_t psn, uint64_t original, uint32_t msn)
{
	return (struct reply){.kind = REPLY_ATOMIC,
			      .first = psn_make(psn),
			      .last = psn_make(psn),
			      .msn = msn,
			      .original = original};
}

static void add(struct reply reply)
{
	assert_true(replies_room(&replies));
	assert_true(replies_reserve(&replies));
	replies_add(&replies, &reply);
}

/* Send everything; returns the fault. */
static enum fault send_all(void)
{
	enum fault fault;
	unsigned int sent;
	bool more;

	catcher_clear(&fixture.catcher);
	sent = replies_send(&replies, &fixture.catcher.sink, 1000, &more, &fault);
	assert_int_equal(sent, fixture.catcher.count);
	assert_false(more);
	return fault;
}

static void expect_read(unsigned int i, uint8_t operation, uint32_t psn, size_t offset,
			uint32_t len)
{
	const struct packet *packet = catcher_at(&fixture.catcher, i);

	catcher_expect(&fixture.catcher, i, operation, psn);
	assert_int_equal(packet->payload_len, len);
	assert_memory_equal(packet->payload, region.bytes + offset, len);
}

static void expect_aeth(unsigned int i, uint8_t syndrome, uint32_t msn)
{
	const struct packet *packet = catcher_at(&fixture.catcher, i);

	assert_int_equal(packet->syndrome, syndrome);
	assert_int_equal(packet->msn, msn);
}

static void expect_ack(unsigned int i, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	catcher_expect(&fixture.catcher, i, OPCODE_ACKNOWLEDGE, psn);
	expect_aeth(i, syndrome, msn);
}

TEST(replies_init__none_means_no_room)
{
	assert_int_equal(replies_init(&replies, 0), 0);
	assert_false(replies_room(&replies));
	assert_null(replies_find(&replies, psn_make(1)));
	replies_ack(&replies, psn_make(1), 1);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
}

TEST(replies_init__keeps_what_is_owed_and_remembered)
{
	add(atomic_of(1, 11, 1));
	add(atomic_of(2, 22, 2));
	assert_int_equal(send_all(), FAULT_NONE);
	add(atomic_of(3, 33, 3));
	add(atomic_of(4, 44, 4));
	assert_int_equal(replies_init(&replies, 5), 0);
	assert_null(replies_find(&replies, psn_make(1)));
	assert_int_equal(replies_find(&replies, psn_make(2))->original, 22);
	add(atomic_of(5, 55, 5));
	assert_int_equal(replies_init(&replies, 4), 0);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(catcher_at(&fixture.catcher, i)->atomic_original, 33 + 11 * i);
	/* Only the newest stored answers are kept if there are fewer resources now. */
	assert_int_equal(replies_init(&replies, 2), 0);
	assert_null(replies_find(&replies, psn_make(3)));
	assert_int_equal(replies_find(&replies, psn_make(4))->original, 44);
	assert_int_equal(replies_find(&replies, psn_make(5))->original, 55);
}

TEST(replies_init__keeps_a_nak)
{
	add(atomic_of(1, 11, 1));
	replies_nak(&replies, AETH_NAK | NAK_PSN_SEQUENCE, psn_make(2), 1);
	assert_int_equal(replies_init(&replies, 5), 0);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	expect_ack(1, AETH_NAK | NAK_PSN_SEQUENCE, 2, 1);
}

TEST(replies_clear__forgets_everything)
{
	add(read_of(1, 0, 8, 1));
	replies_ack(&replies, psn_make(2), 2);
	replies_clear(&replies);
	assert_null(replies_find(&replies, psn_make(1)));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 0);
}

TEST(replies_clear__forgets_what_is_told)
{
	add(read_of(1, 0, 8, 1));
	replies_nak(&replies, AETH_NAK | NAK_PSN_SEQUENCE, psn_make(2), 1);
	replies.notice_due = true;
	page_wait_begin(&replies.page_wait);
	replies_clear(&replies);
	assert_int_equal(replies.newest, 0);
	assert_int_equal(replies.remembered, 0);
	assert_false(replies.nak_due);
	assert_false(replies.notice_due);
	assert_int_equal(replies.page_wait.since_ns, PAGE_WAIT_NONE);
}

/* There can be as many resources as a byte can count. Memory for them is allocated when they are
 * used. */
TEST(replies_grow__keeps_all_that_is_owed_and_remembered)
{
	const struct reply first = read_of(0, 0, 8, 0);
	uint32_t entries;

	replies_fini(&replies);
	assert_int_equal(replies_init(&replies, UINT8_MAX), 0);
	entries = replies.mask + 1;
	assert_true(entries < 8);
	for (uint32_t i = 0; i < UINT8_MAX; i++) {
		add(read_of(i, i * 8, 8, i));
		/* The order survives a growth, in the middle of a ring and at its end. */
		if (i == 0) {
			assert_int_equal(send_all(), FAULT_NONE);
			replies_repeat(&replies, &first);
		}
	}
	assert_true(replies.mask + 1 > entries);
	for (uint32_t i = 0; i < UINT8_MAX; i++)
		assert_int_equal(replies_find(&replies, psn_make(i))->msn, i);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, UINT8_MAX);
	for (uint32_t i = 0; i < UINT8_MAX; i++)
		expect_read(i, OPCODE_READ_RESPONSE_ONLY, i, i * 8, 8);
	for (uint32_t i = 0; i < UINT8_MAX; i++)
		add(read_of(1000 + i, 0, 8, 0));
	assert_false(replies_room(&replies));
	assert_null(replies_find(&replies, psn_make(UINT8_MAX - 1)));
}

TEST(replies_room__as_many_as_resources)
{
	for (uint32_t i = 0; i < RESOURCES; i++)
		add(atomic_of(i, i, i));
	assert_false(replies_room(&replies));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_true(replies_room(&replies));
}

TEST(replies_room__duplicates_take_none)
{
	for (uint32_t i = 0; i < RESOURCES; i++)
		add(atomic_of(i, i, i));
	assert_int_equal(send_all(), FAULT_NONE);
	/* The requester asks again for what it has not received, then receives it, and asks for
	 * something new. */
	for (uint32_t i = 0; i < RESOURCES; i++) {
		const struct reply reply = *replies_find(&replies, psn_make(i));

		replies_repeat(&replies, &reply);
	}
	for (uint32_t i = 0; i < RESOURCES; i++)
		add(atomic_of(10 + i, i, 10 + i));
	assert_false(replies_room(&replies));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2 * RESOURCES);
	catcher_expect(&fixture.catcher, 0, OPCODE_ATOMIC_ACKNOWLEDGE, 0);
	catcher_expect(&fixture.catcher, 5, OPCODE_ATOMIC_ACKNOWLEDGE, 12);
}

/* A requester that understands selective acknowledgements waits for the oldest ones. */
TEST(replies_repeat__goes_before_new_requests_of_a_peer_that_understands)
{
	struct reply reply;

	replies_set_capability(&replies, BTH_SACK_RESPONSE);
	add(read_of(1, 0, 3 * MTU, 1));
	add(read_of(4, 0, MTU, 2));
	assert_int_equal(send_all(), FAULT_NONE);
	add(read_of(5, MTU, 2 * MTU, 3));
	reply = read_of(2, MTU, MTU, 3);
	replies_repeat(&replies, &reply);
	reply = *replies_find(&replies, psn_make(4));
	replies_repeat(&replies, &reply);
	/* This one is new, although it is not stored. */
	replies_empty_read(&replies, psn_make(7), 4);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 5);
	expect_read(0, OPCODE_READ_RESPONSE_ONLY, 2, MTU, MTU);
	expect_read(1, OPCODE_READ_RESPONSE_ONLY, 4, 0, MTU);
	expect_read(2, OPCODE_READ_RESPONSE_FIRST, 5, MTU, MTU);
	expect_read(3, OPCODE_READ_RESPONSE_LAST, 6, 2 * MTU, MTU);
	expect_read(4, OPCODE_READ_RESPONSE_ONLY, 7, 0, 0);
}

/* A requester asks again for the middle of a READ that is being answered, and so has all of it
 * before the first answer has been sent whole. It may send another request then. */
TEST(replies_repeat__of_what_is_being_sent_leaves_nothing_owed)
{
	const uint32_t resources = sack_resources(RESOURCES);
	struct reply reply = read_of(2, MTU, 2 * MTU, 1);
	enum fault fault;
	bool more;

	replies_set_capability(&replies, BTH_SACK_RESPONSE);
	add(read_of(1, 0, 6 * MTU, 1));
	for (uint32_t i = 1; i < resources; i++)
		add(atomic_of(10 + i, i, 1 + i));
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 2, &more, &fault), 2);
	/* Its third response is sent by this, */
	replies_repeat(&replies, &reply);
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 2, &more, &fault), 2);
	expect_read(3, OPCODE_READ_RESPONSE_LAST, 3, 2 * MTU, MTU);
	replies_check(&replies);
	/* the fourth by itself, */
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 1, &more, &fault), 1);
	expect_read(4, OPCODE_READ_RESPONSE_MIDDLE, 4, 3 * MTU, MTU);
	assert_false(replies_room(&replies));
	/* and the rest again by this. */
	reply = read_of(4, 3 * MTU, 3 * MTU, 1);
	replies_repeat(&replies, &reply);
	reply = read_of(3, 2 * MTU, MTU, 1);
	replies_repeat(&replies, &reply);
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 3, &more, &fault), 3);
	expect_read(7, OPCODE_READ_RESPONSE_LAST, 6, 5 * MTU, MTU);
	replies_check(&replies);
	assert_true(replies_room(&replies));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, resources);
	expect_read(0, OPCODE_READ_RESPONSE_ONLY, 3, 2 * MTU, MTU);
	catcher_expect(&fixture.catcher, 1, OPCODE_ATOMIC_ACKNOWLEDGE, 11);
}

/* Its requester sent the request twice. */
TEST(replies_repeat__of_what_is_being_sent_is_nothing_to_a_peer_that_understands)
{
	const struct reply reply = read_of(1, 0, 3 * MTU, 1);
	enum fault fault;
	bool more;

	replies_set_capability(&replies, BTH_SACK_RESPONSE);
	add(reply);
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 1, &more, &fault), 1);
	replies_repeat(&replies, &reply);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
}

TEST(replies_set_capability__there_are_more_resources_for_a_peer_that_understands)
{
	const uint32_t more = sack_resources(RESOURCES);

	assert_int_equal(more, SACK_RESOURCES_FACTOR * RESOURCES);
	replies_set_capability(&replies, BTH_SACK_RESPONSE);
	for (uint32_t i = 0; i < more; i++)
		add(atomic_of(i, i, i));
	assert_false(replies_room(&replies));
	assert_int_equal(send_all(), FAULT_NONE);
	for (uint32_t i = 0; i < more; i++) {
		const struct reply reply = *replies_find(&replies, psn_make(i));

		replies_repeat(&replies, &reply);
	}
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, more);
	for (uint32_t i = 0; i < more; i++)
		assert_int_equal(catcher_at(&fixture.catcher, i)->atomic_original, i);
	/* The queue pair is connected to another peer. */
	replies_set_capability(&replies, 0);
	assert_null(replies_find(&replies, psn_make(more - RESOURCES - 1)));
	assert_non_null(replies_find(&replies, psn_make(more - RESOURCES)));
	replies_check(&replies);
}

TEST(replies_find__by_any_of_its_psns)
{
	add(read_of(0xfffffe, 0, 4 * MTU, 1));
	add(atomic_of(2, 7, 2));
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(replies_find(&replies, psn_make(0xfffffe + i))->msn, 1);
	assert_int_equal(replies_find(&replies, psn_make(2))->msn, 2);
	assert_null(replies_find(&replies, psn_make(0xfffffd)));
	assert_null(replies_find(&replies, psn_make(3)));
}

TEST(replies_find__the_oldest_is_forgotten)
{
	for (uint32_t i = 0; i < RESOURCES + 1; i++) {
		add(atomic_of(i, i, i));
		send_all();
	}
	assert_null(replies_find(&replies, psn_make(0)));
	for (uint32_t i = 1; i < RESOURCES + 1; i++)
		assert_int_equal(replies_find(&replies, psn_make(i))->original, i);
}

TEST(replies_find__over_the_wrap_of_the_indices)
{
	replies.newest = replies.head = replies.tail = UINT32_MAX - 1;
	for (uint32_t i = 0; i < RESOURCES; i++)
		add(atomic_of(i, 10 + i, i));
	for (uint32_t i = 0; i < RESOURCES; i++)
		assert_int_equal(replies_find(&replies, psn_make(i))->original, 10 + i);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, RESOURCES);
	for (uint32_t i = 0; i < RESOURCES; i++)
		assert_int_equal(catcher_at(&fixture.catcher, i)->atomic_original, 10 + i);
}

TEST(replies_repeat__is_owed_once)
{
	struct reply reply = read_of(1, 0, 3 * MTU, 1);

	add(reply);
	replies_repeat(&replies, &reply);
	reply = read_of(2, MTU, 2 * MTU, 1);
	replies_repeat(&replies, &reply);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 3);
	replies_repeat(&replies, &reply);
	replies_repeat(&replies, &reply);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	expect_read(0, OPCODE_READ_RESPONSE_FIRST, 2, MTU, MTU);
	expect_read(1, OPCODE_READ_RESPONSE_LAST, 3, 2 * MTU, MTU);
}

TEST(replies_repeat__what_was_sent_already_is_sent_again)
{
	const struct reply reply = read_of(1, 0, 3 * MTU, 1);
	enum fault fault;
	bool more;

	add(reply);
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 2, &more, &fault), 2);
	replies_repeat(&replies, &reply);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 4);
	expect_read(0, OPCODE_READ_RESPONSE_LAST, 3, 2 * MTU, MTU);
	expect_read(1, OPCODE_READ_RESPONSE_FIRST, 1, 0, MTU);
}

TEST(replies_repeat__more_than_fit_are_left_to_be_asked_for_again)
{
	add(read_of(0, 0, 8 * MTU, 1));
	assert_int_equal(send_all(), FAULT_NONE);
	/* Each READ begins before the previous one, so none of them is owed already. */
	for (uint32_t i = 8; i-- > 0;) {
		const struct reply reply = read_of(i, i * MTU, MTU, 1);

		replies_repeat(&replies, &reply);
	}
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, RESOURCES);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_RESPONSE_ONLY, 7);
}

/* Answers are owed to more requests than there are resources now, and are requested once more. */
TEST(replies_repeat__after_a_change_of_resources_overwrites_nothing)
{
	const struct reply first = read_of(0, 0, MTU, 1);

	assert_int_equal(replies_init(&replies, 8), 0);
	for (uint32_t i = 0; i < 8; i++)
		add(read_of(i, i * MTU, MTU, 1));
	assert_int_equal(replies_init(&replies, 4), 0);
	replies.pending[0].sent = 1; /* as if it were about to be asked for again */
	for (int i = 0; i < 4; i++)
		replies_repeat(&replies, &first);
	assert_false(replies_room_for_empty_read(&replies));
	replies.pending[0].sent = 0;
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 8);
	for (uint32_t i = 0; i < 8; i++)
		expect_read(i, OPCODE_READ_RESPONSE_ONLY, i, i * MTU, MTU);
}

TEST(replies_init__of_more_than_fit_takes_over_the_first)
{
	assert_int_equal(replies_init(&replies, 8), 0);
	for (uint32_t i = 0; i < 8; i++)
		add(read_of(i, i * MTU, MTU, 1));
	assert_int_equal(replies_init(&replies, 1), 0);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	expect_read(0, OPCODE_READ_RESPONSE_ONLY, 0, 0, MTU);
	expect_read(1, OPCODE_READ_RESPONSE_ONLY, 1, MTU, MTU);
}

TEST(replies_init__of_more_duplicates_than_fit_takes_over_the_first)
{
	for (uint32_t i = 0; i < RESOURCES; i++)
		add(read_of(i, i * MTU, MTU, 1));
	assert_int_equal(send_all(), FAULT_NONE);
	for (uint32_t i = 0; i < RESOURCES; i++) {
		const struct reply reply = read_of(i, i * MTU, MTU, 1);

		replies_repeat(&replies, &reply);
	}
	assert_int_equal(replies_init(&replies, 1), 0);
	add(read_of(10, 0, MTU, 2));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	expect_read(0, OPCODE_READ_RESPONSE_ONLY, 0, 0, MTU);
	expect_read(1, OPCODE_READ_RESPONSE_ONLY, 10, 0, MTU);
}

TEST(replies_empty_read__stands_in_its_turn)
{
	add(read_of(1, 0, 8, 1));
	replies_empty_read(&replies, psn_make(2), 2);
	replies_empty_read(&replies, psn_make(2), 2);
	add(atomic_of(3, 7, 3));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 3);
	expect_read(0, OPCODE_READ_RESPONSE_ONLY, 1, 0, 8);
	expect_read(1, OPCODE_READ_RESPONSE_ONLY, 2, 0, 0);
	expect_aeth(1, AETH_ACK | AETH_CREDIT_NONE, 2);
	catcher_expect(&fixture.catcher, 2, OPCODE_ATOMIC_ACKNOWLEDGE, 3);
	/* The answer is not stored, and takes no memory of the others. */
	assert_null(replies_find(&replies, psn_make(2)));
}

TEST(replies_empty_read__has_room_without_resources)
{
	assert_int_equal(replies_init(&replies, 0), 0);
	assert_true(replies_reserve_empty_read(&replies));
	replies_empty_read(&replies, psn_make(1), 1);
	assert_true(replies_reserve_empty_read(&replies));
	replies_empty_read(&replies, psn_make(2), 1);
	assert_false(replies_reserve_empty_read(&replies));
	replies_empty_read(&replies, psn_make(3), 1);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	assert_true(replies_reserve_empty_read(&replies));
}

/* Repeated requests come in bursts, even if few answers were owed before. */
TEST(replies_empty_read__has_as_much_room_as_resources)
{
	assert_int_equal(replies_init(&replies, 16), 0);
	for (uint32_t i = 0; i < 16; i++)
		replies_empty_read(&replies, psn_make(i), 1);
	assert_int_equal(replies.repeats, 16);
}

/* The duplicates may wait long, if congestion control delays their answers. */
TEST(replies_repeat_empty_read__leaves_room_for_new_requests)
{
	for (uint32_t resources = 1; resources <= 5; resources++) {
		assert_int_equal(replies_init(&replies, resources), 0);
		replies_clear(&replies);
		for (uint32_t i = 0; i < resources; i++)
			add(read_of(200 + i, 0, 8, 1));
		for (uint32_t i = 0; i < 2 * resources; i++)
			replies_repeat_empty_read(&replies, psn_make(i), 1);
		assert_int_equal(replies.repeats, resources);
		for (uint32_t i = 0; i < resources; i++) {
			assert_true(replies_reserve_empty_read(&replies));
			replies_empty_read(&replies, psn_make(100 + i), 1);
		}
		assert_int_equal(replies.repeats, 2 * resources);
		assert_int_equal(replies.tail - replies.head, 3 * resources);
	}
}

TEST(replies_empty_read__leaves_room_for_reads)
{
	uint32_t owed = 0;

	for (; replies_reserve_empty_read(&replies); owed++)
		replies_empty_read(&replies, psn_make(owed), 1);
	assert_true(owed >= RESOURCES);
	for (uint32_t i = 0; i < RESOURCES; i++)
		add(read_of(100 + i, 0, 8, 1));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, owed + RESOURCES);
}

TEST(replies_ack__the_newest_stands_for_all)
{
	replies_ack(&replies, psn_make(0xffffff), 4);
	replies_ack(&replies, psn_make(0), 5);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	expect_ack(0, AETH_ACK | AETH_CREDIT_NONE, 0, 5);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 0);
}

TEST(replies_nak__stays_over_an_acknowledgement)
{
	replies_nak(&replies, AETH_NAK | NAK_PSN_SEQUENCE, psn_make(9), 4);
	replies_ack(&replies, psn_make(9), 5);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	expect_ack(0, AETH_NAK | NAK_PSN_SEQUENCE, 9, 4);
}

TEST(replies_nak__the_last_one_is_sent)
{
	replies_nak(&replies, AETH_NAK | NAK_PSN_SEQUENCE, psn_make(9), 4);
	replies_nak(&replies, AETH_NAK | NAK_REMOTE_ACCESS, psn_make(9), 4);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	expect_ack(0, AETH_NAK | NAK_REMOTE_ACCESS, 9, 4);
}

/* The acknowledgement leaves first: a requester takes it for progress, and the RNR NAK for the lack
 * of progress. */
TEST(replies_nak__an_acknowledgement_goes_before_an_rnr_nak)
{
	replies_ack(&replies, psn_make(8), 4);
	replies_nak(&replies, AETH_RNR_NAK | 3, psn_make(9), 4);
	assert_false(replies_owe_ack_only(&replies));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	expect_ack(0, AETH_ACK | AETH_CREDIT_NONE, 8, 4);
	expect_ack(1, AETH_RNR_NAK | 3, 9, 4);
	assert_false(replies_due(&replies));
	replies_nak(&replies, AETH_RNR_NAK | 3, psn_make(9), 4);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	expect_ack(0, AETH_RNR_NAK | 3, 9, 4);
}

TEST(replies_withdraw_nak__leaves_the_acknowledgement)
{
	replies_ack(&replies, psn_make(8), 4);
	replies_nak(&replies, AETH_NAK | NAK_PSN_SEQUENCE, psn_make(9), 4);
	replies_withdraw_nak(&replies);
	assert_true(replies_owe_ack_only(&replies));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	expect_ack(0, AETH_ACK | AETH_CREDIT_NONE, 8, 4);
}

TEST(replies_withdraw_nak__of_either_kind)
{
	replies_nak(&replies, AETH_NAK | NAK_PSN_SEQUENCE, psn_make(9), 4);
	replies_withdraw_nak(&replies);
	assert_false(replies_due(&replies));
	replies_nak(&replies, AETH_RNR_NAK | 3, psn_make(9), 4);
	replies_withdraw_nak(&replies);
	assert_false(replies_due(&replies));
}

TEST(replies_send__one_response_of_a_short_read)
{
	add(read_of(0xffffff, 3, 5, 0xabcdef));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	expect_read(0, OPCODE_READ_RESPONSE_ONLY, 0xffffff, 3, 5);
	assert_int_equal(counters_get(&fixture.counters, COUNTER_tx_payload_bytes_read), 5);
	expect_aeth(0, AETH_ACK | AETH_CREDIT_NONE, 0xabcdef);
}

TEST(replies_send__responses_of_a_long_read_over_the_wrap)
{
	add(read_of(0xfffffe, 1, 3 * MTU + 1, 9));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 4);
	expect_read(0, OPCODE_READ_RESPONSE_FIRST, 0xfffffe, 1, MTU);
	expect_aeth(0, AETH_ACK | AETH_CREDIT_NONE, 9);
	expect_read(1, OPCODE_READ_RESPONSE_MIDDLE, 0xffffff, 1 + MTU, MTU);
	expect_read(2, OPCODE_READ_RESPONSE_MIDDLE, 0, 1 + 2 * MTU, MTU);
	expect_read(3, OPCODE_READ_RESPONSE_LAST, 1, 1 + 3 * MTU, 1);
	expect_aeth(3, AETH_ACK | AETH_CREDIT_NONE, 9);
}

TEST(replies_send__an_empty_read_needs_no_key)
{
	struct reply reply = read_of(1, 0, 0, 1);

	reply.rkey = FIXTURE_NOBODY;
	add(reply);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	expect_read(0, OPCODE_READ_RESPONSE_ONLY, 1, 0, 0);
}

TEST(replies_send__the_result_of_an_atomic)
{
	add(atomic_of(3, 0x0123456789abcdef, 2));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_ATOMIC_ACKNOWLEDGE, 3);
	expect_aeth(0, AETH_ACK | AETH_CREDIT_NONE, 2);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->atomic_original, 0x0123456789abcdef);
}

TEST(replies_send__in_the_order_of_the_requests)
{
	add(read_of(1, 0, 2 * MTU, 1));
	add(atomic_of(3, 1, 2));
	replies_ack(&replies, psn_make(5), 4);
	add(read_of(4, 0, 8, 3));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 5);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_RESPONSE_FIRST, 1);
	catcher_expect(&fixture.catcher, 1, OPCODE_READ_RESPONSE_LAST, 2);
	catcher_expect(&fixture.catcher, 2, OPCODE_ATOMIC_ACKNOWLEDGE, 3);
	catcher_expect(&fixture.catcher, 3, OPCODE_READ_RESPONSE_ONLY, 4);
	expect_ack(4, AETH_ACK | AETH_CREDIT_NONE, 5, 4);
}

TEST(replies_send__a_response_acknowledges_what_came_before)
{
	replies_ack(&replies, psn_make(0xffffff), 1);
	add(read_of(0, 0, 8, 2));
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_RESPONSE_ONLY, 0);
}

TEST(replies_send__a_nak_follows_the_responses)
{
	add(read_of(1, 0, 8, 1));
	replies_nak(&replies, AETH_NAK | NAK_INVALID_REQUEST, psn_make(2), 1);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	catcher_expect(&fixture.catcher, 0, OPCODE_READ_RESPONSE_ONLY, 1);
	expect_ack(1, AETH_NAK | NAK_INVALID_REQUEST, 2, 1);
}

TEST(replies_send__stops_at_the_budget_and_goes_on)
{
	enum fault fault;
	bool more;

	add(read_of(1, 0, 3 * MTU, 1));
	replies_ack(&replies, psn_make(4), 2);
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 0, &more, &fault), 0);
	assert_true(more);
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 2, &more, &fault), 2);
	assert_true(more);
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 2, &more, &fault), 2);
	assert_false(more);
	catcher_expect(&fixture.catcher, 2, OPCODE_READ_RESPONSE_LAST, 3);
	catcher_expect(&fixture.catcher, 3, OPCODE_ACKNOWLEDGE, 4);
}

TEST(replies_send__stops_at_a_full_sink_and_goes_on)
{
	enum fault fault;
	bool more;

	add(read_of(1, 0, 3 * MTU, 1));
	replies_ack(&replies, psn_make(4), 2);
	for (unsigned int i = 0; i < 4; i++) {
		fixture.catcher.room = 1;
		assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 9, &more, &fault),
				 1);
		assert_int_equal(more, i < 3);
	}
	expect_read(1, OPCODE_READ_RESPONSE_MIDDLE, 2, MTU, MTU);
	catcher_expect(&fixture.catcher, 3, OPCODE_ACKNOWLEDGE, 4);
}

TEST(replies_send__memory_that_went_away_is_a_fault_at_its_place)
{
	enum fault fault;
	bool more;

	add(read_of(1, 0, 3 * MTU, 1));
	add(atomic_of(4, 1, 2));
	assert_int_equal(replies_send(&replies, &fixture.catcher.sink, 1, &more, &fault), 1);
	region_deregister(&region);
	assert_int_equal(send_all(), FAULT_ACCESS);
	/* No request behind it is answered. */
	assert_int_equal(fixture.catcher.count, 1);
	expect_ack(0, AETH_NAK | NAK_REMOTE_ACCESS, 2, 1);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 0);
}

TEST(replies_send__memory_gone_since_the_first_answer_fails_nobody)
{
	const struct reply reply = read_of(1, 0, 2 * MTU, 1);

	add(reply);
	assert_int_equal(send_all(), FAULT_NONE);
	/* The requester had received the answer, and had told our application, before the duplicate
	 * came. */
	replies_repeat(&replies, &reply);
	add(atomic_of(3, 7, 2));
	region_deregister(&region);
	assert_int_equal(send_all(), FAULT_NONE);
	assert_int_equal(fixture.catcher.count, 2);
	/* A requester that still waits for the answer learns why it will not come. */
	expect_ack(0, AETH_NAK | NAK_REMOTE_ACCESS, 1, 1);
	catcher_expect(&fixture.catcher, 1, OPCODE_ATOMIC_ACKNOWLEDGE, 3);
}

/* Without memory a request is dropped, and what is owed stays. */
TEST(replies_grow__without_memory)
{
	const struct reply reply = atomic_of(10, 7, 1);

	allocations = 0;
	assert_false(replies_reserve(&replies));
	assert_false(replies_grow(&replies));
	allocations = UINT_MAX;
	assert_true(replies_reserve(&replies));
	replies_add(&replies, &reply);
	allocations = 0;
	assert_false(replies_grow(&replies));
	assert_int_equal(replies_init(&replies, 2 * RESOURCES), -ENOMEM);
	allocations = UINT_MAX;
	assert_ptr_not_equal(replies_find(&replies, psn_make(10)), NULL);
	replies_check(&replies);
}

TEST(replies_add__forgets_what_is_too_old_to_be_told_from_new_ones)
{
	struct reply reply = atomic_of(10, 7, 1);

	assert_true(replies_reserve(&replies));
	replies_add(&replies, &reply);
	reply = atomic_of((1u << 23) + 10, 7, 2);
	replies_add(&replies, &reply);
	assert_null(replies_find(&replies, psn_make(10)));
	assert_non_null(replies_find(&replies, reply.first));
}

TEST(replies_fini__leaves_nothing_to_free)
{
	assert_true(replies_reserve(&replies));
	replies_fini(&replies);
	assert_null(replies.resource);
	assert_int_equal(replies_init(&replies, RESOURCES), 0);
	assert_true(replies_reserve(&replies));
}
