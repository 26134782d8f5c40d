/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports in the text format of Prometheus. */
#ifndef REPORT_METRICS_H
#define REPORT_METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "report/devices.h"

/** The media type of the format. */
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/**
 * Write the metrics of each process on each device, version 0.0.4 of the format. MT-safe.
 *
 * A program's metrics are those of one process, not sums over the processes of a device: a sum
 * would fall when a process ends, and Prometheus would take that for a restart. The metrics of
 * uroced begin with uroce_owner, because it counts the packets of all its programs once more.
 *
 * @param qps
 *   Also write each queue pair. There may be thousands, and each makes several time series.
 */
void metrics_write(FILE *file, const struct report_devices *devices,
		   const struct report_filter *filter, bool qps);

struct report_set;

/**
 * Answer /uroce/dev, /uroce/link, /uroce/resource/qp and so on, /uroce/statistic and
 * /uroce/processes from the reports in a set. Call once per process, after EAL has started. Not
 * MT-safe.
 *
 * @param set
 *   Must live as long as the process.
 * @return
 *   0 or -errno.
 */
int report_telemetry_start(struct report_set *set);

#endif
