/* SPDX-License-Identifier: BSD-3-Clause */
/* Users and groups by name or number. */
#ifndef UROCED_NAMES_H
#define UROCED_NAMES_H

#include <stdbool.h>
#include <sys/types.h>

/** Find a user; "" does not change *uid. Not MT-safe. Returns false if the user does not exist. */
bool names_find_user(const char *name, uid_t *uid);

/** Find a group; "" does not change *gid. Not MT-safe. Returns false if the group does not exist.
 */
bool names_find_group(const char *name, gid_t *gid);

#endif
