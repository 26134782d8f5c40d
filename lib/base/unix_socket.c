/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes listening Unix sockets, in the place of a dead server's if there is one, and the lock for
 * servers that start at the same moment. */
#include "base/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define TRIES	 100
#define PAUSE_NS 10000000

int dir_lock(const char *path)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	int fd;

	if (!slash)
		return -1;
	snprintf(directory, sizeof(directory), "%.*s", slash == path ? 1 : (int)(slash - path),
		 path);
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (int i = 0; i < TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		nanosleep(&pause, NULL);
	}
	log_warn("another program keeps %s locked", directory);
	close(fd);
	return -1;
}

void dir_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

/* Remove a socket that no process listens on. 0, also if there is no file; or -errno. */
static int remove_stale(const struct sockaddr_un *address, int type)
{
	struct stat file;
	int fd, rc;

	/* Keep a file that is not a socket: connect(2) would fail with ECONNREFUSED there, too. */
	if (lstat(address->sun_path, &file) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(file.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? -EADDRINUSE
										  : -errno;
	close(fd);
	/* The queue of a server that does not run, because it is stopped, may be full. */
	if (rc == -EAGAIN)
		return -EADDRINUSE;
	if (rc == -ECONNREFUSED)
		return unlink(address->sun_path) == 0 ? 0 : -errno;
	return rc == -ENOENT ? 0 : rc;
}

/*
 * Return true if a file is the socket that bind_and_listen has just made. If the directory is
 * another user's, that user may put anything in its place: a link to another file, or the hard link
 * of another socket.
 */
static bool is_new_socket(int file)
{
	struct stat status;

	return fstat(file, &status) == 0 && S_ISSOCK(status.st_mode) &&
	       (status.st_mode & 07777) == 0 && status.st_nlink == 1 && status.st_uid == geteuid();
}

/* Give the new socket its owner and its mode, by a descriptor of the file: its path may lead to
 * another file by now. chmod(2) follows the link in /proc to the descriptor's file. */
static int set_owner_and_mode(const struct sockaddr_un *address,
			      const struct unix_socket_config *config)
{
	const int file = open(address->sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path[64];
	int rc = 0;

	if (file < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (!is_new_socket(file))
		rc = -ESTALE;
	else if (fchownat(file, "", config->owner, config->group, AT_EMPTY_PATH) != 0 ||
		 chmod(path, config->mode) != 0)
		rc = -errno;
	close(file);
	return rc;
}

static int bind_and_listen(int fd, const struct sockaddr_un *address,
			   const struct unix_socket_config *config)
{
	int rc;

	/* Linux gives the file the mode of the socket, less the umask. So nobody may connect until
	 * chmod(). The umask itself belongs to all threads. */
	if (fchmod(fd, 0) != 0 || bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0)
		return -errno;
	rc = set_owner_and_mode(address, config);
	/* Keep a file that somebody has put there instead. */
	if (rc == -ESTALE)
		return rc;
	if (rc == 0 && listen(fd, config->backlog) == 0)
		return 0;
	if (rc == 0)
		rc = -errno;
	unlink(address->sun_path);
	return rc;
}

int unix_socket_listen(const struct unix_socket_config *config)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, lock, rc;

	if (strlen(config->path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, config->path);
	fd = socket(AF_UNIX, config->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	lock = dir_lock(config->path);
	rc = remove_stale(&address, config->type);
	if (rc == 0)
		rc = bind_and_listen(fd, &address, config);
	dir_unlock(lock);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}
