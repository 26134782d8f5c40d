/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Confines uroced to the folders of its sockets, by Landlock. A thread under Landlock cannot reach
 * a process that is not: neither its memory, nor its descriptors, nor its namespaces.
 *
 * What is read is not limited: libraries, and what the C library needs to find a user, are
 * anywhere.
 */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/devargs.h"
#include "eal/privilege.h"
#include "eal/runtime.h"

/* The headers of Linux before 6.2 lack it. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14)
#endif

/* Changes that uroced makes in its folders, and nowhere else. */
#define CHANGES                                                          \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |  \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK)

/* Changes that uroced makes nowhere. */
#define NEVER                                                           \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |    \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)

struct rules {
	int fd;
	uint64_t changes;
};

/* Return the changes that this kernel can forbid; 0: it has no Landlock. */
static uint64_t known_changes(void)
{
	const long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (version < 1)
		return 0;
	return CHANGES | (version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

/* Allow changes beneath a folder. One that does not exist has nothing to change. */
static void allow(const struct rules *rules, const char *folder)
{
	const int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct landlock_path_beneath_attr rule = {.allowed_access = rules->changes,
							.parent_fd = fd};

	if (fd < 0)
		return;
	syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	close(fd);
}

/* Allow changes beside a socket. */
static void allow_beside(const struct rules *rules, const char *path)
{
	char copy[PATH_MAX];

	if (path[0] == '\0')
		return;
	snprintf(copy, sizeof(copy), "%s", path);
	allow(rules, dirname(copy));
}

/* Return true if a port may have files of its own: those of drivers, and memif's socket. */
static bool has_files(const struct settings *settings)
{
	struct devargs devargs;

	return settings->port[0] != '\0' &&
	       (devargs_parse(settings->port, &devargs) != 0 || !devargs_is(&devargs, "local"));
}

/* Return true if uroced may change files that are not known, or finds the users of isolated
 * programs by their namespaces. */
static bool needs_more(const struct settings *settings, size_t count, enum serve_dpdk dpdk)
{
	bool more = dpdk == SERVE_DPDK_FIRST;

	for (size_t i = 0; i < count; i++)
		more |= has_files(&settings[i]) ||
			(settings[i].isolated[0] != '\0' && privilege_has(CAP_SYS_PTRACE));
	return more;
}

int confine_files(const struct settings *settings, size_t count, enum serve_dpdk dpdk)
{
	struct rules rules = {.changes = known_changes()};
	const struct landlock_ruleset_attr attr = {.handled_access_fs = rules.changes | NEVER};
	char folder[PATH_MAX];
	int rc = 0;

	if (rules.changes == 0 || needs_more(settings, count, dpdk))
		return 0;
	rules.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules.fd < 0)
		return -errno;
	for (size_t i = 0; i < count; i++) {
		allow_beside(&rules, settings[i].socket);
		allow_beside(&rules, settings[i].isolated);
		allow_beside(&rules, settings[i].metrics);
	}
	if (dpdk == SERVE_DPDK_LATER && runtime_make_directory(folder, sizeof(folder)))
		allow(&rules, folder);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_landlock_restrict_self, rules.fd, 0) != 0)
		rc = -errno;
	close(rules.fd);
	return rc;
}
