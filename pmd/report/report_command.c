/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands in a report, and their answers, as one word. */
#include "report/report_command.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "report/read.h"

/* From the lowest bit: value, index, kind, a number that tells commands apart, state. */
#define INDEX_SHIFT   32
#define KIND_SHIFT    40
#define TAG_SHIFT     44
#define TAG_MASK      0xfffu
#define STATE_SHIFT   56
#define STATE_COMMAND 0xffu
#define STATE_TAKEN   0xfeu
#define ERRNO_MAX     0xfd /* else it is an answer: a positive errno, or 0 */
#define KIND_MASK     0xfu

static uint64_t report_command_word(const struct report_command *command, uint32_t tag)
{
	return (uint64_t)STATE_COMMAND << STATE_SHIFT | (uint64_t)tag << TAG_SHIFT |
	       (uint64_t)command->kind << KIND_SHIFT | (uint64_t)command->index << INDEX_SHIFT |
	       command->value;
}

static unsigned int state_of(uint64_t word)
{
	return (unsigned int)(word >> STATE_SHIFT);
}

/* Return the word without its state. */
static uint64_t body_of(uint64_t word)
{
	return word & ((UINT64_C(1) << STATE_SHIFT) - 1);
}

static bool swap(struct report *report, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&report->command, &from, to, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* Put the command into the report. Another reader's command has half of the time to be answered,
 * and its answer to be taken; after that it is replaced. Return the milliseconds that are left. */
static unsigned int put(struct report *report, uint64_t word, unsigned int ms)
{
	const unsigned int half = ms / 2;
	unsigned int left = ms;

	for (;;) {
		const uint64_t now = __atomic_load_n(&report->command, __ATOMIC_RELAXED);

		if ((now == 0 || left <= half) && swap(report, now, word))
			return left;
		if (left > half) {
			usleep(1000);
			left--;
		}
	}
}

/* Wait until the process answers, and empty the word. Return what report_command_give returns. */
static int await(struct report *report, uint64_t word, unsigned int left, unsigned int grace)
{
	for (;;) {
		const uint64_t now = __atomic_load_n(&report->command, __ATOMIC_RELAXED);
		const bool is_taken = state_of(now) == STATE_TAKEN;

		if (body_of(now) != body_of(word))
			return -EINPROGRESS; /* another reader has replaced it */
		if (!is_taken && state_of(now) != STATE_COMMAND) {
			swap(report, now, 0);
			return -(int)state_of(now);
		}
		if (left == 0 && is_taken) {
			left = grace;
			grace = 0;
		}
		if (left > 0) {
			usleep(1000);
			left--;
		} else if (swap(report, now, 0)) {
			return is_taken ? -EINPROGRESS : -ETIMEDOUT;
		}
	}
}

int report_command_give(struct report *report, const struct report_command *command,
			unsigned int ms)
{
	/* Two processes may get the same number, if their process ids differ by a multiple of its
	 * range. Not 0: an answer must not look like an empty word. */
	const uint32_t tag = ((uint32_t)getpid() & (TAG_MASK >> 1)) << 1 | 1;
	const uint64_t word = report_command_word(command, tag);
	const unsigned int left = put(report, word, ms);

	report_ask(report);
	return await(report, word, left, ms);
}

int report_command_log_level(const struct report_command *command)
{
	if (command->index > LOG_LEVEL_DEBUG)
		return -EINVAL;
	log_set_level((enum log_level)command->index);
	return 0;
}

bool report_command_take(struct report *report, struct report_command *command)
{
	const uint64_t word = __atomic_load_n(&report->command, __ATOMIC_RELAXED);
	const uint32_t kind = (uint32_t)(word >> KIND_SHIFT) & KIND_MASK;
	const uint64_t taken = body_of(word) | (uint64_t)STATE_TAKEN << STATE_SHIFT;

	if (state_of(word) != STATE_COMMAND || !swap(report, word, taken))
		return false;
	*command = (struct report_command){.kind = kind < REPORT_COMMAND_KINDS
							   ? (enum report_command_kind)kind
							   : REPORT_COMMAND_KINDS,
					   .index = (uint8_t)(word >> INDEX_SHIFT),
					   .value = (uint32_t)word,
					   .word = taken};
	return true;
}

void report_command_answer(struct report *report, const struct report_command *command, int rc)
{
	const uint64_t code = rc == 0 ? 0 : (uint64_t)RTE_MIN(-rc, ERRNO_MAX);

	/* If the word has changed, nobody waits for this answer any more. */
	swap(report, command->word, body_of(command->word) | code << STATE_SHIFT);
}
