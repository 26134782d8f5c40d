/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of owner/budget.h. */
#include <stdint.h>

#include "owner/budget.h"
#include "test.h"

TEST(budget_is_spent__after_a_burst)
{
	struct budget budget = {0};

	assert_false(budget_is_spent(&budget, 1000));
	budget_spend(&budget, 1000, BUDGET_BURST_NS - 1, 1);
	assert_false(budget_is_spent(&budget, 1000));
	budget_spend(&budget, 1000, 1, 1);
	assert_true(budget_is_spent(&budget, 1000));
	assert_false(budget_is_spent(&budget, 1001));
}

/* Messages of any length get the same part of the time. */
static void check_part(uint32_t clients, uint64_t part)
{
	for (uint64_t took_ns = 1000; took_ns <= 1000000; took_ns *= 10) {
		struct budget budget = {0};
		uint64_t now_ns = 1, had_ns = 0;
		const uint64_t end_ns = UINT64_C(1000000000);

		while (now_ns < end_ns) {
			if (budget_is_spent(&budget, now_ns)) {
				now_ns += 100;
				continue;
			}
			now_ns += took_ns;
			had_ns += took_ns;
			budget_spend(&budget, now_ns, took_ns, clients);
		}
		assert_true(had_ns <= end_ns / part + BUDGET_BURST_NS + 2 * took_ns);
		assert_true(had_ns >= end_ns / part - took_ns);
	}
}

TEST(budget_spend__gets_its_part)
{
	check_part(1, BUDGET_PART);
	check_part(BUDGET_PART, BUDGET_PART);
}

TEST(budget_spend__shares_all_the_time_among_many)
{
	check_part(4 * BUDGET_PART, 4 * BUDGET_PART);
}
