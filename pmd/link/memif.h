/* SPDX-License-Identifier: BSD-3-Clause */
/* What memif ports need before they are made. */
#ifndef MEMIF_H
#define MEMIF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "link/devargs.h"

#define MEMIF_DRIVER "net_memif"
#define MEMIF_MTU    9000 /* a frame may take several buffers of the ring */

/** Add what the user left out: buffers that fit our frames, a MAC address that stays; remove a dead
 * server's socket. 0 or -errno (logged). */
int memif_prepare(struct devargs *devargs);

/** A wire's socket: its name, which fits into an address's, and whether that is an abstract one. */
void memif_place_of(const struct devargs *devargs, char *path, size_t size, bool *is_abstract);

/** The address of a socket; returns its length. */
socklen_t memif_address(const char *path, bool is_abstract, struct sockaddr_un *addr);

/** Whether this is the end that waits; the driver's default is the other. */
bool memif_is_server(const struct devargs *devargs);

/** The listening socket that the driver of this process made for a server, or -1. */
int memif_find_listener(const struct devargs *devargs);

/** Whether the driver of this process holds a client's connection, be it answered or not. */
bool memif_has_connection(const struct devargs *devargs);

/**
 * Begin to ask a server whether it is awake, over a connection of our own: the driver's connect()
 * waits for as long as a stopped server's queue is full. MT-safe; does not wait.
 *
 * @return
 *   A descriptor, or -errno; -EAGAIN: the queue is full.
 */
int memif_probe(const struct devargs *devargs);

/** What came of it: 1, the server has greeted; 0, nothing yet; -errno, it is gone. Does not wait.
 */
int memif_probe_answer(int fd);

/** Whether a descriptor of this process, just opened, is one that the driver opens for the wire.
 * MT-safe. */
bool memif_owns(const struct devargs *devargs, int fd);

/** Whether a descriptor of this process is a control connection of either end of the wire, or its
 * listener. MT-safe. */
bool memif_owns_socket(const struct devargs *devargs, int fd);

#endif
