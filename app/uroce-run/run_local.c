/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts an uroced for one command. Between the two is a guard, a process which ends uroced
 * after the command, and removes their directory. */
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
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "config/settings.h"
#include "launch.h"

#define GUARD_CONFIG_NAME "uroced.conf"
#define GUARD_READY_NAME  "ready.sock"

struct guard_task {
	const char *uroced; /* path of the program */
	const char *dir;    /* of its configuration file, and of all its files */
};

#define WALK_FDS  8
#define FIRST_FD  (STDERR_FILENO + 1)
#define BY_SIGNAL 128 /* as shells do */

/* Signals that the guard forwards to the command. None of them may end the guard, which has to
 * clean up. */
static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP};

enum { END_COMMAND, END_SIGNAL, ENDS };

struct guard {
	const struct guard_task *task;
	int command_fd; /* pidfd; negative: the command is a child of the guard */
	int alive_fd;	/* write end of a pipe: closed when the guard has ended */
	int signal_fd;
	pid_t uroced;
	pid_t child;	   /* the command; 0: the command is no child of the guard */
	int status;	   /* of the child, as for waitpid */
	bool child_ended;  /* and is waited for */
	bool uroced_ended; /* and is waited for */
};

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)type, (void)where;
	(void)remove(path);
	return 0;
}

/* Remove a directory and all that is in it. MT-safe. */
static void guard_remove_dir(const char *dir)
{
	nftw(dir, remove_entry, WALK_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void fill_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < RTE_DIM(forwarded); i++)
		sigaddset(set, forwarded[i]);
}

/* Return the descriptor with a number that stdin, stdout and stderr do not have: the caller may
 * have closed these. -errno: it is closed. */
static int raise_fd(int fd)
{
	int raised;

	if (fd < 0)
		return -errno;
	if (fd >= FIRST_FD)
		return fd;
	raised = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	raised = raised < 0 ? -errno : raised;
	close(fd);
	return raised;
}

/* Become uroced, which dies with the guard. */
static _Noreturn void exec_uroced(const struct guard *guard, pid_t parent)
{
	char config[PATH_MAX], ready[PATH_MAX], pid[16];
	const char *dir = guard->task->dir;
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	/* Keep the terminal's signals away: Ctrl-C shall end the command first. */
	launch_begin_session();
	for (size_t i = 0; i < RTE_DIM(forwarded); i++)
		signal(forwarded[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	snprintf(config, sizeof(config), "%s/" GUARD_CONFIG_NAME, dir);
	snprintf(ready, sizeof(ready), "%s/" GUARD_READY_NAME, dir);
	/* Exec of a file with capabilities clears the signal of the parent's death. */
	snprintf(pid, sizeof(pid), "%d", parent);
	/* EAL puts its files in this directory. */
	if (setenv("RUNTIME_DIRECTORY", dir, 1) == 0 && setenv("NOTIFY_SOCKET", ready, 1) == 0 &&
	    setenv("UROCED_PARENT", pid, 1) == 0)
		execl(guard->task->uroced, "uroced", "--config", config, NULL);
	_exit(EXIT_FAILURE);
}

/* Close the descriptors that uroce-run has inherited: they are the command's. Keep ours. */
static void close_inherited(const struct guard *guard)
{
	const int keep[] = {guard->command_fd, guard->alive_fd, guard->signal_fd};

	launch_close_from(FIRST_FD, keep, RTE_DIM(keep));
}

/* Replace standard descriptors by /dev/null. A reader of the command's output waits until all
 * processes have closed it, and the guard lives longer than the command. */
static int replace_std(int first, int last)
{
	const int null = raise_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
	int rc = null < 0 ? null : 0;

	for (int fd = first; rc == 0 && fd <= last; fd++)
		rc = dup2(null, fd) == fd ? 0 : -errno;
	if (null >= 0)
		close(null);
	return rc;
}

/* Start uroced. It keeps stderr alone of the command's descriptors. */
static int guard_start_uroced(struct guard *guard)
{
	const pid_t self = getpid();
	sigset_t signals;
	int rc;

	fill_signals(&signals);
	signal(SIGCHLD, SIG_DFL);
	guard->signal_fd = raise_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
	if (guard->signal_fd < 0)
		return guard->signal_fd;
	close_inherited(guard);
	rc = chdir("/") == 0 ? replace_std(STDIN_FILENO, STDOUT_FILENO) : -errno;
	if (rc != 0)
		return rc;
	guard->uroced = fork();
	if (guard->uroced == 0)
		exec_uroced(guard, self);
	return guard->uroced > 0 ? replace_std(STDERR_FILENO, STDERR_FILENO) : -errno;
}

/* Wait for children that have ended. Process 1 gets those that the command leaves, too. */
static void guard_reap(struct guard *guard)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == guard->uroced)
			guard->uroced_ended = true;
		if (pid == guard->child) {
			guard->status = status;
			guard->child_ended = true;
		}
	}
}

static void guard_take_signal(struct guard *guard)
{
	struct signalfd_siginfo info;

	if (read(guard->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		guard_reap(guard);
	else if (guard->child == 0)
		pidfd_send_signal(guard->command_fd, (int)info.ssi_signo, NULL, 0);
	else if (!guard->child_ended && info.ssi_code != SI_KERNEL)
		/* A terminal has sent it to a command in our process group already. */
		kill(guard->child, (int)info.ssi_signo);
}

/* Wait until the command has ended; or uroced, if the guard has no other duty. */
static void guard_wait(struct guard *guard)
{
	struct pollfd ends[ENDS] = {
		[END_COMMAND] = {.fd = guard->command_fd, .events = POLLIN},
		[END_SIGNAL] = {.fd = guard->signal_fd, .events = POLLIN},
	};

	while (guard->child != 0 ? !guard->child_ended
				 : !guard->uroced_ended && ends[END_COMMAND].revents == 0) {
		if (poll(ends, ENDS, -1) < 0 && errno != EINTR)
			return;
		if (ends[END_SIGNAL].revents != 0)
			guard_take_signal(guard);
	}
}

/* End as the command did. */
static _Noreturn void exit_as(int status)
{
	const struct rlimit no_core = {0};
	sigset_t none;

	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	kill(getpid(), WTERMSIG(status));
	/* Process 1 of a container survives its own signals. */
	_exit(BY_SIGNAL + WTERMSIG(status));
}

static _Noreturn void guard_run(struct guard *guard)
{
	const int rc = guard_start_uroced(guard);

	if (rc == 0)
		guard_wait(guard);
	if (guard->uroced > 0 && !guard->uroced_ended) {
		kill(guard->uroced, SIGTERM);
		while (waitpid(guard->uroced, NULL, 0) < 0 && errno == EINTR)
			;
	}
	guard_remove_dir(guard->task->dir);
	if (guard->child == 0)
		_exit(EXIT_SUCCESS);
	/* The command sees that the guard has failed by this descriptor. */
	close(guard->alive_fd);
	if (!guard->child_ended)
		waitpid(guard->child, &guard->status, 0);
	exit_as(guard->status);
}

/* Start the guard as a grandchild, so that the command has no child that it did not start. */
static int start_grandchild(struct guard *guard)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		child = fork();
		if (child == 0) {
			launch_begin_session();
			guard_run(guard);
		}
		_exit(child < 0 ? errno : 0);
	}
	if (child < 0) {
		status = -errno;
		close(guard->command_fd);
		return status;
	}
	close(guard->command_fd);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* Become the guard, and return in a child that becomes the command. */
static int start_child(struct guard *guard)
{
	/* The end of an ignored child could not be waited for. */
	void (*const before)(int) = signal(SIGCHLD, SIG_DFL);
	const pid_t child = fork();

	if (child <= 0) {
		const int rc = child == 0 ? 0 : -errno;

		signal(SIGCHLD, before);
		return rc;
	}
	guard->child = child;
	guard_run(guard);
}

static bool inherits_orphans(void)
{
	int subreaper = 0;

	return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper);
}

/*
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
static int guard_start(const struct guard_task *task)
{
	struct guard guard = {.task = task, .command_fd = -1, .signal_fd = -1};
	sigset_t signals, before;
	int alive[2], rc;

	if (pipe2(alive, O_CLOEXEC) != 0)
		return -errno;
	guard.alive_fd = raise_fd(alive[1]);
	if (guard.alive_fd < 0) {
		close(alive[0]);
		return guard.alive_fd;
	}
	/* Blocked before the guard is there: a signal waits until the guard reads it. */
	fill_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, &before);
	/* A seccomp filter may refuse the pidfd. */
	if (!inherits_orphans())
		guard.command_fd = raise_fd(pidfd_open(getpid(), 0));
	rc = guard.command_fd < 0 ? start_child(&guard) : start_grandchild(&guard);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(guard.alive_fd);
	if (rc == 0)
		return alive[0];
	close(alive[0]);
	return rc;
}

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
