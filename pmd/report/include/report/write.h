/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer's side of a report. One thread at a time. */
#ifndef REPORT_WRITE_H
#define REPORT_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "report/layout.h"

struct device;

/**
 * Make a report that nobody can shorten, and map it; children do not inherit the mapping.
 *
 * @param fd
 *   Set to its descriptor: readers find it while that is open.
 * @return
 *   0 or -errno.
 */
int report_create(int *fd, struct report **report);

/** Map the report of another process. 0; -EPROTO: the file is not a report; or -errno. */
int report_map(int fd, struct report **report);

void report_unmap(struct report *report);

/** Return true if a reader has asked since the report was last written. */
static inline bool report_is_wanted(const struct report *report)
{
	return __atomic_load_n(&report->wanted, __ATOMIC_RELAXED) != report->answered;
}

/** Begin to write the report again, without counters and records. */
void report_begin(struct report *report);

void report_add_stat(struct report *report, const char *name, uint64_t value);

/** Add a record. If there is no room, only count it. */
void report_add(struct report *report, const struct report_record *record);

/** Add a process that is attached to the owner whose report this is. */
void report_add_attached(struct report *report, int32_t pid);

/** Finish the report. */
void report_end(struct report *report);

/** Write a whole device: its state, counters and objects. Engine's thread or lock. */
void report_write_device(struct report *report, struct device *device);

#endif
