/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's telemetry of an uroced whose ports need no DPDK. */
#ifndef TELEMETRY_THREAD_H
#define TELEMETRY_THREAD_H

#include <stdbool.h>

/** Start DPDK in a thread of its own, with files of this prefix: its start takes most of a second,
 * in which programs would wait. If `is_late`, programs come back now, and DPDK starts after that.
 * Without DPDK only telemetry is missing. Once per process. */
void telemetry_thread_start(const char *file_prefix, bool is_late);

/** Stop the thread. If DPDK is just starting, wait until it has started, unless `in_haste`. Return
 * false if it still starts: the process must then end without destructors, because DPDK's may not
 * run meanwhile. */
bool telemetry_thread_stop(bool in_haste);

#endif
