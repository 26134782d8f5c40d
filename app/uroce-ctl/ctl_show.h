/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of uroce-ctl that print once. */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

#include "ctl_output.h"
#include "report/devices.h"

/** Return true if there is what the filters name; without filters there need not be anything. False
 * with `error`. */
bool show_is_there(const struct report_devices *devices, const struct report_filter *filter,
		   char *error, size_t error_size);

/** Return true if the filters select at most one device; else false, and `error` names them. */
bool show_is_one(const struct report_devices *devices, const struct report_filter *filter,
		 char *error, size_t error_size);

void show_dev(const struct report_devices *devices, const struct report_filter *filter,
	      struct output *output);
void show_link(const struct report_devices *devices, const struct report_filter *filter,
	       struct output *output);

/** Show a device, a program or an object in an item. */
void show_one_dev(const struct report_device *device, struct output *output);
void show_program(const struct report_device *device, const struct report_view *view,
		  struct output *output);
void show_object(const struct report_device *device, const struct report_view *view,
		 const struct report_record *record, struct output *output);

/** Show the number of objects of each device. */
void show_summary(const struct report_devices *devices, const struct report_filter *filter,
		  struct output *output);

/** Show all objects of a kind. */
void show_objects(const struct report_devices *devices, const struct report_filter *filter,
		  enum report_kind kind, struct output *output);

/** Show the counters of each process. */
void show_statistic(const struct report_devices *devices, const struct report_filter *filter,
		    struct output *output);

/** Show congestion control of each program: for new queue pairs, and its parameters. */
void show_congestion(const struct report_devices *devices, const struct report_filter *filter,
		     struct output *output);

#endif
