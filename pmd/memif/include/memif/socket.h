/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and descriptors of somebody who is not trusted. */
#ifndef MEMIF_SOCKET_H
#define MEMIF_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/** Send a datagram. Does not wait. MT-safe. 0 or -errno. */
int memif_socket_send(int fd, const void *data, size_t len);

/**
 * Receive a datagram, and the first descriptor that comes with it, closed on exec. Does not wait.
 * MT-safe.
 *
 * @param passed_fd
 *   Set to the descriptor, or -1.
 * @return
 *   Its length, which is more than `size` where it did not fit; 0: the other end has gone; -errno.
 */
int memif_socket_receive(int fd, void *data, size_t size, int *passed_fd);

/** Whether a descriptor is an eventfd. Asks no file system, which may be the other's. MT-safe. */
bool memif_socket_is_eventfd(int fd);

/** The same: whether it is memory that cannot become shorter. */
bool memif_socket_is_sealed(int fd);

/** Close what may be anything; does not wait for it, as close(2) does with files of a file system
 * that does not answer. Nothing with -1. MT-safe. */
void memif_socket_discard(int fd);

/** Whether so many are being closed, and do not come to it, that no more should be taken. MT-safe.
 */
bool memif_socket_is_stuck(void);

#endif
