/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/groups.c: when reports are due. */
#include <stdlib.h>

#include "net/groups.h"
#include "test.h"

#define THINGS 300

TEST(due_set__the_earliest_comes_first)
{
	struct due things[THINGS];
	struct due_heap heap = {.count = 0};
	unsigned int random = 1;

	assert_int_equal(due_reserve(&heap, THINGS), 0);
	assert_null(due_first(&heap));
	for (size_t i = 0; i < THINGS; i++)
		things[i].at_ns = DUE_NEVER;
	for (size_t round = 0; round < 20000; round++) {
		uint64_t earliest_ns = DUE_NEVER;
		struct due *due;

		random = random * 1103515245 + 12345;
		due = &things[(random >> 8) % THINGS];
		random = random * 1103515245 + 12345;
		due_set(&heap, due, (random >> 8) % 3 == 0 ? DUE_NEVER : (random >> 8) % 1000);
		for (size_t i = 0; i < THINGS; i++) {
			if (things[i].at_ns < earliest_ns)
				earliest_ns = things[i].at_ns;
		}
		if (earliest_ns == DUE_NEVER)
			assert_null(due_first(&heap));
		else
			assert_int_equal(due_first(&heap)->at_ns, earliest_ns);
	}
	for (size_t i = 0; i < THINGS; i++)
		due_set(&heap, &things[i], DUE_NEVER);
	assert_null(due_first(&heap));
	due_fini(&heap);
}
