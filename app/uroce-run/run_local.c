/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts an uroced for one command. Between the two is a guard (run_guard.h), which ends uroced
 * after the command, and removes their directory. */
#include "run_local.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "config/settings.h"
#include "run_guard.h"

#define DIR_MAX	    80 /* a path of a socket has room for it and a name */
#define SOCKET_NAME "uroced.sock"

static_assert(LOCAL_DEVICES_MAX == SETTINGS_PORTS_MAX, "uroced has as many ports");
static_assert(DIR_MAX + sizeof("/" SOCKET_NAME) <= SETTINGS_SOCKET_MAX, "the path fits");

/* Paths from uroce-run's directory to uroced: in a build tree, and installed (set by Meson). */
static const char *const uroced_paths[] = {"uroced", UROCED_PATH};

/* The state of uroce-run until the command runs. */
struct local {
	char dir[DIR_MAX];
	char uroced[PATH_MAX];
	int ready_fd; /* a datagram comes when uroced serves */
	int alive_fd; /* end of file tells that the guard has ended */
};

static int find_uroced(struct local *local, const char *bin_dir)
{
	for (size_t i = 0; i < RTE_DIM(uroced_paths); i++) {
		if (snprintf(local->uroced, sizeof(local->uroced), "%s/%s", bin_dir,
			     uroced_paths[i]) < (int)sizeof(local->uroced) &&
		    access(local->uroced, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static int make_dir_in(const char *parent, char *dir)
{
	if (!parent || parent[0] != '/' ||
	    snprintf(dir, DIR_MAX, "%s/uroce-local-XXXXXX", parent) >= DIR_MAX)
		return -ENAMETOOLONG;
	return mkdtemp(dir) ? 0 : -errno;
}

bool local_is_own_dir(const char *dir)
{
	struct stat status;

	return dir && strpbrk(dir, "#\n\r\t ") == NULL && stat(dir, &status) == 0 &&
	       S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	       (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Make the directory, with mode 0700. The user's runtime directory may be missing, another user's,
 * or have a name too long for a socket in it. */
static int make_dir(char *dir)
{
	const char *runtime_dir = secure_getenv("XDG_RUNTIME_DIR");

	if (local_is_own_dir(runtime_dir) && make_dir_in(runtime_dir, dir) == 0)
		return 0;
	return make_dir_in("/tmp", dir);
}

int local_write_config(const char *dir, const struct settings *settings, uint32_t devices)
{
	char path[PATH_MAX], level[16];
	FILE *file;
	int rc;

	/* Hide uroced's warning of missing huge pages: none are expected here. Errors are printed.
	 */
	rc = settings_get(settings, "log-level", level, sizeof(level));
	if (rc != 0)
		return rc;
	if (settings->log_level == LOG_LEVEL_WARN)
		snprintf(level, sizeof(level), "error");
	snprintf(path, sizeof(path), "%s/" GUARD_CONFIG_NAME, dir);
	file = fopen(path, "wxe");
	if (!file)
		return -errno;
	/* EAL's files have a directory of their own, so all may have the same prefix. */
	fprintf(file, "[uroce]\nsocket = %s/" SOCKET_NAME "\nsocket-mode = 0600\n", dir);
	fprintf(file, "file-prefix = local\nlog-level = %s\n", level);
	for (uint32_t i = 0; i < devices; i++) {
		if (devices == 1)
			fprintf(file, "\n[port %s]\n", settings->name);
		else
			fprintf(file, "\n[port uroce%u]\n", i);
		/* 198.18.0.0/15 is for tests of networks (RFC 2544); fd00::/8 is private (RFC
		 * 4193).
		 */
		fprintf(file, "port = local%u\nip = 198.18.%u.1/24, fd75:726f:6365:%x::1/64\n", i,
			i, i);
	}
	rc = ferror(file) ? -EIO : 0;
	return fclose(file) != 0 && rc == 0 ? -errno : rc;
}

static int open_ready_socket(struct local *local)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	local->ready_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (local->ready_fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" GUARD_READY_NAME, local->dir);
	return bind(local->ready_fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0
											: -errno;
}

/* Wait until uroced serves. -ECHILD: the guard has ended. */
static int wait_until_ready(const struct local *local)
{
	struct pollfd ends[] = {{.fd = local->ready_fd, .events = POLLIN},
				{.fd = local->alive_fd, .events = POLLIN}};

	while (poll(ends, RTE_DIM(ends), -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return ends[0].revents & POLLIN ? 0 : -ECHILD;
}

int local_start(struct settings *settings, uint32_t devices, const char *bin_dir, char *error,
		size_t error_size)
{
	struct local local = {.ready_fd = -1, .alive_fd = -1};
	const struct guard_task task = {.uroced = local.uroced, .dir = local.dir};
	bool guarded;
	int rc;

	if (find_uroced(&local, bin_dir) != 0) {
		snprintf(error, error_size,
			 "local: uroced is in neither %s/%s nor %s/%s; build "
			 "or install uroce again",
			 bin_dir, uroced_paths[0], bin_dir, uroced_paths[1]);
		return -ENOENT;
	}
	rc = make_dir(local.dir);
	if (rc != 0) {
		snprintf(error, error_size,
			 "local: cannot make a directory in $XDG_RUNTIME_DIR or /tmp: %s",
			 strerror(-rc));
		return rc;
	}
	rc = local_write_config(local.dir, settings, devices);
	if (rc == 0)
		rc = open_ready_socket(&local);
	if (rc == 0)
		rc = local.alive_fd = guard_start(&task);
	guarded = rc >= 0;
	if (guarded)
		rc = wait_until_ready(&local);
	if (local.ready_fd >= 0)
		close(local.ready_fd);
	if (local.alive_fd >= 0)
		close(local.alive_fd);
	if (rc != 0) {
		if (!guarded || rc == -ECHILD)
			guard_remove_dir(local.dir);
		snprintf(error, error_size, "local: %s: %s",
			 guarded ? "uroced does not start" : "cannot start uroced",
			 guarded ? local.uroced : strerror(-rc));
		return rc;
	}
	snprintf(settings->socket, sizeof(settings->socket), "%s/" SOCKET_NAME, local.dir);
	return 0;
}
