/* SPDX-License-Identifier: BSD-3-Clause */
/* The user of an untrusted process. Limits are counted by user. */
#ifndef SHARE_USER_H
#define SHARE_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A user; or all users of a container: of a PID or user namespace that the superuser has made. */
typedef uint64_t user_t;

#define USER_TRUSTED UINT64_C(0)	 /* a trusted process: no limits */
#define USER_ROOT    UINT64_C(1)	 /* the superuser: no limits of a user */
#define USER_UNKNOWN (UINT64_C(1) << 33) /* all whose user cannot be found; above all user ids */

/** Return the user with a user id. Id 0 alone does not make a process the superuser's. */
static inline user_t user_of_uid(uid_t uid)
{
	return (user_t)uid + 2;
}

/**
 * Return the user of the process at the other end of a socket. Limits are counted by what a process
 * cannot multiply:
 *
 * - A process in our user namespace that has CAP_SYS_ADMIN is the superuser's, if it still has the
 *   user id with which it has connected.
 * - A process in a PID namespace that was made with privilege over our user namespace, as container
 *   engines of the superuser do, counts as that container. It may have any user id.
 * - A process in another user namespace counts as the user who made the namespace, because that
 *   user has many subordinate user ids (subuid(5)) that the process may take on. A namespace that
 *   the superuser has made for other user ids than 0 counts as a user.
 * - Others count as their user id.
 *
 * If this process may not look at the namespaces of the other one, and that one is in another
 * namespace than this process, it counts as the user in whose slice systemd runs it
 * (/user.slice/user-UID.slice, which the user cannot leave), or else as USER_UNKNOWN. A process
 * that has ended is USER_UNKNOWN, too. MT-safe.
 */
user_t user_of(int socket);

/** Return a descriptor (pidfd) of the process at the other end of a socket, or -errno if that
 * process has ended. It is never a later process with the same number. Closed on exec. MT-safe. */
int user_pidfd(int socket, const struct ucred *peer);

/** Return true if the process of a pidfd has ended. MT-safe. */
bool user_has_ended(int pidfd);

/** Return true if the limits of a user apply. They do not apply to the superuser. */
static inline bool user_is_limited(user_t user)
{
	return user > USER_ROOT;
}

#endif
