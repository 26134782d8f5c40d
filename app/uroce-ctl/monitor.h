/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells which devices, programs and objects appear and go. */
#ifndef MONITOR_H
#define MONITOR_H

#include <stdint.h>

#include "ctl_show.h"

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

#endif
