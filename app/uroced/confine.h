/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What uroced may do after its ports are open: fewer capabilities, and no system calls that it
 * never makes.
 */
#ifndef UROCED_CONFINE_H
#define UROCED_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "owner/serve.h"

/**
 * Return the capabilities that ports need while they are served, as bits by the numbers of
 * <linux/capability.h>. MT-safe. Looks at the directories of the sockets.
 *
 * @param physical
 *   True if DPDK gives devices physical addresses, which it finds out for new memory.
 */
uint64_t confine_capabilities(const struct settings *settings, size_t count, bool physical);

/**
 * Forbid system calls to all threads of the process, and to those that they start, and set
 * no_new_privs. A forbidden call fails with EPERM. There is no way back.
 *
 * @return
 *   0; -EOPNOTSUPP: the numbers of this architecture's calls are not known; another -errno: the
 * kernel has no seccomp filters, or a thread has a filter of its own.
 */
int confine_filter(void);

/**
 * Where the kernel has Landlock, let the calling thread, and those that it starts, change files
 * only in the folders of these settings' sockets and of DPDK's telemetry, and execute none. Keep
 * them from all other processes: they cannot look at their memory, descriptors and namespaces.
 * There is no way back.
 *
 * Do nothing if a port is DPDK's or memif's, and has files of its own, or if uroced may look at the
 * namespaces of isolated programs, by which their users are counted.
 *
 * @param dpdk
 *   serve_dpdk() of these settings.
 * @return
 *   0, also if nothing was done, or -errno.
 */
int confine_files(const struct settings *settings, size_t count, enum serve_dpdk dpdk);

#endif
