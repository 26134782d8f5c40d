/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports through DPDK's telemetry socket. */
#ifndef REPORT_TELEMETRY_H
#define REPORT_TELEMETRY_H

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
