/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's messages: they do not reach the program's stderr and syslog. After a failure one line
 * remains.
 */
#ifndef EAL_EAL_LOG_H
#define EAL_EAL_LOG_H

/** Take over DPDK's log for the life of the process. Not MT-safe. 0 or -errno. */
int eal_log_open(void);

/** Start to remember the calling thread's DPDK errors, and to redirect stderr. Do nothing before
 * eal_log_open. Not MT-safe. */
void eal_log_capture(void);

/** Stop the capture: stderr is the program's again. Not MT-safe. */
void eal_log_release(void);

/** Return the first error since eal_log_capture, without newline and prefixes; "": none. Not
 * MT-safe.
 */
const char *eal_log_reason(void);

#endif
