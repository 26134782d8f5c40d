/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of tenants, from their settings. */
#ifndef UROCED_TENANT_LIMITS_H
#define UROCED_TENANT_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "config/settings.h"
#include "owner/serve.h"

/**
 * Find the users of tenants. Not MT-safe.
 *
 * @param users
 *   Room for as many users as there are tenants; `limits` refers to it.
 * @param limits
 *   Set to the limits of all tenants.
 * @return
 *   0; -EINVAL with `error`: there is no such user, or two sections are of one user.
 */
int tenant_limits_find(const struct tenant_settings *tenants, size_t count,
		       struct serve_tenant *users, struct serve_tenants *limits, char *error,
		       size_t error_size);

/** Find a user; "" does not change *uid. Not MT-safe. Returns false if the user does not exist. */
bool names_find_user(const char *name, uid_t *uid);

/** Find a group; "" does not change *gid. Not MT-safe. Returns false if the group does not exist.
 */
bool names_find_group(const char *name, gid_t *gid);

#endif
