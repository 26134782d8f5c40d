/* SPDX-License-Identifier: BSD-3-Clause */
/* What memif ports need before they are made. */
#ifndef MEMIF_H
#define MEMIF_H

#include <stdbool.h>

#include "link/devargs.h"

#define MEMIF_DRIVER "net_memif"
#define MEMIF_MTU    9000 /* a frame may take several buffers of the ring */

/** Add what the user left out: buffers that fit our frames, a MAC address that stays; remove a dead
 * server's socket. 0 or -errno (logged). */
int memif_prepare(struct devargs *devargs);

/** Whether this is the end that waits; the driver's default is the other. */
bool memif_is_server(const struct devargs *devargs);

/** The listening socket that the driver of this process made for a server, or -1. */
int memif_find_listener(const struct devargs *devargs);

/** Whether the driver of this process holds a client's connection, be it answered or not. */
bool memif_has_connection(const struct devargs *devargs);

#endif
