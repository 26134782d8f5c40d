/* SPDX-License-Identifier: BSD-3-Clause */
/* The user of an untrusted process. Limits are counted by user. */
#ifndef SHARE_USER_H
#define SHARE_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A user, or all users of a namespace that the superuser has made. */
typedef uint64_t user_t;

#define USER_TRUSTED UINT64_C(0)	 /* a trusted process: no limits */
#define USER_ROOT    UINT64_C(1)	 /* the superuser: no limits of a user */
#define USER_UNKNOWN (UINT64_C(1) << 32) /* the process has ended; above all user ids */

/** Return the user with a user id. */
static inline user_t user_of_uid(uid_t uid)
{
	return (user_t)uid + 1;
}

/**
 * Return the user of the process at the other end of a socket. A process in a user namespace below
 * ours counts as the user who made the namespace, because that user has many subordinate user ids
 * (subuid(5)) that the process may take on. If the process has ended, the result is USER_UNKNOWN:
 * its user id may have been a subordinate one, and its namespace is not known any more. MT-safe.
 */
user_t user_of(int socket);

/** Return a descriptor (pidfd) of the process at the other end of a socket, or -errno if that
 * process has ended. It is never a later process with the same number. Closed on exec. MT-safe. */
int user_pidfd(int socket, const struct ucred *peer);

/** Return true if the process of a pidfd has ended. MT-safe. */
bool user_has_ended(int pidfd);

/** Return true if the limits of a user apply. They do not apply to root. */
static inline bool user_is_limited(user_t user)
{
	return user > USER_ROOT;
}

#endif
