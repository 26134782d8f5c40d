/* SPDX-License-Identifier: BSD-3-Clause */
/* A private network for one command: an uroced of its own, which ends with the command. */
#ifndef UROCE_RUN_LOCAL_H
#define UROCE_RUN_LOCAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings;

#define LOCAL_DEVICES_MAX 16 /* SETTINGS_PORTS_MAX: ports of one uroced */
#define LOCAL_DIR_MAX	  80 /* a path of a socket has room for it and a name */

/* An uroced that starts. */
struct local_network {
	char dir[LOCAL_DIR_MAX];
	char uroced[PATH_MAX];
	int ready_fd; /* a datagram comes when uroced serves */
	int alive_fd; /* end of file tells that the guard has ended */
};

/**
 * Start an uroced with `devices` devices that are connected to no network. It ends, and its
 * directory is removed, when the calling process ends in any way, also after exec. The caller gets
 * no child and no descriptor that stays open after exec, but may get another process id.
 * Not MT-safe (environment, fork).
 *
 * @param settings
 *   The device's name (if there is one device) and the log level are used. `socket` is set.
 * @param bin_dir
 *   Absolute directory of uroce-run.
 * @return
 *   0, or -errno with `error`.
 */
int local_start(struct local_network *network, struct settings *settings, uint32_t devices,
		const char *bin_dir, char *error, size_t error_size);

/**
 * Wait until the uroced serves. It starts while the caller does other work. Not MT-safe.
 *
 * @return
 *   0, or -errno with `error`. If uroced itself fails, it has printed why.
 */
int local_wait(struct local_network *network, char *error, size_t error_size);

/**
 * Write the configuration file of the uroced. MT-safe.
 *
 * @param dir
 *   Directory of the file, `uroced.conf`, and of the socket that it names.
 * @return
 *   0 or -errno.
 */
int local_write_config(const char *dir, const struct settings *settings, uint32_t devices);

/**
 * Return true if no other user but root can replace what we make in a directory, and if its name
 * can stand in a configuration file. After su or sudo, the environment may name another user's
 * directory. MT-safe.
 *
 * @param dir
 *   May be NULL.
 */
bool local_is_safe_dir(const char *dir);

/** Return the directory that a variable of the environment names, or NULL if it is not a safe one.
 * Not MT-safe. */
const char *local_env_dir(const char *name);

#endif
