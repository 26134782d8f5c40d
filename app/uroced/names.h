/* SPDX-License-Identifier: BSD-3-Clause */
/* Users and groups by name or number. */
#ifndef UROCED_NAMES_H
#define UROCED_NAMES_H

#include <stdbool.h>
#include <sys/types.h>

/** Find a user; "" leaves *uid as it is. Not MT-safe. false where there is none. */
bool names_find_user(const char *name, uid_t *uid);

/** Find a group; "" leaves *gid as it is. Not MT-safe. false where there is none. */
bool names_find_group(const char *name, gid_t *gid);

#endif
