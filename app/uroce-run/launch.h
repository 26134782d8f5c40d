/* SPDX-License-Identifier: BSD-3-Clause */
/* Launch the program and its servers: find our library, set the library path, begin a session,
 * exec. */
#ifndef UROCE_RUN_LAUNCH_H
#define UROCE_RUN_LAUNCH_H

#include <stddef.h>

/* Exit codes of a program that could not be run: those of env(1) and of shells. */
#define LAUNCH_NOT_EXECUTABLE 126
#define LAUNCH_NOT_FOUND      127

/**
 * Find the directory of our libibverbs.so.1 from that of uroce-run. MT-safe.
 *
 * @param bin_dir
 *   Absolute directory of uroce-run: app/ of a build, or where it is installed.
 * @return
 *   0, -ENOENT or -ENAMETOOLONG with `error`.
 */
int launch_find_library(const char *bin_dir, char *dir, size_t dir_size, char *error,
			size_t error_size);

/** Get the directory of the running executable. MT-safe. Returns 0 or -errno. */
int launch_find_self(char *dir, size_t dir_size);

/** Put an element in front of an environment variable's list, or behind it; ':' divides the
 * elements. Not MT-safe. Returns 0, or -ENOMEM. */
int launch_prepend(const char *variable, const char *element);
int launch_append(const char *variable, const char *element);

/**
 * Put a directory in front of LD_LIBRARY_PATH. Not MT-safe.
 *
 * @return
 *   0, -EINVAL with `error` if LD_LIBRARY_PATH cannot contain the directory, or -ENOMEM.
 */
int launch_prepend_library_path(const char *dir, char *error, size_t error_size);

/**
 * Have the C library set this many more bytes aside for thread-local variables of libraries that
 * the program loads later: liburoce.so.0 of a bundle has those of DPDK, too. It keeps a larger
 * number that is there. Not MT-safe.
 *
 * @return
 *   0, or -ENOMEM.
 */
int launch_reserve_tls(unsigned int bytes);

/**
 * Begin a session with the nice value of the one before. Linux shares the CPUs between sessions by
 * a value of each, which a new session does not inherit (sched(7), "The autogroup feature"). A
 * server with less than its programs would starve beside them. A kernel without that feature has no
 * such value. Not MT-safe. Returns 0 or -errno.
 */
int launch_begin_session(void);

/** Close the descriptors from `first` on, except `count` of them. Not MT-safe. */
void launch_close_from(int first, const int *keep, size_t count);

/** Exec the program. Returns only on failure: the exit code, with `error`. */
int launch_exec(char **program, char *error, size_t error_size);

#endif
