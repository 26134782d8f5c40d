/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of a device's counters. A new value is written into the same file, so that a program
 * that keeps the file open and reads it again gets the new value, as in sysfs.
 *
 * Functions are not MT-safe.
 */
#ifndef VIEW_COUNTER_FILES_H
#define VIEW_COUNTER_FILES_H

#include <stdint.h>

#include "view/table.h"

#define COUNTER_FILES_PORT 7 /* files in counters/, of IBTA's PortCounters */
#define COUNTER_FILES_MAX  (COUNTER_COUNT + COUNTER_FILES_PORT)

struct counter_file {
	uint64_t value; /* in the file */
	int length;	/* of its text in bytes; 0: there is no file yet */
	int fd;		/* if there is a file: a descriptor for writing, or -1 */
};

/* All zero: there are no files yet. */
struct counter_files {
	struct counter_file files[COUNTER_FILES_MAX];
};

/** Write the counters that changed, or all of them if there are no files yet. 0 or -errno. */
int counter_files_write(struct counter_files *files, int root, const struct view_facts *facts,
			const uint64_t *counters);

/** Close all descriptors, and forget the files. They stay. */
void counter_files_close(struct counter_files *files);

#endif
