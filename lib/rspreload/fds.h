/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of the program's descriptors that are rsockets. An rsocket has a descriptor of its own,
 * which the program uses. Only dup(2) creates other descriptors of it, which are its aliases.
 */
#ifndef RSPRELOAD_FDS_H
#define RSPRELOAD_FDS_H

#include <stdbool.h>

#define FDS_MAX 65536 /* descriptors from here on are never rsockets */

/** Return the rsocket of a descriptor or alias, or less than 0 if there is none. MT-safe. */
int fds_get(int fd);

/** Add a new rsocket. Return false if its number is too high. */
bool fds_add(int rsocket);

/** Add an alias of an rsocket. Return false if a number is too high. */
bool fds_alias(int fd, int rsocket);

/** Remove a descriptor that the program closes. Return true if it was the rsocket's last one. */
bool fds_remove(int fd, int *rsocket);

/** Return true for an rsocket's own descriptor if aliases of it exist. It must then stay open, even
 * if the program closes it. */
bool fds_has_aliases(int fd);

#endif
