/* SPDX-License-Identifier: BSD-3-Clause */
/* Group the reports of processes by device. Processes that share a port share a device. */
#ifndef REPORT_DEVICES_H
#define REPORT_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include "report/set.h"

struct report_device {
	uint32_t index;
	const char *name;
	char net[96]; /* PORT@PID: the port and the process that owns it; no other device has it */
	const struct report_view *head; /* the report of the owner, or the only report */
	uint32_t processes;		/* number of programs that use the device */
	uint32_t totals[REPORT_KINDS];	/* sums over these programs */
};

struct report_devices {
	struct report_views views;
	struct report_device *list;
	uint32_t *of; /* for each view, the index of its device */
	uint32_t count;
	uint32_t left_out; /* reports that were found but not read */
};

/* Selects the devices and processes to show. */
struct report_filter {
	const char *device; /* name of the only devices to show, or NULL for all */
	const char *net;    /* the only network, PORT@PID or PORT, or NULL for all */
	pid_t pid;	    /* the only process to show, or 0 for all */
};

/** Read the reports of all processes of this host. Returns 0 or -errno. */
int devices_look(struct report_devices *devices);

/**
 * Group views by device and take ownership of the views. A process shares the device of an owner if
 * the owner's report names that process too. A process that only claims to be attached gets a
 * device of its own. If the owner's report cannot be read, the claim is believed: then all these
 * processes are the reader's own. 0 or -ENOMEM.
 */
int devices_sort(struct report_devices *devices, const struct report_views *views);

void devices_release(struct report_devices *devices);

/** Return the device of a view. MT-safe. */
static inline const struct report_device *devices_of(const struct report_devices *devices,
						     uint32_t view)
{
	return &devices->list[devices->of[view]];
}

/** Return the device that a view of another set belongs to, or NULL if this set has no such device.
 * MT-safe. */
const struct report_device *devices_find(const struct report_devices *devices,
					 const struct report_view *view);

/** Return the view of the same process and port as a view of another set, or NULL. MT-safe. */
const struct report_view *devices_find_view(const struct report_devices *devices,
					    const struct report_view *view);

/** Return the first device from index *next on that the filter shows, or NULL. At least one of its
 * processes must pass as well. Sets *next to the index after it. MT-safe. */
const struct report_device *devices_next(const struct report_devices *devices,
					 const struct report_filter *filter, uint32_t *next);

/** Do the same for views. MT-safe. */
const struct report_view *devices_next_view(const struct report_devices *devices,
					    const struct report_filter *filter, uint32_t *next);

#endif
