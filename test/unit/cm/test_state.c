/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/state.c: the table, row by row, and what must be true of any such table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/state.h"
#include "cm_names.h"
#include "test.h"

/* State, input, next state, message, timer, event: the figures of chapter 12.9 and what Linux adds,
 * written down apart. */
static const char *const rows[] = {
	"IDLE CONNECT REQ_SENT REQ first -",
	"IDLE RESOLVE SIDR_REQ_SENT SIDR_REQ first -",
	"IDLE REQ REQ_RCVD - off REQ",
	"IDLE SIDR_REQ SIDR_REQ_RCVD - off SIDR_REQ",
	"IDLE DESTROY IDLE - off -",

	"REQ_SENT MRA_OF_REQ MRA_REQ_RCVD - mra -",
	"REQ_SENT REP REP_RCVD - off REP",
	"REQ_SENT REP_STALE IDLE REJ/10 off REJECTED",
	"REQ_SENT REJ IDLE - off REJECTED",
	"REQ_SENT REJ_STALE TIMEWAIT - wait REJECTED",
	"REQ_SENT TIMEOUT REQ_SENT again again -",
	"REQ_SENT EXPIRED IDLE REJ/4 off UNREACHABLE",
	"REQ_SENT DESTROY IDLE REJ/4 off -",

	"MRA_REQ_RCVD REP REP_RCVD - off REP",
	"MRA_REQ_RCVD REP_STALE IDLE REJ/10 off REJECTED",
	"MRA_REQ_RCVD REJ IDLE - off REJECTED",
	"MRA_REQ_RCVD REJ_STALE TIMEWAIT - wait REJECTED",
	"MRA_REQ_RCVD TIMEOUT REQ_SENT again again -",
	"MRA_REQ_RCVD EXPIRED IDLE REJ/4 off UNREACHABLE",
	"MRA_REQ_RCVD DESTROY IDLE REJ/4 off -",

	"REP_RCVD ESTABLISH ESTABLISHED RTU off -",
	"REP_RCVD REJECT REJ_SENT REJ/28 linger -",
	"REP_RCVD REP_AGAIN MRA_REP_SENT MRA off -",
	"REP_RCVD REJ TIMEWAIT - wait REJECTED",
	"REP_RCVD REJ_STALE TIMEWAIT - wait REJECTED",
	"REP_RCVD DESTROY REJ_SENT REJ/28 linger -",

	"MRA_REP_SENT ESTABLISH ESTABLISHED RTU off -",
	"MRA_REP_SENT REJECT REJ_SENT REJ/28 linger -",
	"MRA_REP_SENT REP_AGAIN MRA_REP_SENT again off -",
	"MRA_REP_SENT REJ TIMEWAIT - wait REJECTED",
	"MRA_REP_SENT REJ_STALE TIMEWAIT - wait REJECTED",
	"MRA_REP_SENT DESTROY REJ_SENT REJ/28 linger -",

	"REQ_RCVD ACCEPT REP_SENT REP first -",
	"REQ_RCVD REJECT REJ_SENT REJ/28 linger -",
	"REQ_RCVD REQ_AGAIN MRA_REQ_SENT MRA off -",
	"REQ_RCVD REJ IDLE - off REJECTED",
	"REQ_RCVD REJ_STALE IDLE - off REJECTED",
	"REQ_RCVD DESTROY REJ_SENT REJ/28 linger -",

	"MRA_REQ_SENT ACCEPT REP_SENT REP first -",
	"MRA_REQ_SENT REJECT REJ_SENT REJ/28 linger -",
	"MRA_REQ_SENT REQ_AGAIN MRA_REQ_SENT again off -",
	"MRA_REQ_SENT REJ IDLE - off REJECTED",
	"MRA_REQ_SENT REJ_STALE IDLE - off REJECTED",
	"MRA_REQ_SENT DESTROY REJ_SENT REJ/28 linger -",

	"REP_SENT RTU ESTABLISHED - off ESTABLISHED",
	"REP_SENT DATA ESTABLISHED - off ESTABLISHED",
	"REP_SENT REQ_AGAIN REP_SENT again keep -",
	"REP_SENT MRA_OF_REP MRA_REP_RCVD - mra -",
	"REP_SENT REJ IDLE - off REJECTED",
	"REP_SENT REJ_STALE TIMEWAIT - wait REJECTED",
	"REP_SENT DREQ DREQ_RCVD - off DISCONNECTED",
	"REP_SENT TIMEOUT REP_SENT again again -",
	"REP_SENT EXPIRED REJ_SENT REJ/4 linger UNREACHABLE",
	"REP_SENT DESTROY REJ_SENT REJ/28 linger -",

	"MRA_REP_RCVD RTU ESTABLISHED - off ESTABLISHED",
	"MRA_REP_RCVD DATA ESTABLISHED - off ESTABLISHED",
	"MRA_REP_RCVD REJ IDLE - off REJECTED",
	"MRA_REP_RCVD REJ_STALE TIMEWAIT - wait REJECTED",
	"MRA_REP_RCVD DREQ DREQ_RCVD - off DISCONNECTED",
	"MRA_REP_RCVD TIMEOUT REP_SENT again again -",
	"MRA_REP_RCVD EXPIRED REJ_SENT REJ/4 linger UNREACHABLE",
	"MRA_REP_RCVD DESTROY REJ_SENT REJ/28 linger -",

	"ESTABLISHED DISCONNECT DREQ_SENT DREQ first -",
	"ESTABLISHED STALE DREQ_SENT DREQ first -",
	"ESTABLISHED REP_AGAIN ESTABLISHED again keep -",
	"ESTABLISHED REJ TIMEWAIT - wait REJECTED",
	"ESTABLISHED REJ_STALE TIMEWAIT - wait REJECTED",
	"ESTABLISHED DREQ DREQ_RCVD - off DISCONNECTED",
	"ESTABLISHED DESTROY DREQ_SENT DREQ first -",

	"DREQ_SENT DREP TIMEWAIT - wait DISCONNECTED",
	"DREQ_SENT DREQ TIMEWAIT DREP wait DISCONNECTED",
	"DREQ_SENT REJ TIMEWAIT - wait DISCONNECTED",
	"DREQ_SENT REJ_STALE TIMEWAIT - wait DISCONNECTED",
	"DREQ_SENT TIMEOUT DREQ_SENT again again -",
	"DREQ_SENT EXPIRED TIMEWAIT - wait DISCONNECTED",
	"DREQ_SENT DESTROY DREQ_SENT - keep -",

	"DREQ_RCVD DISCONNECT TIMEWAIT DREP wait -",
	"DREQ_RCVD DESTROY TIMEWAIT DREP wait -",

	"TIMEWAIT END IDLE DREP off -",
	"TIMEWAIT DREQ TIMEWAIT DREP keep -",
	"TIMEWAIT REQ_AGAIN TIMEWAIT REJ/10 keep -",
	"TIMEWAIT EXPIRED IDLE - off TIMEWAIT_EXIT",
	"TIMEWAIT DESTROY TIMEWAIT - keep -",

	"REJ_SENT REQ_AGAIN REJ_SENT again linger -",
	"REJ_SENT REP_AGAIN REJ_SENT again linger -",
	"REJ_SENT RTU REJ_SENT again linger -",
	"REJ_SENT DREQ REJ_SENT DREP keep -",
	"REJ_SENT EXPIRED IDLE - off -",
	"REJ_SENT DESTROY REJ_SENT - keep -",

	"SIDR_REQ_SENT SIDR_REP IDLE - off SIDR_REP",
	"SIDR_REQ_SENT TIMEOUT SIDR_REQ_SENT again again -",
	"SIDR_REQ_SENT EXPIRED IDLE - off UNREACHABLE",
	"SIDR_REQ_SENT DESTROY IDLE - off -",

	"SIDR_REQ_RCVD REPLY SIDR_REP_SENT SIDR_REP linger -",
	"SIDR_REQ_RCVD DESTROY SIDR_REP_SENT SIDR_REP linger -",

	"SIDR_REP_SENT SIDR_REQ_AGAIN SIDR_REP_SENT again linger -",
	"SIDR_REP_SENT EXPIRED IDLE - off -",
	"SIDR_REP_SENT DESTROY SIDR_REP_SENT - keep -",
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *send_name(const struct cm_transition *row, char *name, size_t size)
{
	if (row->send == CM_SEND_AGAIN)
		return "again";
	if (row->send == CM_REJ)
		snprintf(name, size, "REJ/%u", row->reason);
	return row->send == CM_REJ ? name : row->send ? cm_message_name(row->send) : "-";
}

static void tell(enum cm_state state, enum cm_input input, char *text, size_t size)
{
	static const char *const timers[] = {"keep", "off",  "first", "again",
					     "mra",  "wait", "linger"};
	const struct cm_transition *row = cm_transition(state, input);
	char name[16];

	snprintf(text, size, "%s %s %s %s %s %s", cm_state_name(state), cm_input_name(input),
		 cm_state_name((enum cm_state)row->next), send_name(row, name, sizeof(name)),
		 timers[row->timer],
		 row->event ? cm_event_name((enum cm_event_type)row->event) : "-");
}

static bool is_listed(const char *text)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(rows[i], text) == 0)
			return true;
	}
	return false;
}

TEST(transition__each_is_as_the_standard_has_it)
{
	char text[200];
	size_t defined = 0;

	for (int from = 0; from < CM_STATE_COUNT; from++) {
		for (int input = 0; input < CM_INPUT_COUNT; input++) {
			if (!cm_transition((enum cm_state)from, (enum cm_input)input)->defined)
				continue;
			defined++;
			tell((enum cm_state)from, (enum cm_input)input, text, sizeof(text));
			if (!is_listed(text))
				fail_msg("not in the list: %s", text);
		}
	}
	assert_int_equal(defined, ROWS);
}

TEST(transition__every_state_can_be_destroyed)
{
	for (int from = 0; from < CM_STATE_COUNT; from++) {
		const struct cm_transition *row =
			cm_transition((enum cm_state)from, CM_INPUT_DESTROY);

		assert_true(row->defined);
		assert_int_equal(row->event, CM_EVENT_NONE);
	}
}

/* conn_free relies on it: nothing else finds a connection that is over. */
TEST(transition__what_is_over_has_no_timer)
{
	for (int from = 0; from < CM_STATE_COUNT; from++) {
		for (int input = 0; input < CM_INPUT_COUNT; input++) {
			const struct cm_transition *row =
				cm_transition((enum cm_state)from, (enum cm_input)input);

			if (row->defined && row->next == CM_STATE_IDLE)
				assert_int_equal(row->timer, CM_TIMER_OFF);
		}
	}
}

/* A state with retries has an end of them, and a state with a timer has a row for when it fires. */
TEST(transition__every_timer_has_an_end)
{
	for (int from = 0; from < CM_STATE_COUNT; from++) {
		for (int input = 0; input < CM_INPUT_COUNT; input++) {
			const struct cm_transition *row =
				cm_transition((enum cm_state)from, (enum cm_input)input);
			const enum cm_state next = (enum cm_state)row->next;

			if (!row->defined || row->timer == CM_TIMER_OFF ||
			    row->timer == CM_TIMER_KEEP)
				continue;
			assert_true(cm_transition(next, CM_INPUT_EXPIRED)->defined);
			if (row->timer != CM_TIMER_WAIT && row->timer != CM_TIMER_LINGER)
				assert_true(cm_transition(next, CM_INPUT_TIMEOUT)->defined);
		}
	}
}

/* A connection that was destroyed ends by its timers, even if the peer says nothing. */
TEST(transition__destroyed_ones_end_by_timers_alone)
{
	for (int from = 0; from < CM_STATE_COUNT; from++) {
		enum cm_state at =
			(enum cm_state)cm_transition((enum cm_state)from, CM_INPUT_DESTROY)->next;
		int steps = 0;

		while (at != CM_STATE_IDLE) {
			const struct cm_transition *row = cm_transition(at, CM_INPUT_EXPIRED);

			assert_true(row->defined);
			at = (enum cm_state)row->next;
			assert_true(++steps < 4);
		}
	}
}

/* The events that a connection may have had before it is in a state. */
static void collect(unsigned int *before)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (int from = 0; from < CM_STATE_COUNT; from++) {
			for (int input = 0; input < CM_INPUT_COUNT; input++) {
				const struct cm_transition *row =
					cm_transition((enum cm_state)from, (enum cm_input)input);
				unsigned int had;

				/* A connection begins in IDLE once; what ends there stays. */
				if (!row->defined || row->next == CM_STATE_IDLE)
					continue;
				had = before[from] | (row->event ? 1u << row->event : 0);
				changed |= (before[row->next] | had) != before[row->next];
				before[row->next] |= had;
			}
		}
	}
}

TEST(transition__no_event_comes_twice_or_before_an_earlier_one)
{
	unsigned int before[CM_STATE_COUNT] = {0};

	collect(before);
	for (int from = 0; from < CM_STATE_COUNT; from++) {
		for (int input = 0; input < CM_INPUT_COUNT; input++) {
			const struct cm_transition *row =
				cm_transition((enum cm_state)from, (enum cm_input)input);

			if (row->defined && row->event)
				assert_true(before[from] < 1u << row->event);
		}
	}
}

TEST(names__are_those_of_the_lists)
{
	assert_string_equal(cm_state_name(CM_STATE_IDLE), "IDLE");
	assert_string_equal(cm_state_name(CM_STATE_SIDR_REP_SENT), "SIDR_REP_SENT");
	assert_string_equal(cm_input_name(CM_INPUT_CONNECT), "CONNECT");
	assert_string_equal(cm_input_name(CM_INPUT_EXPIRED), "EXPIRED");
	assert_string_equal(cm_event_name(CM_EVENT_NONE), "NONE");
	assert_string_equal(cm_event_name(CM_EVENT_TIMEWAIT_EXIT), "TIMEWAIT_EXIT");
}
