/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the memory file of a report, and writes it so that readers can detect an incomplete one. */
#include "report/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/monotonic.h"
int report_map(int fd, struct report **report)
{
	struct stat file;
	void *memory;

	if (fstat(fd, &file) != 0)
		return -errno;
	/* Refuse a file that may become shorter: reading behind its end is a SIGBUS. */
	if (!S_ISREG(file.st_mode) || file.st_size != (off_t)sizeof(**report) ||
	    (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0 || fcntl(fd, F_GET_SEALS) < 0)
		return -EPROTO;
	memory = mmap(NULL, sizeof(**report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	*report = memory;
	return 0;
}

int report_create(int *fd, struct report **report)
{
	int rc;

	*fd = memfd_create(REPORT_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, (off_t)sizeof(**report)) != 0 ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		rc = -errno;
	else
		rc = report_map(*fd, report);
	if (rc != 0) {
		close(*fd);
		*fd = -1;
		return rc;
	}
	madvise(*report, sizeof(**report), MADV_DONTFORK);
	(*report)->version = REPORT_VERSION;
	(*report)->bytes = sizeof(**report);
	(*report)->pid = getpid();
	return 0;
}

void report_unmap(struct report *report)
{
	if (report)
		munmap(report, sizeof(*report));
}

void report_begin(struct report *report)
{
	__atomic_store_n(&report->sequence, report->sequence | 1, __ATOMIC_RELAXED);
	/* Orders that store before all writes that follow. Pairs with report_read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* This version does not answer readers that ask from now on; the next one does. */
	__atomic_store_n(&report->answered, __atomic_load_n(&report->wanted, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	report->stat_count = 0;
	report->record_count = 0;
	report->attached_count = 0;
	for (int kind = 0; kind < REPORT_KINDS; kind++)
		report->totals[kind] = 0;
}

void report_add_stat(struct report *report, const char *name, uint64_t value)
{
	struct report_stat *stat;

	if (report->stat_count >= REPORT_STATS_MAX)
		return;
	stat = &report->stats[report->stat_count++];
	snprintf(stat->name, sizeof(stat->name), "%s", name);
	stat->value = value;
}

void report_add(struct report *report, const struct report_record *record)
{
	report->totals[record->kind]++;
	if (report->record_count < REPORT_RECORDS_MAX)
		report->records[report->record_count++] = *record;
}

void report_add_attached(struct report *report, int32_t pid)
{
	if (report->attached_count < REPORT_ATTACHED_MAX)
		report->attached[report->attached_count++] = pid;
}

void report_end(struct report *report)
{
	report->written_ns = monotonic_ns();
	/* Release: a reader that sees an even number sees all that was written before. */
	__atomic_store_n(&report->sequence, (report->sequence | 1) + 1, __ATOMIC_RELEASE);
}
