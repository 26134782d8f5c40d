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

#define SOCKET_NAME "uroced.sock"

static_assert(LOCAL_DEVICES_MAX == SETTINGS_PORTS_MAX, "uroced has as many ports");
static_assert(LOCAL_DIR_MAX + sizeof("/" SOCKET_NAME) <= SETTINGS_SOCKET_MAX, "the path fits");

/* Paths from uroce-run's directory to uroced: in a build tree, and installed (set by Meson). */
static const char *const uroced_paths[] = {"uroced", UROCED_PATH};

static int find_uroced(struct local_network *network, const char *bin_dir)
{
	for (size_t i = 0; i < RTE_DIM(uroced_paths); i++) {
		if (snprintf(network->uroced, sizeof(network->uroced), "%s/%s", bin_dir,
			     uroced_paths[i]) < (int)sizeof(network->uroced) &&
		    access(network->uroced, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static int make_dir_in(const char *parent, char *dir)
{
	if (snprintf(dir, LOCAL_DIR_MAX, "%s/uroce-local-XXXXXX", parent) >= LOCAL_DIR_MAX)
		return -ENAMETOOLONG;
	return mkdtemp(dir) ? 0 : -errno;
}

bool local_is_safe_dir(const char *dir)
{
	struct stat status;

	if (!dir || dir[0] != '/' || strpbrk(dir, "#\n\r\t ") != NULL || stat(dir, &status) != 0 ||
	    !S_ISDIR(status.st_mode))
		return false;
	return (status.st_uid == geteuid() || status.st_uid == 0) &&
	       ((status.st_mode & S_ISVTX) || !(status.st_mode & (S_IWGRP | S_IWOTH)));
}

const char *local_env_dir(const char *name)
{
	const char *dir = secure_getenv(name);

	return local_is_safe_dir(dir) ? dir : NULL;
}

/* Make the directory, with mode 0700. The directories of the environment may be missing, another
 * user's, or have a name too long for a socket in it; /tmp may be read-only. */
static int make_dir(char *dir)
{
	const char *const parents[] = {local_env_dir("XDG_RUNTIME_DIR"), local_env_dir("TMPDIR"),
				       "/tmp", "/dev/shm"};
	int rc = -ENOENT;

	for (size_t i = 0; i < RTE_DIM(parents) && rc != 0; i++)
		if (parents[i])
			rc = make_dir_in(parents[i], dir);
	return rc;
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

static int open_ready_socket(struct local_network *network)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	network->ready_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (network->ready_fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" GUARD_READY_NAME, network->dir);
	return bind(network->ready_fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0
											  : -errno;
}

/* Wait until uroced serves. -ECHILD: the guard has ended. */
static int wait_until_ready(const struct local_network *network)
{
	struct pollfd ends[] = {{.fd = network->ready_fd, .events = POLLIN},
				{.fd = network->alive_fd, .events = POLLIN}};

	while (poll(ends, RTE_DIM(ends), -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return ends[0].revents & POLLIN ? 0 : -ECHILD;
}

int local_start(struct local_network *network, struct settings *settings, uint32_t devices,
		const char *bin_dir, char *error, size_t error_size)
{
	const struct guard_task task = {.uroced = network->uroced, .dir = network->dir};
	int rc;

	network->ready_fd = -1;
	if (find_uroced(network, bin_dir) != 0) {
		snprintf(error, error_size,
			 "local: uroced is in neither %s/%s nor %s/%s; build "
			 "or install uroce again",
			 bin_dir, uroced_paths[0], bin_dir, uroced_paths[1]);
		return -ENOENT;
	}
	rc = make_dir(network->dir);
	if (rc != 0) {
		snprintf(error, error_size,
			 "local: cannot make a directory in $XDG_RUNTIME_DIR, $TMPDIR, /tmp or "
			 "/dev/shm: %s",
			 strerror(-rc));
		return rc;
	}
	rc = local_write_config(network->dir, settings, devices);
	if (rc == 0)
		rc = open_ready_socket(network);
	if (rc == 0)
		rc = network->alive_fd = guard_start(&task);
	if (rc < 0) {
		if (network->ready_fd >= 0)
			close(network->ready_fd);
		guard_remove_dir(network->dir);
		snprintf(error, error_size, "local: cannot start uroced: %s", strerror(-rc));
		return rc;
	}
	snprintf(settings->socket, sizeof(settings->socket), "%s/" SOCKET_NAME, network->dir);
	return 0;
}

int local_wait(struct local_network *network, char *error, size_t error_size)
{
	const int rc = wait_until_ready(network);

	close(network->ready_fd);
	close(network->alive_fd);
	if (rc == 0)
		return 0;
	if (rc == -ECHILD)
		guard_remove_dir(network->dir);
	snprintf(error, error_size, "local: uroced does not start: %s", network->uroced);
	return rc;
}
