/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of the program's descriptors that are rsockets. An rsocket has its own descriptor, and
 * the program uses the same number. Only dup(2) creates other numbers, which are aliases of the
 * rsocket.
 */
#ifndef RSPRELOAD_FDS_H
#define RSPRELOAD_FDS_H

#include <stdbool.h>

#define FDS_MAX 65536 /* a higher number is never an rsocket */

/** Return the rsocket of a descriptor or alias, or less than 0 if there is none. MT-safe. */
int fds_get(int fd);

/** Add a new rsocket. Return false if its number is too high. */
bool fds_add(int rsocket);

/** Add an alias of an rsocket. Return false if a number is too high. */
bool fds_alias(int fd, int rsocket);

/** Remove a number that the program closes. Return true if it was the last number of the rsocket.
 */
bool fds_remove(int fd, int *rsocket);

/** Return true for the own number of an rsocket that the program has closed while aliases still
 * exist. */
bool fds_is_kept(int fd);

#endif
