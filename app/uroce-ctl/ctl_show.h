/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of uroce-ctl that show devices and programs, and give them commands. */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

#include <stddef.h>
#include <stdint.h>

#include "ctl_output.h"
#include "report/devices.h"

struct command;

/** Give the command's changes to each process that its filter selects. `error` is empty if all of
 * them have done them. */
void change_give(const struct report_devices *devices, const struct command *command, char *error,
		 size_t error_size);

/** Print what `now` has and `before` does not have, and the reverse: at most `*left` lines, unless
 * that is 0. Returns false after the last one. Sorts the objects of both. */
bool monitor_compare(struct report_devices *before, struct report_devices *now,
		     const struct report_filter *filter, struct output *output, uint32_t *left);

/**
 * Look again and again, and print the changes, until the process is ended or after `lines` lines
 * (0: no limit).
 *
 * @param ms
 *   Interval between two looks.
 * @return
 *   0 or -errno.
 */
int monitor_run(const struct report_filter *filter, const struct terminal *terminal,
		unsigned int ms, uint32_t lines);

/**
 * Show processes and queue pairs periodically until the user presses `q`.
 *
 * @param ms
 *   Interval between two rounds.
 * @param rounds
 *   Number of rounds; 0: no limit.
 * @return
 *   0 or -errno.
 */
int top_run(const struct report_filter *filter, const struct terminal *terminal, unsigned int ms,
	    uint32_t rounds);

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

/** Print a line for each queue pair, completion queue and connection of the programs that waits,
 * and for whom; or one that nothing does. */
void why_show(const struct report_devices *devices, const struct report_filter *filter);

#endif
