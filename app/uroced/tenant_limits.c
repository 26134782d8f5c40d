/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the limits of tenants from their settings. */
#include "tenant_limits.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>

/* (uid_t)-1 and (gid_t)-1 are not valid: for chown they mean "do not change". */
#define NUMBER_MAX (UINT32_MAX - 1)

static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "in range");

static bool names_parse_number(const char *text, uint32_t *number)
{
	unsigned long value;
	char *end;

	/* Refuse a sign and blanks, which strtoul accepts. */
	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*end != '\0' || errno != 0 || value > NUMBER_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

bool names_find_user(const char *name, uid_t *uid)
{
	const struct passwd *entry;

	if (name[0] == '\0')
		return true;
	entry = getpwnam(name);
	if (!entry)
		return names_parse_number(name, uid);
	*uid = entry->pw_uid;
	return true;
}

bool names_find_group(const char *name, gid_t *gid)
{
	const struct group *entry;

	if (name[0] == '\0')
		return true;
	entry = getgrnam(name);
	if (!entry)
		return names_parse_number(name, gid);
	*gid = entry->gr_gid;
	return true;
}

static_assert(TENANT_WEIGHT_MAX == TENANTS_WEIGHT_MAX && TENANT_RATE_MIN == TENANTS_RATE_MIN &&
		      TENANT_RATE_MAX == TENANTS_RATE_MAX &&
		      TENANT_CONNECTION_RATE_MAX == TENANTS_CONNECTION_RATE_MAX,
	      "the owner takes all values of the settings");

static struct tenants_limits limits_of(const struct tenant_settings *tenant)
{
	return (struct tenants_limits){
		.weight = RTE_MAX(tenant->weight, 1u),
		.rate = tenant->rate,
		.max_qp = tenant->max_qp,
		.connection_rate = tenant->connection_rate,
	};
}

static int add_user(const struct tenant_settings *tenant, struct serve_tenant *users,
		    struct serve_tenants *limits, char *error, size_t error_size)
{
	uid_t uid = 0;

	if (!names_find_user(tenant->user, &uid)) {
		snprintf(error, error_size, "section [tenant %s]: there is no such user",
			 tenant->user);
		return -EINVAL;
	}
	for (size_t i = 0; i < limits->count; i++) {
		if (users[i].user == user_of_uid(uid)) {
			snprintf(error, error_size,
				 "section [tenant %s]: another section is of the same user",
				 tenant->user);
			return -EINVAL;
		}
	}
	users[limits->count++] =
		(struct serve_tenant){.user = user_of_uid(uid), .limits = limits_of(tenant)};
	return 0;
}

int tenant_limits_find(const struct tenant_settings *tenants, size_t count,
		       struct serve_tenant *users, struct serve_tenants *limits, char *error,
		       size_t error_size)
{
	int rc = 0;

	*limits = (struct serve_tenants){
		.attached = {.weight = 1}, .others = {.weight = 1}, .users = users};
	for (size_t i = 0; i < count && rc == 0; i++) {
		switch (tenants[i].kind) {
		case TENANT_USER:
			rc = add_user(&tenants[i], users, limits, error, error_size);
			break;
		case TENANT_OTHERS:
			limits->others = limits_of(&tenants[i]);
			break;
		case TENANT_ATTACHED:
			limits->attached = limits_of(&tenants[i]);
			break;
		}
	}
	return rc;
}
