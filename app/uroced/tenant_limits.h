/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of tenants, from their settings. */
#ifndef UROCED_TENANT_LIMITS_H
#define UROCED_TENANT_LIMITS_H

#include <stddef.h>

#include "config/tenant.h"
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

#endif
