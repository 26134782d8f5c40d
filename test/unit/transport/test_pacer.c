/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of transport/pacer.h: bursts, gaps between them, and the rate that comes of it. */
#include <stdint.h>

#include "transport/pacer.h"
#include "test.h"

#define NOW_NS	  UINT64_C(5000000)
#define RATE	  8000u /* kbps: a byte takes a microsecond */
#define PACKET	  1000u
#define PACKET_NS UINT64_C(1000000)

static struct pacer pacer;

static int set_up(TEST_STATE)
{
	pacer_set(&pacer, RATE, 3 * PACKET, PACKET);
	pacer_poll(&pacer, NOW_NS);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

/* Send as many packets as the pacer allows now. Return their number. */
static unsigned int send_all(uint32_t bytes)
{
	unsigned int sent = 0;

	while (sent < 1000 && !pacer_holds(&pacer)) {
		pacer_sent(&pacer, bytes);
		sent++;
	}
	return sent;
}

TEST(pacer_holds__without_a_rate_nothing)
{
	pacer_set(&pacer, 0, 0, 0);
	assert_int_equal(send_all(UINT32_MAX), 1000);
	assert_true(pacer.deadline_ns == PACER_NEVER);
}

TEST(pacer_holds__what_is_behind_a_burst)
{
	assert_int_equal(send_all(PACKET), 3);
	assert_true(pacer.deadline_ns == NOW_NS + PACKET_NS);
	pacer_poll(&pacer, NOW_NS + PACKET_NS - 1);
	assert_true(pacer.deadline_ns == PACER_NEVER);
	assert_int_equal(send_all(PACKET), 0);
	assert_true(pacer.deadline_ns == NOW_NS + PACKET_NS);
	pacer_poll(&pacer, NOW_NS + PACKET_NS);
	assert_int_equal(send_all(PACKET), 1);
}

TEST(pacer_holds__an_idle_time_saves_up_one_burst)
{
	send_all(PACKET);
	pacer_poll(&pacer, NOW_NS + 100 * PACKET_NS);
	assert_int_equal(send_all(PACKET), 3);
}

TEST(pacer_holds__late_polls_do_not_lower_the_rate)
{
	unsigned int sent = 0;

	for (unsigned int i = 0; i < 1000; i++) {
		pacer_poll(&pacer, NOW_NS + i * (PACKET_NS * 3 / 2));
		sent += send_all(PACKET);
	}
	/* 1500 packets' time, and the burst that was there before. */
	assert_in_range(sent, 1500, 1503);
}

TEST(pacer_holds__one_packet_goes_however_short_the_burst)
{
	pacer_set(&pacer, RATE, 1, PACKET);
	pacer_poll(&pacer, NOW_NS);
	assert_int_equal(send_all(PACKET), 1);
	assert_true(pacer.deadline_ns == NOW_NS + PACKET_NS);
}

TEST(pacer_set__the_default_burst_is_a_time)
{
	/* A gigabit: a millisecond is 125000 bytes. */
	pacer_set(&pacer, 1000000, 0, 1250);
	pacer_poll(&pacer, NOW_NS);
	assert_int_equal(send_all(1250), 100);
	/* A packet that takes longer than that is sent alone. */
	pacer_set(&pacer, RATE, 0, 2 * PACKET);
	pacer_poll(&pacer, NOW_NS);
	assert_int_equal(send_all(2 * PACKET), 1);
}

TEST(pacer_sent__the_rate_is_a_maximum)
{
	/* 8/3 ns a byte, and not less. */
	assert_int_equal(pacer_time_ns(1, 3000000), 3);
	assert_int_equal(pacer_time_ns(3, 3000000), 8);
	assert_true(pacer_time_ns(UINT32_MAX, 1) == UINT32_MAX * UINT64_C(8000000));
}

TEST(pacer_stop__waits_for_nothing)
{
	send_all(PACKET);
	pacer_stop(&pacer);
	assert_true(pacer.deadline_ns == PACER_NEVER);
}
