/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages: functions are known by their names, and samples fall where the time goes. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stages.h"
#include "wire/icrc.h"
#include "test.h"

#define SAMPLES	   50
#define DEADLINE_S 60

TEST(stages_of__files_of_the_path)
{
	static const struct {
		const char *source;
		const char *function;
		enum stage stage;
	} functions[] = {
		{"", "packet_parse", STAGE_parse},
		{"", "packet_seal", STAGE_transmit},
		{"", "packet_icrc_ok", STAGE_icrc},
		{"", "icrc_update", STAGE_icrc},
		{"", "responder_receive", STAGE_transport},
		{"", "requester_send", STAGE_transport},
		{"", "qp_run", STAGE_transport},
		{"", "qp_post_send", STAGE_post},
		{"", "sgl_scatter", STAGE_copy},
		{"", "rx_input_burst", STAGE_receive},
		{"", "engine_poll", STAGE_turn},
		{"", "cq_push", STAGE_completion},
		{"tx.c", "tx_put", STAGE_transmit},
		{"", "measure_test", STAGE_program},
		/* The linker has made this one local. */
		{"run.c", "qp_run", STAGE_transport},
		{"", "responder_ooo_keep", STAGE_transport},
		{"", "psock_rx_burst", STAGE_receive},
		{"", "unheard_of", STAGE_other},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		assert_int_equal(stages_of(functions[i].source, functions[i].function),
				 functions[i].stage);
}

/* Local to its file. */
static void here(void)
{
}

TEST(stages_symbol__own_functions)
{
	const struct symbol *symbol;

	assert_int_equal(stages_read_symbols(), 0);
	symbol = stages_symbol((uintptr_t)stages_of);
	assert_non_null(symbol);
	assert_string_equal(symbol->name, "stages_of");
	assert_ptr_equal(stages_symbol((uintptr_t)stages_of + 1), symbol);
	symbol = stages_symbol((uintptr_t)here);
	assert_non_null(symbol);
	assert_string_equal(symbol->name, "here");
	assert_string_equal(symbol->source, "test_stages.c");
	assert_true(stages_is_own((uintptr_t)stages_of));
	assert_false(stages_is_own((uintptr_t)getppid));
	assert_false(stages_is_own((uintptr_t)state));
	assert_null(stages_symbol(0));
	assert_null(stages_symbol(UINTPTR_MAX));
}

TEST(stages_begin__samples_what_runs)
{
	static uint8_t bytes[65536];
	const time_t begin = time(NULL);
	volatile uint32_t crc = 0;
	struct stages stages;

	assert_int_equal(stages_begin(), 0);
	do {
		for (int i = 0; i < 100; i++)
			crc = icrc_update(crc, bytes, sizeof(bytes));
		stages_peek(&stages);
	} while (stages.count < SAMPLES && time(NULL) - begin < DEADLINE_S);
	stages_end(&stages);
	assert_true(stages.count >= SAMPLES);
	assert_true(stages.samples[STAGE_icrc] > stages.count / 2);
	stages_clear();
	stages_peek(&stages);
	assert_int_equal(stages.count, 0);
}
