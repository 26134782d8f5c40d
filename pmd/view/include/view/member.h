/* SPDX-License-Identifier: BSD-3-Clause */
/* A process's slot in the table of its view. The process's device publishes there what the files
 * show. */
#ifndef VIEW_MEMBER_H
#define VIEW_MEMBER_H

#include <stdbool.h>

#include "view/table.h"

struct view_member {
	struct view_table *table;
	struct view_slot *slot; /* NULL: no view, or no slot is free */
};

/** Take a slot in this process's view. Returns false if there is no view. Not MT-safe. */
bool view_member_join(struct view_member *member);

/** Return true if the slot is still ours. MT-safe. */
bool view_member_is_in(const struct view_member *member);

/** Write facts, and wake the server. One thread at a time. */
void view_member_tell(struct view_member *member, const struct view_facts *facts);

/** Wait until files show the last facts. Returns false if the server does not answer within
 * VIEW_ANSWER_S. MT-safe. */
bool view_member_wait(const struct view_member *member);

/** Write counters. The server reads them every VIEW_PERIOD_MS. One thread at a time. */
static inline void view_member_count(struct view_member *member, const struct counters *counters)
{
	for (int i = 0; i < COUNTER_COUNT; i++)
		__atomic_store_n(&member->slot->counters[i],
				 counters_get(counters, (enum counter)i), __ATOMIC_RELAXED);
}

#endif
