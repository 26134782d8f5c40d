/* SPDX-License-Identifier: BSD-3-Clause */
/* Hears from the kernel when addresses of its interfaces change. */
#ifndef NETDEV_WATCH_H
#define NETDEV_WATCH_H

#include <stdbool.h>

/** Begin to listen. MT-safe. A descriptor (close-on-exec) to close(2) some time, or -errno. */
int watch_open(void);

/** Whether an address of any interface has come or gone since the last call; reads what tells of
 * it. One thread at a time; does not block. */
bool watch_changed(int fd);

#endif
