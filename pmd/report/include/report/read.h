/* SPDX-License-Identifier: BSD-3-Clause */
/* The side that looks on: copies of reports, checked, and what is in them by name. */
#ifndef REPORT_READ_H
#define REPORT_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "report/layout.h"

/* What a reader has of a process. */
struct report_view {
	pid_t pid;
	char comm[32];
	bool fresh; /* written after it was asked for, not before: the process is not stopped */
	uint64_t written_ns;
	struct report_facts facts;
	uint32_t attached_count;
	int32_t attached[REPORT_ATTACHED_MAX];
	uint32_t totals[REPORT_KINDS];
	uint32_t stat_count;
	uint32_t record_count;
	struct report_stat stats[REPORT_STATS_MAX];
	struct report_record *records; /* NULL where there are none */
};

/** Ask for a report to be written anew. Returns what report_answered then wants to know. MT-safe.
 */
uint32_t report_ask(struct report *report);

/** Whether it has been since. MT-safe. */
bool report_answered(const struct report *report, uint32_t asked);

/**
 * Copy what was last written. Names in the copy are printable: a byte that is not is a '?', since
 * it may be an order to the reader's terminal. MT-safe.
 *
 * @return
 *   0; -EAGAIN where nothing whole can be had: it was never written, or its writer was killed
 * meanwhile; -EPROTO where what is there is no report of this version; -ENOMEM.
 */
int report_read(const struct report *report, struct report_view *view);

/** Let go of what report_read has taken. */
void report_release(struct report_view *view);

/** A process's name, as ps(1) shows it, and printable as above; "" where it has gone. MT-safe. */
void report_comm(pid_t pid, char comm[32]);

/* Where the fields of something go. */
struct report_fields {
	void (*text)(void *arg, const char *name, const char *value);
	void (*number)(void *arg, const char *name, uint64_t value);
	void *arg;
};

/** "qp", "cq", "mr", "pd". MT-safe. */
const char *report_kind_name(enum report_kind kind);

/** Tell all fields of a record, the number first, named as rdma(8) does. MT-safe. */
void report_tell_record(const struct report_record *record, const struct report_fields *fields);

/** Tell what is known of a device, and of its port. MT-safe. */
void report_tell_dev(const struct report_facts *facts, const struct report_fields *fields);
void report_tell_link(const struct report_facts *facts, const struct report_fields *fields);

/** Tell the counts. MT-safe. */
void report_tell_stats(const struct report_view *view, const struct report_fields *fields);

/** A count by its name; 0 where there is none. MT-safe. */
uint64_t report_stat(const struct report_view *view, const char *name);

#endif
