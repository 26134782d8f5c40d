/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts an uroced for one command. Between the two is a guard: a process that waits for the end of
 * the command, ends uroced, and removes their directory. So uroce-run can exec the command, which
 * then has its own signals, exit status and children; and SIGKILL leaves nothing behind. */
#include "run_local.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "config/settings.h"

#define DIR_MAX	    80 /* a path of a socket has room for it and a name */
#define CONFIG_NAME "uroced.conf"
#define READY_NAME  "ready.sock"
#define SOCKET_NAME "uroced.sock"
#define WALK_FDS    8

static_assert(LOCAL_DEVICES_MAX == SETTINGS_PORTS_MAX, "uroced has as many ports");
static_assert(DIR_MAX + sizeof("/" SOCKET_NAME) <= SETTINGS_SOCKET_MAX, "the path fits");

/* Paths from uroce-run's directory to uroced: in a build tree, and installed (set by Meson). */
static const char *const uroced_paths[] = {"uroced", UROCED_PATH};

/* The state that uroce-run, the guard and uroced share until the command runs. */
struct local {
	char dir[DIR_MAX];
	char uroced[PATH_MAX];
	int command_fd; /* pidfd of uroce-run, which becomes the command */
	int ready_fd;	/* a datagram comes when uroced serves */
	int alive[2];	/* a pipe: end of file tells that the guard has ended */
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

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)type, (void)where;
	(void)remove(path);
	return 0;
}

static void remove_dir(const char *dir)
{
	nftw(dir, remove_entry, WALK_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
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
	snprintf(path, sizeof(path), "%s/" CONFIG_NAME, dir);
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
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" READY_NAME, local->dir);
	return bind(local->ready_fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0
											: -errno;
}

/* Become uroced. Keep stderr alone of the command's descriptors. */
static _Noreturn void exec_uroced(const struct local *local, pid_t guard)
{
	char config[PATH_MAX], ready[PATH_MAX];
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != guard || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		_exit(EXIT_FAILURE);
	snprintf(config, sizeof(config), "%s/" CONFIG_NAME, local->dir);
	snprintf(ready, sizeof(ready), "%s/" READY_NAME, local->dir);
	/* EAL puts its files in this directory. */
	if (setenv("RUNTIME_DIRECTORY", local->dir, 1) == 0 &&
	    setenv("NOTIFY_SOCKET", ready, 1) == 0)
		execl(local->uroced, "uroced", "--config", config, NULL);
	_exit(EXIT_FAILURE);
}

/* Close the descriptors that uroce-run has inherited: they are the command's. */
static void close_inherited(struct local *local)
{
	int *const kept[] = {&local->command_fd, &local->alive[1]};
	int next = STDERR_FILENO + 1;

	for (size_t i = 0; i < RTE_DIM(kept); i++)
		*kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, next + (int)RTE_DIM(kept));
	for (size_t i = 0; i < RTE_DIM(kept); i++, next++)
		*kept[i] = dup3(*kept[i], next, O_CLOEXEC);
	close_range((unsigned int)next, ~0U, 0);
}

/* Reset the signals that uroce-run may have inherited blocked or ignored. */
static void reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Run uroced until it or the command ends. A session of its own keeps the terminal's signals away:
 * Ctrl-C shall end the command first. */
static _Noreturn void guard_run(struct local *local)
{
	struct pollfd ends[2] = {{.events = POLLIN}, {.events = POLLIN}};
	const pid_t self = (setsid(), getpid());
	pid_t uroced;

	reset_signals();
	close_inherited(local);
	if (chdir("/") != 0)
		_exit(EXIT_FAILURE);
	uroced = fork();
	if (uroced == 0)
		exec_uroced(local, self);
	ends[0].fd = local->command_fd;
	ends[1].fd = uroced > 0 ? pidfd_open(uroced, 0) : -1;
	while (ends[1].fd >= 0 && poll(ends, RTE_DIM(ends), -1) < 0 && errno == EINTR)
		;
	if (uroced > 0) {
		kill(uroced, SIGTERM);
		while (waitpid(uroced, NULL, 0) < 0 && errno == EINTR)
			;
	}
	remove_dir(local->dir);
	_exit(EXIT_SUCCESS);
}

/* Start the guard as a grandchild, so that the command has no child that it did not start. */
static int start_guard(struct local *local)
{
	pid_t child = fork();

	if (child == 0) {
		child = fork();
		if (child == 0)
			guard_run(local);
		_exit(child < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	if (child < 0)
		return -errno;
	close(local->alive[1]);
	local->alive[1] = -1;
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* Wait until uroced serves. If it fails, the guard removes the directory and ends. */
static int wait_until_ready(const struct local *local)
{
	struct pollfd ends[] = {{.fd = local->ready_fd, .events = POLLIN},
				{.fd = local->alive[0], .events = POLLIN}};

	while (poll(ends, RTE_DIM(ends), -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return ends[0].revents & POLLIN ? 0 : -ECHILD;
}

static int open_all(struct local *local)
{
	/* Also the guard's only knowledge of the command, whose number may be used again. */
	local->command_fd = pidfd_open(getpid(), 0);
	if (local->command_fd < 0 || pipe2(local->alive, O_CLOEXEC) != 0)
		return -errno;
	return open_ready_socket(local);
}

static void close_all(const struct local *local)
{
	const int fds[] = {local->command_fd, local->ready_fd, local->alive[0], local->alive[1]};

	for (size_t i = 0; i < RTE_DIM(fds); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

int local_start(struct settings *settings, uint32_t devices, const char *bin_dir, char *error,
		size_t error_size)
{
	struct local local = {.command_fd = -1, .ready_fd = -1, .alive = {-1, -1}};
	bool guarded = false;
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
		rc = open_all(&local);
	if (rc == 0)
		rc = start_guard(&local);
	guarded = rc == 0;
	if (rc == 0)
		rc = wait_until_ready(&local);
	close_all(&local);
	if (rc != 0) {
		if (!guarded)
			remove_dir(local.dir);
		snprintf(error, error_size, "local: %s: %s",
			 guarded ? "uroced does not start" : "cannot start uroced",
			 guarded ? local.uroced : strerror(-rc));
		return rc;
	}
	snprintf(settings->socket, sizeof(settings->socket), "%s/" SOCKET_NAME, local.dir);
	return 0;
}
