/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: their names, their meanings, and adding to them. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "telemetry/counters.h"
#include "test.h"

TEST(counters_add__adds_to_one_counter)
{
	struct counters counters = {0};
	unsigned int i;

	counters_add(&counters, COUNTER_rx_packets, 3);
	counters_add(&counters, COUNTER_rx_packets, 4);
	for (i = 0; i < COUNTER_COUNT; i++)
		assert_int_equal(counters.value[i], i == COUNTER_rx_packets ? 7 : 0);
}

TEST(counters_get__reads_what_was_added)
{
	struct counters counters = {0};

	counters_add(&counters, COUNTER_tx_bytes, UINT64_C(1) << 40);
	assert_int_equal(counters_get(&counters, COUNTER_tx_bytes), UINT64_C(1) << 40);
	assert_int_equal(counters_get(&counters, COUNTER_rx_bytes), 0);
}

TEST(counter_name__is_the_kernels)
{
	assert_string_equal(counter_name(COUNTER_rx_icrc_errors), "rx_icrc_errors");
	assert_string_equal(counter_name(COUNTER_local_ack_timeout_err), "local_ack_timeout_err");
	assert_string_equal(counter_name(COUNTER_rnr_nak_retry_err), "rnr_nak_retry_err");
}

TEST(counter_name__each_is_unique_and_a_word)
{
	unsigned int i, j;
	const char *c;

	for (i = 0; i < COUNTER_COUNT; i++) {
		assert_true(*counter_name((enum counter)i) != '\0');
		for (c = counter_name((enum counter)i); *c; c++)
			assert_true(islower(*c) || isdigit(*c) || *c == '_');
		for (j = 0; j < i; j++)
			assert_string_not_equal(counter_name((enum counter)i),
						counter_name((enum counter)j));
	}
}

TEST(counter_name__outside_the_list_is_no_crash)
{
	assert_string_equal(counter_name(COUNTER_COUNT), "?");
}

TEST(counters__each_has_a_meaning_of_several_words)
{
	static const char *const meanings[] = {
#define COUNTER(name, meaning) meaning,
#include "telemetry/counters.def"
#undef COUNTER
	};

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		assert_non_null(strchr(meanings[i], ' '));
}
