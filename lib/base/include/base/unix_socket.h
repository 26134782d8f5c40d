/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes Unix sockets that clients connect to by a path. */
#ifndef BASE_UNIX_SOCKET_H
#define BASE_UNIX_SOCKET_H

#include <sys/types.h>

struct unix_socket_config {
	const char *path;
	int type; /* SOCK_STREAM or SOCK_SEQPACKET */
	int backlog;
	uid_t owner; /* (uid_t)-1: the process's own */
	gid_t group; /* (gid_t)-1: the process's own */
	mode_t mode;
};

/**
 * Make a socket and listen at its path. No client can connect before the socket has its owner and
 * its mode. If the path has a socket that no process listens on, because its server was killed,
 * replace that one. After an error nothing is left. MT-safe. May wait for a second (dir_lock).
 *
 * @return
 *   A descriptor that does not block and is closed on exec; -EADDRINUSE: another process listens at
 *   the path; -EEXIST: the path has a file that is not a socket; -ESTALE: another user has put a
 *   file in the place of the socket; or another -errno.
 */
int unix_socket_listen(const struct unix_socket_config *config);

/**
 * Lock the directory of a path against other callers. Wait for the lock for a second at most,
 * because any user who can read the directory can hold it.
 *
 * @return
 *   The argument for dir_unlock, also if the lock was not taken.
 */
int dir_lock(const char *path);

void dir_unlock(int lock);

#endif
