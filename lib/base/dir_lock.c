/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock on the place of a socket in the file system. */
#include "base/dir_lock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
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
