/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap of timers: finds the entry that is due next. */
#ifndef NET_DUE_H
#define NET_DUE_H

#include <stddef.h>
#include <stdint.h>

#define DUE_NEVER UINT64_MAX

/* An entry, embedded in its object. Not in the heap while its time is DUE_NEVER. */
struct due {
	uint64_t at_ns;
	size_t place; /* index in the heap */
};

/* All zero: empty. */
struct due_heap {
	struct due **entries; /* the earliest first; entry i is no later than 2i + 1 and 2i + 2 */
	size_t count;
	size_t room;
};

/** Make room for that many entries. Not MT-safe, like all functions here. 0 or -ENOMEM. */
int due_reserve(struct due_heap *heap, size_t count);
void due_fini(struct due_heap *heap);

/** Set the time at which an entry is due. */
void due_set(struct due_heap *heap, struct due *due, uint64_t at_ns);

/** Return the earliest entry, or NULL. */
static inline struct due *due_first(const struct due_heap *heap)
{
	return heap->count > 0 ? heap->entries[0] : NULL;
}

#endif
