/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of a view, and where its files really are. */
#ifndef VIEWPRELOAD_TRANSLATE_H
#define VIEWPRELOAD_TRANSLATE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Translate a path if it leads into the view: "/sys/class/infiniband/x" becomes
 * "ROOT/sys/class/infiniband/x". Async-signal-safe; keeps errno.
 *
 * @param dirfd
 *   For a relative path: its directory, or AT_FDCWD.
 * @param buffer
 *   Room for the new path, of PATH_MAX bytes.
 * @return
 *   The path to use: `buffer` or `path`.
 */
const char *translate(int dirfd, const char *path, char *buffer);

/** If a path is below the root, replace it by the path that the program knows, and return true.
 * MT-safe. */
bool translate_back(char *path);

/** Show this process the host's files from now on: for uroce-run, which makes another view. Not
 * MT-safe. */
void uroce_view_leave(void);

/** ASan's hook: its options, which ASAN_OPTIONS overrides. MT-safe. */
const char *__asan_default_options(void);

#endif
