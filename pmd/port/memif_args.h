/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of a memif port, and the place of its socket. */
#ifndef MEMIF_H
#define MEMIF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "config/devargs.h"

#define MEMIF_MTU	   9000 /* a frame may take several buffers of the ring */
#define MEMIF_BUFFER_BYTES 4608 /* the longest RoCE frame in one */
#define MEMIF_RING_LOG2	   9

/** Add what the user left out: buffers that fit our frames, a MAC address that stays; remove a dead
 * server's socket. 0 or -errno (logged). */
int memif_prepare(struct devargs *devargs);

/** Get the name of a memif port's socket, which fits into an address, and tell if it is abstract.
 */
void memif_place_of(const struct devargs *devargs, char *path, size_t size, bool *is_abstract);

/** The address of a socket; returns its length. */
socklen_t memif_address(const char *path, bool is_abstract, struct sockaddr_un *addr);

/** Whether this is the end that waits; the driver's default is the other. */
bool memif_is_server(const struct devargs *devargs);

#endif
