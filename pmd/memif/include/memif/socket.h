/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and descriptors of somebody who is not trusted. */
#ifndef MEMIF_SOCKET_H
#define MEMIF_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Send a datagram. Does not wait. MT-safe. 0 or -errno. */
int memif_socket_send(int fd, const void *data, size_t len);

/** The same, with a descriptor, which stays the caller's too; none with -1. */
int memif_socket_send_with(int fd, const void *data, size_t len, int passed_fd);

/**
 * Receive a datagram, and the descriptor that comes with it, closed on exec. Does not wait.
 * MT-safe.
 *
 * @param passed_fd
 *   Set to the descriptor, or -1: always where not more than 0 is returned.
 * @return
 *   Its length, which is more than `size` where it did not fit; 0: the other end has gone; -EPROTO:
 * more than one descriptor came, or one without data; -EBUSY: one would have come, and too many are
 * being closed already (memif_socket_is_stuck); another -errno.
 */
int memif_socket_receive(int fd, void *data, size_t size, int *passed_fd);

/** Have nothing come with messages over a socket that its sender has made, but what is sent.
 * MT-safe. */
void memif_socket_quiet(int fd);

/** Whether a descriptor is an eventfd. Asks no file system, which may be the other's. MT-safe. */
bool memif_socket_is_eventfd(int fd);

/** The same: whether it is memory that cannot become shorter. */
bool memif_socket_is_sealed(int fd);

/** Close what may be anything, in another thread: it may take as long as whoever it came from
 * likes. Nothing with -1. MT-safe. */
void memif_socket_discard(int fd);

/** Have no more to do with a socket that is in an epoll set: what is unread there is closed with
 * it, as above. Nothing with -1. MT-safe. */
void memif_socket_end(int epoll_fd, int fd);

/** Unmap memory of a file that may be of any size, and go with it, as above. MT-safe. */
void memif_socket_unmap(void *memory, size_t bytes);

/** The same with memory of a file of our own, whose pages go as well: whoever else has it open or
 * mapped has zeros there from then on. MT-safe. */
void memif_socket_remove(void *memory, size_t bytes);

/**
 * Have what this thread gives to be closed from here on count as a user's, whatever number stands
 * for that one; 0: as nobody's. What a user gave delays what others gave as little as it can: it
 * has a part of the threads that close, and is stuck before others are. Returns whose it was
 * before. MT-safe.
 */
uint64_t memif_socket_charge(uint64_t user);

/** Return true while so many are being closed, and do not come to it, that no more should be taken:
 * in all, or of the user of now. MT-safe. */
bool memif_socket_is_stuck(void);

/** Return true while so many are being closed that no new client should be let in, so that those
 * who are in can go on. MT-safe. */
bool memif_socket_is_late(void);

#endif
