/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of on-demand regions that are not in memory: swapped out, of a file, or held back by
 * whoever serves a userfaultfd. A thread that touches such a page waits for it, perhaps for good.
 * So the engine asks before it touches; threads of the pager touch instead, and tell when a page
 * has come.
 */
#ifndef MEM_PAGER_H
#define MEM_PAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/mr.h"

/* Pages that are brought in at a time, and the threads that do it, each of which waits for one. */
#define PAGER_FETCHES 64
/* Threads that wait for something to do. */
#define PAGER_IDLE 4
/* Bytes that are brought in behind those that are needed, at most. */
#define PAGER_AHEAD_BYTES (UINT32_C(2) << 20)
/* How long a page counts as being there after the kernel was asked. */
#define PAGER_FRESH_NS UINT64_C(100000)

/* Whom a domain asks. The simulator has one of its own. */
struct pager {
	/*
	 * Return true if the first bytes at an address can be accessed at once: their pages are in
	 * memory, or cannot be had, which the access itself finds out. Else they are brought in,
	 * and the engine is told when something has come. Engine's thread.
	 */
	bool (*look)(struct pager *pager, uintptr_t addr, struct mr_touch touch, bool write);
};

struct pager_config {
	const uint64_t *now_ns; /* the engine's time; read by `look` */
	/* Pages have come, perhaps those that were asked for. One of the pager's threads. */
	void (*came)(void *user);
	void *user;
	/* Start a thread, which is not joined. 0 or -errno. Engine's thread. */
	int (*start)(void *(*run)(void *arg), void *arg);
};

/** Make a pager. It has no threads until a page is absent. MT-safe. 0, -ENOMEM, or
 * -EOPNOTSUPP where the system does not tell which pages are in memory. */
int pager_create(const struct pager_config *config, struct pager **pager);

/** Nobody looks any more, and `came` is not called again. Threads that wait for a page end when it
 * comes. NULL is none. Not for the pager's own threads. */
void pager_destroy(struct pager *pager);

#endif
