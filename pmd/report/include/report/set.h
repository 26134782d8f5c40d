/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of several processes, read together. */
#ifndef REPORT_SET_H
#define REPORT_SET_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "report/read.h"

#define REPORT_SET_MAX 1024

struct report_source {
	pid_t pid;
	pid_t owner;	  /* not 0: the process is attached to this one, regardless of its report */
	uint32_t holders; /* references of the set and of each running collection; the last one
			     unmaps the report */
	struct report *report;
};

struct report_set {
	pthread_mutex_t lock; /* protects all below; held only briefly, because threads that forward
				 packets take it */
	uint32_t count;
	struct report_source *sources[REPORT_SET_MAX];
	uint32_t left_out; /* reports that were found but not added: report/read.h */
};

void report_set_init(struct report_set *set);

/**
 * Add a process's report, which the set owns from now on. MT-safe.
 *
 * @param owner
 *   The process to which it is known to be attached; or 0: its report may say so.
 * @return
 *   0, or -ENOSPC or -ENOMEM: the caller still owns the report.
 */
int report_set_add(struct report_set *set, pid_t pid, pid_t owner, struct report *report);

/** Remove a report from the set, and unmap it when nobody reads it any more. Does nothing with
 * NULL. MT-safe. */
void report_set_remove(struct report_set *set, struct report *report);

/** Unmap all reports. Nobody may read them any more. */
void report_set_fini(struct report_set *set);

/* The result of a collection. */
struct report_views {
	uint32_t count;
	struct report_view *list; /* sorted by pid, then by the device's name */
};

/**
 * Ask all processes, wait at most `ms` milliseconds for their answers, and copy the reports.
 * Processes that have never written a report are left out. MT-safe.
 *
 * @return
 *   0 or -ENOMEM.
 */
int report_set_collect(struct report_set *set, unsigned int ms, struct report_views *views);

void report_views_release(struct report_views *views);

#endif
