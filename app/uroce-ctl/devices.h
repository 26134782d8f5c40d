/* SPDX-License-Identifier: BSD-3-Clause */
/* Group the reports of processes by device. Processes that share a port share a device. */
#ifndef DEVICES_H
#define DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "report/set.h"

struct ctl_device {
	uint32_t index;
	const char *name;
	const struct report_view *head; /* the report of the owner, or the only report */
	uint32_t processes;		/* number of programs that use the device */
	uint32_t totals[REPORT_KINDS];	/* sums over these programs */
};

struct ctl_devices {
	struct report_views views;
	struct ctl_device *list;
	uint32_t *of; /* for each view, the index of its device */
	uint32_t count;
	uint32_t left_out; /* reports that were found but not read */
};

/** Read the reports of all processes of this host. Returns 0 or -errno. */
int devices_look(struct ctl_devices *devices);

/**
 * Group views by device and take ownership of the views. A process shares the device of an owner if
 * the owner's report names that process too. A process that only claims to be attached gets a
 * device of its own. If the owner's report cannot be read, the claim is believed: then all these
 * processes are the reader's own. 0 or -ENOMEM.
 */
int devices_sort(struct ctl_devices *devices, const struct report_views *views);

void devices_release(struct ctl_devices *devices);

#endif
