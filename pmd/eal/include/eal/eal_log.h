/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's messages: kept off the program's stderr and syslog, and condensed to one line when
 * something fails. */
#ifndef EAL_EAL_LOG_H
#define EAL_EAL_LOG_H

/** Take over DPDK's log for the life of the process. Not MT-safe. 0 or -errno. */
int eal_log_open(void);

/** From here on the calling thread's DPDK errors are remembered, and its stderr is ours. Not
 * MT-safe. */
void eal_log_capture(void);

/** End of capture: stderr is the program's again. Not MT-safe. */
void eal_log_release(void);

/** The first error since capture, without newline and prefixes; "" if there was none. Not MT-safe.
 */
const char *eal_log_reason(void);

#endif
