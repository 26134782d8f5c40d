/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/cc.c: the choice of an algorithm, timed packets, notifications, and what
 * the pacer is told. */
#include <stddef.h>
#include <stdint.h>

#include "transport/cc.h"
#include "transport/loss.h"
#include "transport/pacer.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "test.h"

#define FIRST	     0xfffffdu
#define CC_NOTIFY_NS UINT64_C(50000) /* the default */

static struct pacer pacer;
static struct scoreboard board;
static struct loss loss;
static struct cc *cc;

static void make(enum cc_kind kind)
{
	const struct cc_attr attr = {.kind = kind, .link_mbps = 10000};

	pacer = (struct pacer){0};
	loss = (struct loss){.board = &board};
	scoreboard_init(&board);
	loss_init(&loss, psn_make(FIRST));
	assert_int_equal(cc_create(&attr, &pacer, &loss, &cc), 0);
	pacer.cc = cc;
	pacer_set(&pacer, 0, 0, 0);
}

static int tear_down(TEST_STATE)
{
	cc_destroy(cc);
	cc = NULL;
	scoreboard_fini(&board);
	return 0;
}

TEST_FIXTURE(NULL, tear_down);

/* Send `count` packets of one PSN. */
static void send(uint32_t count, uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		cc_sent(cc, loss.next, 1, 1000, false, now_ns);
		loss_sent_new(&loss, 1);
	}
}

/* An answer to the packet with this PSN, counted from FIRST. */
static struct packet answer_to(uint32_t psn, uint8_t opcode, uint8_t syndrome)
{
	return (struct packet){.opcode = opcode,
			       .op = opcode_info(opcode),
			       .psn = psn_add(psn_make(FIRST), (int32_t)psn),
			       .syndrome = syndrome};
}

static void acknowledge(uint32_t psn, uint64_t now_ns)
{
	const struct packet packet = answer_to(psn, OPCODE_ACKNOWLEDGE, AETH_ACK);

	cc_answered(cc, &packet, now_ns);
	loss_on_ack(&loss, psn_add(packet.psn, 1), now_ns);
}

TEST(cc_find__by_name)
{
	assert_int_equal(cc_find("none"), CC_NONE);
	assert_int_equal(cc_find("dcqcn"), CC_DCQCN);
	assert_int_equal(cc_find("swift"), CC_SWIFT);
	assert_int_equal(cc_find(""), CC_KINDS);
	assert_int_equal(cc_find("reno"), CC_KINDS);
	for (int kind = 0; kind < CC_KINDS; kind++)
		assert_int_equal(cc_find(cc_ops((enum cc_kind)kind)->name), kind);
}

TEST(cc_create__nothing_for_none)
{
	make(CC_NONE);
	assert_null(cc);
	assert_int_equal(pacer.rate_kbps, 0);
}

/* The requester of a queue pair that was not slowed down looks at nothing. */
TEST(cc_create__dcqcn_leaves_the_pacer_alone)
{
	make(CC_DCQCN);
	assert_int_equal(pacer.rate_kbps, 0);
}

TEST(cc_apply__the_slower_of_two_limits)
{
	make(CC_DCQCN);
	pacer_set(&pacer, 4000000, 0, 1000);
	assert_int_equal(pacer.rate_kbps, 4000000);
	cc->rate_kbps = 1000000;
	cc_apply(cc);
	assert_int_equal(pacer.rate_kbps, 1000000);
	assert_int_equal(pacer.burst_ns, CC_BURST_NS);
	cc->rate_kbps = 5000000;
	cc_apply(cc);
	assert_int_equal(pacer.rate_kbps, 4000000);
	assert_int_equal(pacer.burst_ns, cc->limit_burst_ns);
	/* When the application removes its limit, the limit of congestion control stays. */
	pacer_set(&pacer, 0, 0, 0);
	assert_int_equal(pacer.rate_kbps, 5000000);
	cc->rate_kbps = 0;
	cc_apply(cc);
	assert_int_equal(pacer.rate_kbps, 0);
}

TEST(cc_answered__times_one_packet_in_a_round_trip)
{
	make(CC_SWIFT);
	assert_true(cc_times_next(cc));
	send(4, 1000);
	assert_false(cc_times_next(cc));
	assert_int_equal(cc->timed_psn.v, FIRST);
	acknowledge(0, 6000);
	assert_int_equal(cc->swift.rtt_ns, 5000);
	assert_true(cc_times_next(cc));
	/* The next packet is timed; answers to older packets do not end the timing. */
	send(1, 7000);
	acknowledge(3, 8000);
	assert_int_equal(cc->swift.rtt_ns, 5000);
	acknowledge(4, 9500);
	assert_int_equal(cc->swift.rtt_ns, 2500);
}

TEST(cc_answered__a_later_answer_covers_it)
{
	make(CC_SWIFT);
	send(4, 1000);
	acknowledge(3, 4000);
	assert_int_equal(cc->swift.rtt_ns, 3000);
}

static uint32_t answered_psns; /* of the newest answer */

static void note_answered(struct cc *self, uint64_t rtt_ns, uint32_t psns, uint64_t now_ns)
{
	(void)self;
	(void)rtt_ns;
	(void)now_ns;
	answered_psns = psns;
}

TEST(cc_answered__tells_how_many_psns_were_sent_meanwhile)
{
	static const struct cc_ops ops = {.times = true, .answered = note_answered};

	make(CC_SWIFT);
	cc->ops = &ops;
	send(4, 1000);
	acknowledge(0, 2000);
	assert_int_equal(answered_psns, 1);
	send(1, 3000);
	acknowledge(4, 4000);
	assert_int_equal(answered_psns, 4);
	cc_reset(cc);
	send(1, 5000);
	acknowledge(5, 6000);
	assert_int_equal(answered_psns, 1);
}

/* It is unknown which transmission the answer is to. */
TEST(cc_answered__not_after_a_retransmission)
{
	make(CC_SWIFT);
	send(2, 1000);
	cc_sent(cc, loss.una, 1, 1000, true, 2000);
	acknowledge(1, 4000);
	assert_int_equal(cc->swift.rtt_ns, 0);
}

TEST(cc_answered__not_by_a_nak_or_by_what_is_not_in_flight)
{
	struct packet packet;

	make(CC_SWIFT);
	send(2, 1000);
	packet = answer_to(0, OPCODE_ACKNOWLEDGE, AETH_NAK | NAK_PSN_SEQUENCE);
	cc_answered(cc, &packet, 2000);
	packet = answer_to(2, OPCODE_ACKNOWLEDGE, AETH_ACK);
	cc_answered(cc, &packet, 2000);
	packet = answer_to((1u << 24) - 1, OPCODE_ACKNOWLEDGE, AETH_ACK);
	cc_answered(cc, &packet, 2000);
	assert_int_equal(cc->swift.rtt_ns, 0);
	assert_true(cc->timed);
	packet = answer_to(0, OPCODE_READ_RESPONSE_MIDDLE, 0);
	cc_answered(cc, &packet, 2000);
	assert_int_equal(cc->swift.rtt_ns, 1000);
}

/* Of four packets in flight the third is timed. */
TEST(cc_told__by_a_sack_of_the_timed_packet_or_of_a_later_one)
{
	static const struct {
		uint32_t expected;
		uint8_t kept; /* behind that one */
		bool sack, ends;
	} cases[] = {{0, 0x1, true, false}, {0, 0x2, true, true},   {0, 0x4, true, false},
		     {1, 0x1, true, true},  {2, 0x1, true, false},  {3, 0, true, true},
		     {4, 0, true, true},    {5, 0xff, true, false}, {0, 0x2, false, false}};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct packet sack = answer_to(cases[i].expected, OPCODE_SACK, 0);

		make(CC_SWIFT);
		send(4, 1000);
		cc->timed_psn = psn_make(FIRST + 2);
		loss.sack = cases[i].sack;
		sack.payload = &cases[i].kept;
		sack.payload_len = 1;
		cc_told(cc, &sack, 3000);
		assert_int_equal(cc->timed, !cases[i].ends);
		cc_told(cc, &sack, 3000);
		assert_int_equal(cc->timed, !cases[i].ends);
		tear_down(state);
	}
}

TEST(cc_marked__one_notification_in_50_us)
{
	make(CC_DCQCN);
	assert_true(cc_marked(cc, 0));
	assert_false(cc_marked(cc, 0));
	assert_false(cc_marked(cc, CC_NOTIFY_NS - 1));
	assert_true(cc_marked(cc, CC_NOTIFY_NS));
	assert_false(cc_marked(cc, CC_NOTIFY_NS + 1));
}

TEST(cc_marked__not_if_the_network_does_not_mark)
{
	make(CC_SWIFT);
	assert_false(cc_marked(cc, 0));
	assert_false(cc_notified(cc, 0));
}

TEST(cc_reset__forgets_everything)
{
	make(CC_DCQCN);
	assert_true(cc_marked(cc, 5));
	assert_true(cc_notified(cc, 5));
	assert_int_equal(pacer.rate_kbps, 5000000);
	cc_reset(cc);
	assert_int_equal(pacer.rate_kbps, 0);
	assert_true(cc_marked(cc, 6));
}

TEST(cc_reset__forgets_what_is_in_flight)
{
	static const enum cc_kind kinds[] = {CC_DCQCN, CC_SWIFT};

	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		struct cc fresh;

		make(kinds[i]);
		fresh = *cc;
		cc->wait_ns = 9;
		cc->timer_ns = 9;
		cc->losses = 9;
		cc->sent_psns = 9;
		cc->expired = true;
		cc->last_sent = 9;
		cc->timed = true;
		pacer.window = 9;
		cc_reset(cc);
		assert_memory_equal(cc, &fresh, sizeof(fresh));
		assert_int_equal(pacer.window, UINT32_MAX);
		cc_destroy(cc);
		cc = NULL;
	}
}

TEST(pacer_wants_ack__of_a_timed_packet_and_in_each_window)
{
	make(CC_SWIFT);
	assert_true(pacer_asks_ack(&pacer, 0));
	send(1, 1000);
	pacer.window = 40;
	assert_false(pacer_asks_ack(&pacer, 0));
	assert_false(pacer_asks_ack(&pacer, 8));
	assert_true(pacer_asks_ack(&pacer, 9));
	pacer.window = 1;
	assert_true(pacer_asks_ack(&pacer, 0));
	/* The application has set a limit. */
	pacer.window = 40;
	assert_false(pacer_asks_ack(&pacer, 0));
	pacer_set(&pacer, 8000, 0, 1000);
	assert_true(pacer_asks_ack(&pacer, 0));
}

TEST(pacer_waits_new__at_the_window)
{
	make(CC_SWIFT);
	pacer_poll(&pacer, 1000);
	pacer.window = 2;
	assert_false(pacer_waits_new(&pacer, 1));
	assert_true(pacer_waits_new(&pacer, 2));
	/* An answer opens the window; no timer does. */
	assert_true(pacer.deadline_ns == PACER_NEVER);
	/* A retransmission needs no room in the window. */
	assert_false(pacer_holds(&pacer));
}

TEST(pacer_holds__until_the_next_packet_is_due)
{
	make(CC_SWIFT);
	pacer_poll(&pacer, 1000);
	cc->wait_ns = 7000;
	assert_true(pacer_holds(&pacer));
	assert_int_equal(pacer.deadline_ns, 7000);
	pacer_poll(&pacer, 7000);
	assert_false(pacer_holds(&pacer));
}

TEST(cc_apply__the_limit_that_is_reached_keeps_its_burst)
{
	make(CC_DCQCN);
	cc->limit_kbps = cc->rate_kbps = 1000000;
	cc->limit_burst_ns = 2 * CC_BURST_NS;
	cc_apply(cc);
	assert_int_equal(pacer.burst_ns, 2 * CC_BURST_NS);
	cc->limit_kbps++;
	cc_apply(cc);
	assert_int_equal(pacer.burst_ns, CC_BURST_NS);
}

TEST(cc_connect__only_what_times_packets_has_a_path)
{
	static const uint8_t gid[16] = {1};
	static struct cc_paths paths;

	make(CC_DCQCN);
	cc->paths = &paths;
	cc_connect(cc, gid);
	assert_null(cc->path);
	for (uint32_t i = 0; i < CC_PATHS; i++)
		assert_int_equal(paths.path[i].users, 0);
}

TEST(cc_reset__lets_the_next_packet_leave)
{
	make(CC_SWIFT);
	cc->wait_ns = 5;
	cc_reset(cc);
	assert_int_equal(cc->wait_ns, 0);
}
