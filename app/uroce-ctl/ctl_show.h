/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of uroce-ctl that print once. */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

#include <stdbool.h>
#include <sys/types.h>

#include "ctl_output.h"
#include "devices.h"

/* A filter of the devices and processes to show. */
struct show_filter {
	const char *device; /* name of the only device to show, or NULL for all */
	pid_t pid;	    /* the only process to show, or 0 for all */
};

void show_dev(const struct ctl_devices *devices, const struct show_filter *filter,
	      struct output *output);
void show_link(const struct ctl_devices *devices, const struct show_filter *filter,
	       struct output *output);

/** Show the number of objects of each device. */
void show_summary(const struct ctl_devices *devices, const struct show_filter *filter,
		  struct output *output);

/** Show all objects of a kind. */
void show_objects(const struct ctl_devices *devices, const struct show_filter *filter,
		  enum report_kind kind, struct output *output);

/** Show the counters of each process. */
void show_statistic(const struct ctl_devices *devices, const struct show_filter *filter,
		    struct output *output);

#endif
