/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes one new file of a view. Private to this room. */
#ifndef VIEW_REPLACE_H
#define VIEW_REPLACE_H

#include "attributes.h"

/** Make the directories above a path below `root`. 0 or -errno. */
int replace_make_parents(int root, const char *path);

/**
 * Put a new file at a path, in place of an older one. Readers see the old file or the new one, and
 * a program that has the old one open keeps it. An empty text removes the file. Not MT-safe.
 *
 * @param fd
 *   If not NULL: set to a descriptor of the new file, for writing, which the caller closes.
 * @return
 *   0 or -errno.
 */
int replace_file(int root, const char *path, const char *text, enum attribute_kind kind, int *fd);

#endif
