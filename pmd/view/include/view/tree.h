/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a view, written below a root directory. A reader sees a file's old or new text, and
 * never a part of one. Functions are not MT-safe. */
#ifndef VIEW_TREE_H
#define VIEW_TREE_H

#include <stdint.h>

#include "view/table.h"

/** Make the directories and the files that do not depend on a device. 0 or -errno. */
int view_tree_begin(int root);

/**
 * Write a device's files.
 *
 * @param before
 *   The facts that the files show until now; NULL: there are none.
 * @return
 *   0 or -errno. Files that could be written are.
 */
int view_tree_show(int root, const struct view_facts *facts, const struct view_facts *before);

/** Remove a device's files. */
void view_tree_hide(int root, const struct view_facts *facts);

/** Remove a directory below another, with all that is in it. It does not follow links. */
void view_tree_remove(int dir, const char *path);

#endif
