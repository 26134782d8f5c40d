/* SPDX-License-Identifier: BSD-3-Clause */
/* The view that the program gets: files of its device in /sys/class/infiniband and
 * /dev/infiniband. */
#ifndef UROCE_RUN_VIEW_H
#define UROCE_RUN_VIEW_H

#include <stddef.h>

struct settings;

/** Leave the view of an outer uroce-run: this process sees the host's files, and the program none
 * of that view. Not MT-safe. */
void view_leave(void);

/**
 * Make the view that the settings ask for, start its server, and set the environment for the
 * program. Not MT-safe; the process must have one thread.
 *
 * @param library
 *   Directory of our libibverbs.so.1; the preloaded library is near it.
 * @return
 *   0, also if the settings leave it open and no way is allowed here; or -errno with `error`.
 */
int view_start(const struct settings *settings, const char *library, char *error,
	       size_t error_size);

/** Find the preloaded library from the directory of libibverbs.so.1. MT-safe. 0, -ENOENT, or
 * -EINVAL if LD_PRELOAD cannot contain its path; with `error`. */
int view_find_preload(const char *library, char *path, size_t path_size, char *error,
		      size_t error_size);

#endif
