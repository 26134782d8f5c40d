/* SPDX-License-Identifier: BSD-3-Clause */
/* Users and groups from the system's tables. */
#include "names.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>

bool names_find_user(const char *name, uid_t *uid)
{
	const struct passwd *entry;
	char *end;

	if (name[0] == '\0')
		return true;
	entry = getpwnam(name);
	*uid = entry ? entry->pw_uid : (uid_t)strtoul(name, &end, 10);
	return entry || *end == '\0';
}

bool names_find_group(const char *name, gid_t *gid)
{
	const struct group *entry;
	char *end;

	if (name[0] == '\0')
		return true;
	entry = getgrnam(name);
	*gid = entry ? entry->gr_gid : (gid_t)strtoul(name, &end, 10);
	return entry || *end == '\0';
}
