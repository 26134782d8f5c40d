/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of a memif port, and the name of its socket. */
#ifndef MEMIF_H
#define MEMIF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "config/devargs.h"

#define MEMIF_MTU	   9000 /* a frame may use several buffers of the ring */
#define MEMIF_BUFFER_BYTES 4608 /* holds the longest RoCE frame */
#define MEMIF_RING_LOG2	   9

/** Add the arguments that the user left out: the buffer size, and a MAC address that is the same
 * after a restart. Remove a dead server's socket. 0 or -errno (logged). */
int memif_prepare(struct devargs *devargs);

/** Get the name of a memif port's socket, which fits into an address, and tell if it is abstract.
 */
void memif_place_of(const struct devargs *devargs, char *path, size_t size, bool *is_abstract);

/** Return true if this end is the server. The default is the client. */
bool memif_is_server(const struct devargs *devargs);

#endif
