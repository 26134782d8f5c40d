/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of rings: the heap's, or what the owner of a queue provides. */
#ifndef QUEUE_RING_H
#define QUEUE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a ring is for. An allocator may treat them differently. */
enum ring_kind {
	RING_SEND,
	RING_RECV,
	RING_SHARED_RECV,
	RING_COMPLETION,
};

/*
 * Who provides memory instead of the heap. Called by the thread that creates, resizes or destroys a
 * queue. It outlives the rings that it provided for.
 */
struct ring_allocator {
	/* 0 with the memory, or with NULL where the heap is to provide it; or -errno. */
	int (*alloc)(void *user, size_t bytes, size_t alignment, enum ring_kind kind,
		     void **memory);
	/* Once for what alloc gave. */
	void (*free)(void *user, void *memory, enum ring_kind kind);
	void *user;
};

/* What the application says of the queues that it makes in one place; read when they are made. */
struct queue_domain {
	const struct ring_allocator *allocator; /* NULL: the heap */
	bool single_threaded; /* no two threads use one of its queues at once: no locks */
};

struct ring_memory {
	void *base;			   /* of cache lines; not cleared */
	const struct ring_allocator *from; /* NULL: the heap */
	enum ring_kind kind;
	uint32_t bytes; /* of the heap's, or the most that this can tell */
};

/**
 * Get memory for a ring. MT-safe as the allocator is.
 *
 * @param domain
 *   NULL for none.
 * @return
 *   0; -ENOMEM, also where an allocator gives memory that is not aligned as asked for (it is given
 *   back).
 */
int ring_alloc(const struct queue_domain *domain, size_t bytes, enum ring_kind kind,
	       struct ring_memory *memory);

/** Give it back to where it came from; nothing where there is none. */
void ring_free(struct ring_memory *memory);

#endif
