/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard of a private uroced: a process that waits for the end of the command. */
#ifndef UROCE_RUN_GUARD_H
#define UROCE_RUN_GUARD_H

#define GUARD_CONFIG_NAME "uroced.conf"
#define GUARD_READY_NAME  "ready.sock"

struct guard_task {
	const char *uroced; /* path of the program */
	const char *dir;    /* of its configuration file, and of all its files */
};

/**
 * Start the guard, which starts uroced. When the calling process has ended, also after exec, the
 * guard ends uroced and removes the directory. Until then it passes SIGTERM, SIGINT and SIGHUP on
 * to that process. Not MT-safe (fork).
 *
 * A process that inherits orphans (process 1 of a container, or a subreaper) would get the guard
 * as a child that it does not know, and without a pidfd the guard sees the end of a child alone. So
 * such a process becomes the guard itself, and the function returns in a new child. The guard then
 * ends as that child does.
 *
 * @return
 *   A descriptor that is at its end when the guard has ended, or -errno: then there is no guard,
 * and the directory is as it was.
 */
int guard_start(const struct guard_task *task);

/** Remove a directory and all that is in it. MT-safe. */
void guard_remove_dir(const char *dir);

#endif
