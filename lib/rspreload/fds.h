/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of the program's descriptors are rsockets. An rsocket has a descriptor of its own, which is
 * the program's number too; only dup(2) makes others, which stand for the first.
 */
#ifndef RSPRELOAD_FDS_H
#define RSPRELOAD_FDS_H

#include <stdbool.h>

#define FDS_MAX 65536 /* a higher number is never an rsocket's */

/** The rsocket that a descriptor stands for; less than 0: none. MT-safe. */
int fds_get(int fd);

/** A new rsocket. False where its number is too high. */
bool fds_add(int rsocket);

/** Another number for it. */
bool fds_alias(int fd, int rsocket);

/** The program closes a number. Return true where it was the rsocket's last. */
bool fds_remove(int fd, int *rsocket);

/** Return true for a number that an rsocket lives by, though the program has closed it. */
bool fds_is_kept(int fd);

#endif
