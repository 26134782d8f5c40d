/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches the addresses of the kernel's interfaces for changes. */
#ifndef NETDEV_WATCH_H
#define NETDEV_WATCH_H

#include <stdbool.h>

/** Start to watch. MT-safe. Returns a close-on-exec descriptor, which the caller closes, or
 * -errno. */
int watch_open(void);

/** Return true if an address of any interface was added or removed since the last call. Reads the
 * pending notifications. One thread at a time; does not block. */
bool watch_changed(int fd);

#endif
