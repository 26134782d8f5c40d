/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/recovery.c: probes to peers that send selective acknowledgements. */
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "transport/recovery.h"
#include "test.h"

#define NOW_NS	    UINT64_C(5000000)
#define LAST	    ((struct psn){7})
#define BEHIND_LAST ((struct psn){8})

static struct recovery recovery;

static int set_up(TEST_STATE)
{
	recovery =
		(struct recovery){.timeout_ns = UINT64_C(1) << 40, .retry_cnt = 3, .rnr_retry = 2};
	recovery_reset(&recovery);
	recovery.sack_capable = true;
	return 0;
}

TEST_FIXTURE(set_up, NULL);

/* Send the packet LAST, and answer it after this time. */
static void answer_after(uint64_t took_ns)
{
	recovery_sent(&recovery, NOW_NS);
	recovery_time(&recovery, LAST, NOW_NS);
	recovery_answered(&recovery, BEHIND_LAST, NOW_NS + took_ns);
	recovery_progress(&recovery, NOW_NS + took_ns, false);
}

/* Before the first measurement nothing is known of the path, and it may be long. */
TEST(recovery_sent__a_probe_of_a_path_that_was_not_measured)
{
	recovery_sent(&recovery, NOW_NS);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + RECOVERY_RETRANSMIT_NS);
	recovery_progress(&recovery, NOW_NS, false);
	recovery.srtt_ns = 2 * RECOVERY_SACK_PROBE_MIN_NS;
	recovery_sent(&recovery, NOW_NS);
	assert_int_equal(recovery.retransmit_ns, NOW_NS + 3 * RECOVERY_SACK_PROBE_MIN_NS);
}

/* An answer to an older packet has made the guess far too short, and each probe ends a measurement.
 */
TEST(recovery_probe_sack_peer__probes_that_come_too_early_come_later)
{
	const uint64_t takes_ns = 20 * RECOVERY_SACK_PROBE_MIN_NS;
	int probes = 0;

	recovery.answered = true;
	recovery.srtt_ns = 50;
	for (int i = 0; i < 10; i++) {
		recovery_sent(&recovery, NOW_NS);
		recovery_time(&recovery, LAST, NOW_NS);
		while (recovery.retransmit_ns < NOW_NS + takes_ns) {
			const uint64_t probe_ns = recovery.retransmit_ns;

			assert_int_equal(recovery_expire(&recovery, false, probe_ns),
					 RECOVERY_RETRANSMIT);
			recovery_probe_sack_peer(&recovery, LAST, probe_ns);
			probes++;
		}
		recovery_answered(&recovery, BEHIND_LAST, NOW_NS + takes_ns);
		recovery_progress(&recovery, NOW_NS + takes_ns, false);
	}
	assert_in_range(probes, 1, 4);
	assert_int_equal(recovery.srtt_ns, takes_ns);
	/* A probe ends the measurement, and measures nothing itself: it may be for a lost packet.
	 */
	recovery_sent(&recovery, NOW_NS);
	recovery_time(&recovery, LAST, NOW_NS);
	assert_int_equal(recovery_expire(&recovery, false, recovery.retransmit_ns),
			 RECOVERY_RETRANSMIT);
	recovery_probe_sack_peer(&recovery, LAST, NOW_NS + 2 * takes_ns);
	recovery_answered(&recovery, BEHIND_LAST, NOW_NS + 9 * takes_ns);
	assert_int_equal(recovery.srtt_ns, takes_ns);
}

/* Send a packet, answer it after this time, and send probes meanwhile. Return how many. */
static int probe_until(uint64_t takes_ns)
{
	int probes = 0;

	recovery_sent(&recovery, NOW_NS);
	recovery_time(&recovery, LAST, NOW_NS);
	while (recovery.retransmit_ns < NOW_NS + takes_ns) {
		const uint64_t probe_ns = recovery.retransmit_ns;

		assert_int_equal(recovery_expire(&recovery, false, probe_ns), RECOVERY_RETRANSMIT);
		recovery_probe_sack_peer(&recovery, LAST, probe_ns);
		recovery_sent(&recovery, probe_ns);
		recovery_sent_again(&recovery, LAST, BEHIND_LAST);
		probes++;
	}
	recovery_answered(&recovery, BEHIND_LAST, NOW_NS + takes_ns);
	recovery_progress(&recovery, NOW_NS + takes_ns, false);
	return probes;
}

TEST(recovery_probe_sack_peer__a_longer_path_is_measured)
{
	static const uint64_t longer_ns[] = {5 * RECOVERY_SACK_PROBE_MIN_NS,
					     8 * RECOVERY_SACK_PROBE_MIN_NS,
					     800 * RECOVERY_SACK_PROBE_MIN_NS};

	for (int i = 0; i < 10; i++)
		assert_int_equal(probe_until(RECOVERY_SACK_PROBE_MIN_NS / 4), 0);
	for (size_t path = 0; path < RTE_DIM(longer_ns); path++) {
		int messages = 0;

		while (messages < 100 && probe_until(longer_ns[path]) > 0)
			messages++;
		assert_int_equal(messages, RECOVERY_PROBED_MAX);
		assert_int_equal(recovery.srtt_ns, longer_ns[path]);
		assert_int_equal(recovery.min_rtt_ns, longer_ns[path]);
		for (int i = 0; i < 100; i++)
			assert_int_equal(probe_until(longer_ns[path]), 0);
	}
}

/* Probes for lost packets, with measurements of others between them, change nothing. */
TEST(recovery_probe_sack_peer__losses_are_no_longer_path)
{
	const uint64_t takes_ns = 2 * RECOVERY_SACK_PROBE_MIN_NS;

	for (int i = 0; i < 10; i++)
		answer_after(takes_ns);
	for (int i = 0; i < 100; i++) {
		if (i % RECOVERY_PROBED_MAX == 0)
			answer_after(takes_ns);
		else
			assert_int_equal(probe_until(2 * takes_ns), 1);
		assert_int_equal(recovery.srtt_ns, takes_ns);
		assert_int_equal(recovery.min_rtt_ns, takes_ns);
	}
}

/* A SACK-capable peer has time to answer the newest packet. */
TEST(recovery_expire__a_probe_is_early_for_the_newest_packet_of_a_sack_capable_peer)
{
	static const struct {
		bool sack_capable, is_retransmission, is_early;
	} cases[] = {{true, false, true}, {true, true, false}, {false, false, false}};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		uint64_t due_ns;

		recovery_reset(&recovery);
		recovery.sack_capable = cases[i].sack_capable;
		recovery_sent(&recovery, NOW_NS);
		if (cases[i].is_retransmission)
			recovery_retransmit(&recovery, NOW_NS, true);
		due_ns = recovery.retransmit_ns;
		recovery_sent(&recovery, NOW_NS + 10);
		if (cases[i].is_early) {
			assert_int_equal(recovery_expire(&recovery, false, due_ns), RECOVERY_WAIT);
			due_ns += 10;
			assert_int_equal(recovery.retransmit_ns, due_ns);
		}
		assert_int_equal(recovery_expire(&recovery, false, due_ns), RECOVERY_RETRANSMIT);
		/* The second time it is not. */
		due_ns = recovery.retransmit_ns;
		recovery_sent(&recovery, due_ns - 1);
		assert_int_equal(recovery_expire(&recovery, false, due_ns), RECOVERY_RETRANSMIT);
	}
}
