/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks by which we recognise our own file descriptors. A program that closes all descriptors
 * (closefrom(3), to become a daemon) closes ours as well, and may get the same numbers for files of
 * its own. So each of our descriptors is marked, and the mark is checked before the descriptor is
 * read, written or closed.
 *
 * The mark is the signal number for asynchronous I/O (fcntl(2), F_SETSIG). Every kind of file has
 * it, also those without an inode of their own, such as eventfds. Checking it is one short system
 * call. The signal is never sent, because O_ASYNC stays off.
 */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "base/cancel.h"

#define OWN_SIGNAL 33 /* the C library reserves this signal, so no program uses it */

/** Mark a descriptor; ignore a negative one. MT-safe. */
static inline void own_mark(int fd)
{
	if (fd >= 0)
		(void)fcntl(fd, F_SETSIG, OWN_SIGNAL);
}

/** Return true if this descriptor still has our mark, or if the kernel does not let us read it.
 * MT-safe; keeps errno. */
static inline bool own_is(int fd)
{
	const int saved_errno = errno;
	const int sig = fd < 0 ? 0 : fcntl(fd, F_GETSIG);
	const bool is = sig == OWN_SIGNAL || (sig < 0 && errno != EBADF);

	errno = saved_errno;
	return is;
}

/** Make an eventfd readable whose mark the caller has just checked. The rest is as for own_ring. */
static inline void own_ring_checked(int fd)
{
	const int saved_errno = errno;
	const int cancel_state = cancel_disable();
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		errno = saved_errno;
	cancel_restore(cancel_state);
}

/**
 * Make an eventfd readable if it still has our mark. MT-safe; keeps errno; the thread cannot be
 * cancelled here. The write does not block if the eventfd does not: it fails if the counter is
 * full, and then the eventfd is readable already.
 */
static inline void own_ring(int fd)
{
	if (own_is(fd))
		own_ring_checked(fd);
}

#endif
