/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and descriptors of an untrusted process. */
#ifndef MEMIF_SOCKET_H
#define MEMIF_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Send a datagram. Does not wait. MT-safe. 0 or -errno. */
int memif_socket_send(int fd, const void *data, size_t len);

/** Send a datagram with a descriptor; -1: none. The caller keeps the descriptor. */
int memif_socket_send_with(int fd, const void *data, size_t len, int passed_fd);

/**
 * Receive a datagram and the descriptor that comes with it (close-on-exec). Does not wait. MT-safe.
 *
 * @param passed_fd
 *   Set to the descriptor, or to -1; always -1 if the result is 0 or less.
 * @return
 *   Its length, which is more than `size` if it did not fit; 0: the other end has closed; -EPROTO:
 *   several descriptors came, or one without data; -EMFILE: this process has no room for the
 *   descriptor, and the message is lost; -EBUSY: a descriptor waits, but too many are being closed
 *   already (memif_socket_is_stuck); another -errno.
 */
int memif_socket_receive(int fd, void *data, size_t size, int *passed_fd);

/** Return true if a descriptor is an eventfd. Does not query its file system, which the other
 * process may control. MT-safe. */
bool memif_socket_is_eventfd(int fd);

/** Return true if a descriptor is memory that cannot shrink. Does not query its file system either.
 * MT-safe. */
bool memif_socket_is_sealed(int fd);

/** Close a descriptor of unknown kind, in another thread: the process that it came from may make
 * close(2) take any time. Does nothing with -1. MT-safe. */
void memif_socket_discard(int fd);

/** Remove a socket from an epoll set, and close it as memif_socket_discard does, with the unread
 * descriptors in it. Does nothing with -1. MT-safe. */
void memif_socket_end(int epoll_fd, int fd);

/** Unmap memory of a file of any size in another thread. MT-safe. */
void memif_socket_unmap(void *memory, size_t bytes);

/** Unmap memory of a file of our own likewise, and free the file's pages: other processes that have
 * mapped it read zeros from then on. MT-safe. */
void memif_socket_remove(void *memory, size_t bytes);

/**
 * Charge descriptors that this thread gives to be closed from now on to a user, named by any
 * number; 0: to nobody. A user's descriptors may occupy only a part of the closing threads, and
 * that user counts as stuck before others do, so that they delay other users' as little as
 * possible. Returns the previous user. MT-safe.
 */
uint64_t memif_socket_charge(uint64_t user);

/** The user, in a program, for all processes at the other ends of doorbells. */
#define MEMIF_SOCKET_PEERS (UINT64_C(1) << 63)

/** Return true while too many descriptors wait to be closed, of all users or of the current one, so
 * that no more should be received. MT-safe. */
bool memif_socket_is_stuck(void);

/** Return true while so many descriptors wait to be closed that no new client should be accepted.
 * The rest is reserved for the clients that are connected. MT-safe. */
bool memif_socket_is_late(void);

/**
 * Populate memory, with huge pages if the kernel has some for madvise. Memory that cannot be
 * populated now, or that exceeds the limit of one connection, is populated later, page by page.
 *
 * @param before
 *   Bytes of the same connection that were passed to this function before.
 */
void memory_populate(void *memory, size_t bytes, size_t before);

#endif
