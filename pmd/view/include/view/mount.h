/* SPDX-License-Identifier: BSD-3-Clause */
/* A view in a mount namespace of its own: files at the kernel's paths, which only this process and
 * its children see. */
#ifndef VIEW_MOUNT_H
#define VIEW_MOUNT_H

#include <stdbool.h>
#include <stddef.h>

enum view_way {
	VIEW_WAY_NONE,	    /* not allowed */
	VIEW_WAY_NAMESPACE, /* this process may mount */
	VIEW_WAY_USER,	    /* only in a user namespace */
};

/**
 * Find out how this process may get a mount namespace, without getting one. A user namespace takes
 * capabilities away, so it is for processes that have none. MT-safe.
 */
enum view_way view_mount_way(void);

/**
 * Move this process into a mount namespace in which a new file system is mounted at the view's
 * paths. User and group ids stay. The process must have one thread.
 *
 * @param begin
 *   Called with a descriptor of the file system's root, to put directories in; 0 or -errno.
 * @return
 *   The descriptor, or -errno with `error`.
 */
int view_mount(enum view_way way, int (*begin)(int root), char *error, size_t error_size);

#endif
