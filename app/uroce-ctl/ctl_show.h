/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of uroce-ctl that print once. */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

#include <stdbool.h>
#include <sys/types.h>

#include "ctl_output.h"
#include "devices.h"

/* Which of all are shown. */
struct show_filter {
	const char *device; /* a name, or NULL */
	pid_t pid;	    /* or 0 */
};

void show_dev(const struct ctl_devices *devices, const struct show_filter *filter,
	      struct output *output);
void show_link(const struct ctl_devices *devices, const struct show_filter *filter,
	       struct output *output);

/** How many objects each device has. */
void show_summary(const struct ctl_devices *devices, const struct show_filter *filter,
		  struct output *output);

/** The objects of a kind. */
void show_objects(const struct ctl_devices *devices, const struct show_filter *filter,
		  enum report_kind kind, struct output *output);

/** The counters of each process. */
void show_statistic(const struct ctl_devices *devices, const struct show_filter *filter,
		    struct output *output);

#endif
