/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory in which EAL keeps files that other processes read. */
#ifndef RUNTIME_DIR_H
#define RUNTIME_DIR_H

#include <stddef.h>

/**
 * Make sure that only this user can write in EAL's directory. EAL takes any directory with the
 * right name, and /tmp/dpdk may be another user's, who could then replace its files. Not MT-safe;
 * before EAL starts. 0, or -EPERM (logged).
 */
int runtime_dir_check(void);

/** Do so for the directory at a path, and make it if it does not exist. For runtime_dir_check and
 * tests. */
int runtime_dir_check_at(const char *path);

/**
 * Check that this user's primary process with a file-prefix runs and lets secondary processes join.
 * EAL starts without one, and does not tell why it found none. MT-safe if nobody changes the
 * environment.
 *
 * @return
 *   0, or -errno with `error`.
 */
int runtime_dir_check_primary(const char *prefix, char *error, size_t error_size);

#endif
