/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of several processes, looked at together. */
#ifndef REPORT_SET_H
#define REPORT_SET_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "report/read.h"

#define REPORT_SET_MAX 1024

struct report_source {
	pid_t pid;
	pid_t owner;	  /* not 0: the process is attached to this one, whatever its report says */
	uint32_t holders; /* the set, and each look that is going on; the last one unmaps it */
	struct report *report;
};

struct report_set {
	pthread_mutex_t lock; /* of all below; held for moments only, because threads that forward
				 packets take it */
	uint32_t count;
	struct report_source *sources[REPORT_SET_MAX];
	uint32_t left_out; /* reports that were found and not taken in: report/scan.h */
};

void report_set_init(struct report_set *set);

/**
 * Take in a process's report, which is the set's from now on. MT-safe.
 *
 * @param owner
 *   The process that it is known to be attached to; or 0: it may say so itself.
 * @return
 *   0, or -ENOSPC or -ENOMEM: the report is the caller's still.
 */
int report_set_add(struct report_set *set, pid_t pid, pid_t owner, struct report *report);

/** Let go of a report that was taken in, and unmap it when nobody looks at it any more; nothing
 * with NULL. MT-safe. */
void report_set_remove(struct report_set *set, struct report *report);

/** Unmap all. Nobody looks any more. */
void report_set_fini(struct report_set *set);

/* The result of a look. */
struct report_views {
	uint32_t count;
	struct report_view *list; /* by pid, and a process's in the order of its devices' names */
};

/**
 * Ask all processes, wait for their answers up to so many milliseconds, and copy what there is;
 * processes that never wrote anything are left out. MT-safe.
 *
 * @return
 *   0 or -ENOMEM.
 */
int report_set_collect(struct report_set *set, unsigned int ms, struct report_views *views);

void report_views_release(struct report_views *views);

#endif
