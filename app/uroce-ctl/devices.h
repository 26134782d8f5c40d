/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, out of what processes show: those that share a port have one. */
#ifndef DEVICES_H
#define DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "report/set.h"

struct ctl_device {
	uint32_t index;
	const char *name;
	const struct report_view *head; /* the owner's, or the only one */
	uint32_t processes;		/* programs that use it */
	uint32_t totals[REPORT_KINDS];	/* their objects */
};

struct ctl_devices {
	struct report_views views;
	struct ctl_device *list;
	uint32_t *of; /* for each view, the index of its device */
	uint32_t count;
	uint32_t left_out; /* reports that were found and not looked at */
};

/** Look at all processes of this host. 0 or -errno. */
int devices_look(struct ctl_devices *devices);

/**
 * Sort views into devices, and take them over. A process shares the device of an owner if the
 * owner's report names that process too. A process that only claims to be attached gets a device of
 * its own. If the owner's report cannot be read, the claim is believed: then all these processes
 * are the reader's own. 0 or -ENOMEM.
 */
int devices_sort(struct ctl_devices *devices, const struct report_views *views);

void devices_release(struct ctl_devices *devices);

#endif
