/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up users and groups in the system's tables. */
#include "names.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>

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
