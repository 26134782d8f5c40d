/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of on-demand regions that are not in memory: they are swapped out, are in a file, or are
 * held back by the server of a userfaultfd. A thread that touches such a page waits for it, perhaps
 * for ever. So the engine asks before it touches a page. If it is absent, a thread of the pager
 * touches it instead, and reports when the page has come.
 */
#ifndef MEM_PAGER_H
#define MEM_PAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/mr.h"

/* Ranges that are brought in at the same time, by one thread each. */
#define PAGER_FETCHES 64
/* Threads that stay to wait for further work. */
#define PAGER_IDLE 4
/* Most bytes that are brought in behind those that are needed. */
#define PAGER_AHEAD_BYTES (UINT32_C(2) << 20)
/* The time for which a page counts as present after the kernel was asked. */
#define PAGER_FRESH_NS UINT64_C(100000)
/* The time for which a page that cannot be touched counts as present. An access may be preceded by
 * several queries: a completer asks when pages have come, has its READ answered again, and asks
 * again when the answer comes. */
#define PAGER_FAILED_NS UINT64_C(100000000)
/* If a page takes longer, a second thread touches it. */
#define PAGER_AGAIN_NS UINT64_C(1000000000)

/* The pager of a domain. The simulator has one of its own. */
struct pager {
	/*
	 * Return true if the first bytes at an address can be accessed at once: their pages are in
	 * memory, or do not exist, which the access itself finds out. Otherwise the pager brings
	 * the pages in, and reports to the engine. Engine's thread.
	 */
	bool (*look)(struct pager *pager, uintptr_t addr, struct mr_touch touch, bool write);
};

struct pager_config {
	const uint64_t *now_ns; /* the engine's time; read by `look` */
	/* NULL: `now_ns` counts. Returns the time if several engines have the pager: now_ns would
	 * be old if one of them is idle. */
	uint64_t (*clock)(void *user);
	/* Report that pages have come; they may not be those that were asked for. Called by a
	 * thread of the pager. */
	void (*came)(void *user);
	void *user;
	/* Start a thread, which is never joined. 0 or -errno. Engine's thread. */
	int (*start)(void *(*run)(void *arg), void *arg);
};

/** Create a pager. It starts threads only when a page is absent. MT-safe. 0, -ENOMEM, or
 * -EOPNOTSUPP if the system does not report which pages are in memory. */
int pager_create(const struct pager_config *config, struct pager **pager);

/** Destroy a pager. Nobody calls `look` any more, and `came` is not called again. Threads that wait
 * for a page end when it comes. NULL is allowed. Not for the pager's own threads. */
void pager_destroy(struct pager *pager);

#endif
