/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of rings: from the heap, or from an allocator of the application. */
#ifndef QUEUE_RING_H
#define QUEUE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The use of a ring. An allocator may treat them differently. */
enum ring_kind {
	RING_SEND,
	RING_RECV,
	RING_SHARED_RECV,
	RING_COMPLETION,
};

/*
 * An allocator that provides memory instead of the heap. The thread that creates, resizes or
 * destroys a queue calls it. It must outlive the rings that it provided memory for.
 */
struct ring_allocator {
	/* Return 0 and the memory; 0 and NULL to let the heap provide it; or -errno. */
	int (*alloc)(void *user, size_t bytes, size_t alignment, enum ring_kind kind,
		     void **memory);
	/* Called once for each memory that alloc returned. */
	void (*free)(void *user, void *memory, enum ring_kind kind);
	void *user;
};

/* Attributes that the application sets for all queues of a domain; read when a queue is created. */
struct queue_domain {
	const struct ring_allocator *allocator; /* NULL: the heap */
	bool single_threaded; /* no two threads use one of its queues at the same time: no locks */
};

struct ring_memory {
	void *base;			   /* cache lines; not cleared */
	const struct ring_allocator *from; /* NULL: the heap */
	enum ring_kind kind;
	uint32_t bytes; /* bytes if it is from the heap; saturates at UINT32_MAX */
};

/**
 * Allocate memory for a ring. MT-safe if the allocator is.
 *
 * @param domain
 *   NULL for none.
 * @return
 *   0; -ENOMEM, also if an allocator returns memory that is not aligned as asked for (it is freed).
 */
int ring_alloc(const struct queue_domain *domain, size_t bytes, enum ring_kind kind,
	       struct ring_memory *memory);

/** Free it where it came from. Does nothing if there is none. */
void ring_free(struct ring_memory *memory);

#endif
