/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of reports: checked copies, and the fields of a copy by name. */
#ifndef REPORT_READ_H
#define REPORT_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "report/layout.h"
#include "report/set.h"

/* A checked copy of a process's report. */
struct report_view {
	pid_t pid;
	char comm[32];
	bool fresh; /* written after the request, so the process is not stopped */
	uint64_t written_ns;
	struct report_facts facts;
	struct cc_params cc_params;
	uint32_t attached_count;
	int32_t attached[REPORT_ATTACHED_MAX];
	uint32_t totals[REPORT_KINDS];
	uint32_t stat_count;
	uint32_t record_count;
	struct report_stat stats[REPORT_STATS_MAX];
	struct report_record *records; /* NULL if there are none */
};

/** Ask the process to write its report again. Returns the number of the request, for
 * report_answered. MT-safe. */
uint32_t report_ask(struct report *report);

/** Return true if the report was written after that request. MT-safe. */
bool report_answered(const struct report *report, uint32_t asked);

/**
 * Copy the newest report. In the names of the copy, a '?' replaces each byte that is not printable:
 * such a byte may be a command to the reader's terminal. MT-safe.
 *
 * @return
 *   0; -EAGAIN: there is no complete report, because it is being written, or was never written, or
 * because its writer was killed while it wrote; -ESTALE: it was written meanwhile; -EPROTO: the
 * file is not a report of this version; -ENOMEM.
 */
int report_read(const struct report *report, struct report_view *view);

/** Free what report_read has allocated. */
void report_release(struct report_view *view);

/** Read a process's name, as ps(1) shows it, made printable as above; "" if the process has ended.
 * MT-safe. */
void report_comm(pid_t pid, char comm[32]);

/* Callbacks that take the fields of a record, device or port. */
struct report_fields {
	void (*text)(void *arg, const char *name, const char *value);
	void (*number)(void *arg, const char *name, uint64_t value);
	void *arg;
};

/** Return "qp", "cq", "mr" or "pd". MT-safe. */
const char *report_kind_name(enum report_kind kind);

/** Return the word for an enum ibv_qp_type, or "UNKNOWN". MT-safe. */
const char *report_qp_type(uint32_t type);

/** Pass all fields of a record to the callbacks, the number first, named as in rdma(8). MT-safe. */
void report_tell_record(const struct report_record *record, const struct report_fields *fields);

/** Pass all fields of a device, or of its port, to the callbacks. MT-safe. */
void report_tell_dev(const struct report_facts *facts, const struct report_fields *fields);
void report_tell_link(const struct report_facts *facts, const struct report_fields *fields);

/** Pass congestion control of new queue pairs and its parameters to the callbacks. MT-safe. */
void report_tell_congestion(const struct report_view *view, const struct report_fields *fields);

/** Pass the counters to the callbacks. MT-safe. */
void report_tell_stats(const struct report_view *view, const struct report_fields *fields);

/** Return the record of a queue pair, or NULL. MT-safe. */
const struct report_record *report_find_qp(const struct report_view *view, uint32_t qpn);

/** Return a counter by its name; 0 if there is none. MT-safe. */
uint64_t report_stat(const struct report_view *view, const char *name);

/* Limit of reports per process, so that nobody can hide other processes' reports behind many of
 * their own. A uroced has one report for each of its ports, a program one for each of its devices,
 * and a child may have those of its parent, too. */
#define SCAN_PROCESS_MAX 64
/* Descriptors of a process that are checked, the lowest first: reports are opened early. */
#define SCAN_FDS_MAX  16384
#define SCAN_USER_MAX 256 /* per user; the superuser's reports are not limited */

struct report_set;

/**
 * Add the reports of all processes whose descriptors may be read: the user's own, or all if the
 * user is root. The set counts the reports that are left out, because they exceed a limit or cannot
 * be opened at once. MT-safe.
 *
 * @return
 *   0 or -errno.
 */
int report_scan(struct report_set *set);

#endif
