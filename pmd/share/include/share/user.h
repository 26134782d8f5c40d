/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose a process is that is not trusted: limits of a user are counted by this. */
#ifndef SHARE_USER_H
#define SHARE_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A user, or all users of a namespace that has been made by the superuser. */
typedef uint64_t user_t;

#define USER_TRUSTED UINT64_C(0)	 /* nobody in particular, whom no limit holds */
#define USER_ROOT    UINT64_C(1)	 /* the superuser, whom no limit of a user holds */
#define USER_UNKNOWN (UINT64_C(1) << 32) /* all whose process has ended; no user id is as great */

/** The user with a number. */
static inline user_t user_of_uid(uid_t uid)
{
	return (user_t)uid + 1;
}

/**
 * Find whose the process at the other end of a socket is. A process in a user namespace below ours
 * counts as of the one who has made the namespace: it may take on as many user ids as that one has
 * subordinate ones (subuid(5)). All whose process has ended count as one user: there is nobody to
 * be asked, and its user id may be a subordinate one. MT-safe.
 */
user_t user_of(int socket);

/** Return a descriptor (pidfd) of the process at the other end of a socket, or -errno if that
 * process has ended. It is never a later process with the same number. Closed on exec. MT-safe. */
int user_pidfd(int socket, const struct ucred *peer);

/** Return true if the limits a user apply. They do not apply to root. */
static inline bool user_is_limited(user_t user)
{
	return user > USER_ROOT;
}

#endif
