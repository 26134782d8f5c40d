/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders in a report, and their answers, as one word. */
#include "report/order.h"

#include <errno.h>
#include <unistd.h>

#include "report/read.h"

/* From the lowest bit: value, index, kind, a number that tells orders apart, state. */
#define INDEX_SHIFT 32
#define KIND_SHIFT  40
#define TAG_SHIFT   44
#define TAG_MASK    0xfffu
#define STATE_SHIFT 56
#define STATE_ORDER 0xffu
#define STATE_TAKEN 0xfeu
#define ERRNO_MAX   0xfd /* else it is an answer: a positive errno, or 0 */
#define KIND_MASK   0xfu

static uint64_t order_word(const struct report_order *order, uint32_t tag)
{
	return (uint64_t)STATE_ORDER << STATE_SHIFT | (uint64_t)tag << TAG_SHIFT |
	       (uint64_t)order->kind << KIND_SHIFT | (uint64_t)order->index << INDEX_SHIFT |
	       order->value;
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
	return __atomic_compare_exchange_n(&report->order, &from, to, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* Put the order into the report. Another reader's order has half of the time to be answered, and
 * its answer to be taken; after that it is replaced. Return the milliseconds that are left. */
static unsigned int put(struct report *report, uint64_t word, unsigned int ms)
{
	const unsigned int half = ms / 2;
	unsigned int left = ms;

	for (;;) {
		const uint64_t now = __atomic_load_n(&report->order, __ATOMIC_RELAXED);

		if ((now == 0 || left <= half) && swap(report, now, word))
			return left;
		if (left > half) {
			usleep(1000);
			left--;
		}
	}
}

/* Wait until the process answers, and empty the word. Return what order_give returns. */
static int await(struct report *report, uint64_t word, unsigned int left, unsigned int grace)
{
	for (;;) {
		const uint64_t now = __atomic_load_n(&report->order, __ATOMIC_RELAXED);
		const bool is_taken = state_of(now) == STATE_TAKEN;

		if (body_of(now) != body_of(word))
			return -EINPROGRESS; /* another reader has replaced it */
		if (!is_taken && state_of(now) != STATE_ORDER) {
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

int order_give(struct report *report, const struct report_order *order, unsigned int ms)
{
	/* Two processes may get the same number, if their process ids differ by a multiple of its
	 * range. Not 0: an answer must not look like an empty word. */
	const uint32_t tag = ((uint32_t)getpid() & (TAG_MASK >> 1)) << 1 | 1;
	const uint64_t word = order_word(order, tag);
	const unsigned int left = put(report, word, ms);

	report_ask(report);
	return await(report, word, left, ms);
}

bool order_take(struct report *report, struct report_order *order)
{
	const uint64_t word = __atomic_load_n(&report->order, __ATOMIC_RELAXED);
	const uint32_t kind = (uint32_t)(word >> KIND_SHIFT) & KIND_MASK;
	const uint64_t taken = body_of(word) | (uint64_t)STATE_TAKEN << STATE_SHIFT;

	if (state_of(word) != STATE_ORDER || !swap(report, word, taken))
		return false;
	*order = (struct report_order){.kind = kind < ORDER_KINDS ? (enum order_kind)kind
								  : ORDER_KINDS,
				       .index = (uint8_t)(word >> INDEX_SHIFT),
				       .value = (uint32_t)word,
				       .word = taken};
	return true;
}

void order_answer(struct report *report, const struct report_order *order, int rc)
{
	const uint64_t code = rc == 0 ? 0 : (uint64_t)RTE_MIN(-rc, ERRNO_MAX);

	/* If the word has changed, nobody waits for this answer any more. */
	swap(report, order->word, body_of(order->word) | code << STATE_SHIFT);
}
