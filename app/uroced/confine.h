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

#endif
