/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files of sysfs, which libraries above verbs read by these functions. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "private.h"
#include "verbs_internal.h"

static char sysfs_path[IBV_SYSFS_PATH_MAX];
static pthread_once_t sysfs_path_once = PTHREAD_ONCE_INIT;

/* Use the path of an environment variable, where tests put a tree of their own; but not in a
 * program that runs with more rights than its caller. */
static void find_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");
	size_t len;

	if (!path || strlen(path) >= sizeof(sysfs_path))
		path = "/sys";
	len = strlen(path);
	memcpy(sysfs_path, path, len + 1);
	while (len > 0 && sysfs_path[len - 1] == '/')
		sysfs_path[--len] = '\0';
}

const char *ibv_get_sysfs_path(void)
{
	pthread_once(&sysfs_path_once, find_sysfs_path);
	return sysfs_path;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	ssize_t len;
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return face_minus_one(-ENOMEM);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return -1;
	len = read(fd, buf, size);
	close(fd);
	if (len < 0)
		return -1;
	if (len > 0 && buf[len - 1] == '\n')
		len--;
	if ((size_t)len < size)
		buf[len] = '\0';
	else if (size > 0)
		return face_minus_one(-ENOSPC); /* there is no room for the string's end */
	return (int)len;
}

int ibv_read_ibdev_sysfs_file(char *buf __rte_unused, size_t size __rte_unused,
			      struct verbs_sysfs_dev *sysfs_dev __rte_unused,
			      const char *format __rte_unused, ...)
{
	return face_minus_one(-EOPNOTSUPP);
}
