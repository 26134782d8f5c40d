/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes consistent copies of reports. */
#include "report/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES  1000 /* attempts while a report is being written */
#define COPIES 3    /* copies that a write may spoil; a correct writer does not write that often */

uint32_t report_ask(struct report *report)
{
	return __atomic_add_fetch(&report->wanted, 1, __ATOMIC_RELAXED);
}

bool report_answered(const struct report *report, uint32_t asked)
{
	return (int32_t)(__atomic_load_n(&report->answered, __ATOMIC_RELAXED) - asked) >= 0 &&
	       (__atomic_load_n(&report->sequence, __ATOMIC_ACQUIRE) & 1) == 0;
}

static void make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (char *c = text; *c != '\0'; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

static void end_texts(struct report_view *view)
{
	make_printable(view->facts.device, sizeof(view->facts.device));
	make_printable(view->facts.port, sizeof(view->facts.port));
	for (uint32_t i = 0; i < view->stat_count; i++)
		make_printable(view->stats[i].name, sizeof(view->stats[i].name));
	for (uint32_t i = 0; i < view->record_count; i++) {
		if (view->records[i].kind == REPORT_CM_ID)
			make_printable(view->records[i].cm_id.state,
				       sizeof(view->records[i].cm_id.state));
	}
}

/* Copy a report. Read each count once: it may change at any time. */
static int copy(const struct report *report, struct report_view *view)
{
	const uint32_t records = __atomic_load_n(&report->record_count, __ATOMIC_RELAXED);
	const uint32_t stats = __atomic_load_n(&report->stat_count, __ATOMIC_RELAXED);
	const uint32_t attached = __atomic_load_n(&report->attached_count, __ATOMIC_RELAXED);
	struct report_record *more;

	if (records > REPORT_RECORDS_MAX || stats > REPORT_STATS_MAX ||
	    attached > REPORT_ATTACHED_MAX)
		return -EPROTO;
	more = realloc(view->records, (records + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	view->records = more;
	view->record_count = records;
	view->stat_count = stats;
	view->written_ns = report->written_ns;
	view->facts = report->facts;
	view->cc_params = report->cc_params;
	view->attached_count = attached;
	memcpy(view->attached, report->attached, attached * sizeof(view->attached[0]));
	memcpy(view->totals, report->totals, sizeof(view->totals));
	memcpy(view->stats, report->stats, stats * sizeof(view->stats[0]));
	memcpy(more, report->records, records * sizeof(*more));
	return 0;
}

int report_read(const struct report *report, struct report_view *view)
{
	int rc = -EAGAIN, copies = 0;

	view->records = NULL;
	if (report->version != REPORT_VERSION || report->bytes != sizeof(*report))
		return -EPROTO;
	for (int i = 0; i < TRIES && copies < COPIES; i++) {
		const uint32_t sequence = __atomic_load_n(&report->sequence, __ATOMIC_ACQUIRE);
		int copied;

		if (sequence == 0 || (sequence & 1)) {
			usleep(10);
			continue;
		}
		copied = copy(report, view);
		copies++;
		/* Order the reads of the copy before the read of the sequence. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&report->sequence, __ATOMIC_RELAXED) != sequence)
			continue;
		rc = copied;
		break;
	}
	if (rc == 0)
		end_texts(view);
	else
		report_release(view);
	return rc;
}

void report_release(struct report_view *view)
{
	free(view->records);
	view->records = NULL;
	view->record_count = 0;
}

void report_comm(pid_t pid, char comm[32])
{
	char path[64];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, comm, 31);
		close(fd);
	}
	comm[len > 0 ? len : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	make_printable(comm, 32);
}
