/* SPDX-License-Identifier: BSD-3-Clause */
/* What is due next of many things: a heap. */
#ifndef NET_DUE_H
#define NET_DUE_H

#include <stddef.h>
#include <stdint.h>

#define DUE_NEVER UINT64_MAX

/* A part of each thing. Whose time is DUE_NEVER stands in no heap. */
struct due {
	uint64_t at_ns;
	size_t place; /* in the heap */
};

/* Zeros are an empty one. */
struct due_heap {
	struct due **entries; /* the earliest first; entry i is no later than 2i + 1 and 2i + 2 */
	size_t count;
	size_t room;
};

/** Make room for that many things at a time. Not MT-safe, as all here. 0 or -ENOMEM. */
int due_reserve(struct due_heap *heap, size_t count);
void due_fini(struct due_heap *heap);

/** Change when a thing is due. */
void due_set(struct due_heap *heap, struct due *due, uint64_t at_ns);

/** The earliest, or NULL. */
static inline struct due *due_first(const struct due_heap *heap)
{
	return heap->count > 0 ? heap->entries[0] : NULL;
}

#endif
