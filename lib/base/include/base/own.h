/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Knowing our descriptors again. A program that closes all it has (closefrom(3), to become a
 * daemon) closes ours as well, and the numbers become files of its own. So each of ours is marked,
 * and asked for its mark before it is read, written or closed.
 *
 * The mark is the signal that the file would be told by (fcntl(2), F_SETSIG). Every kind of file
 * has it, also those without an inode of their own as eventfds; asking is one short system call.
 * Nobody is ever told, since O_ASYNC stays off.
 */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

#define OWN_SIGNAL 33 /* the C library keeps it for itself, so no program asks for it */

/** Mark a descriptor, if it is one. MT-safe. */
static inline void own_mark(int fd)
{
	if (fd >= 0)
		(void)fcntl(fd, F_SETSIG, OWN_SIGNAL);
}

/** Return true if this is a marked descriptor still, or the kernel does not let us ask. MT-safe;
 * errno stays as it is. */
static inline bool own_is(int fd)
{
	const int saved_errno = errno;
	const int sig = fd < 0 ? 0 : fcntl(fd, F_GETSIG);
	const bool is = sig == OWN_SIGNAL || (sig < 0 && errno != EBADF);

	errno = saved_errno;
	return is;
}

#endif
