/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes one new file of a view: under another name first, and then renames it. */
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_FILE ".uroce-new" /* below the root; becomes a file of the view when it is complete */

int replace_make_parents(int root, const char *path)
{
	char dir[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		if (mkdirat(root, dir, 0755) != 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* Write the new file. Return a descriptor of it, or -errno. */
static int write_new_file(int root, const char *text)
{
	const size_t len = strlen(text);
	ssize_t written;
	int fd, rc;

	fd = openat(root, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	written = write(fd, text, len);
	rc = written == (ssize_t)len ? 0 : written < 0 ? -errno : -ENOSPC;
	if (rc == 0 && fchmod(fd, 0444) != 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Rename the new file, and make the directories of its path if they are missing. */
static int rename_new(int root, const char *path)
{
	int rc;

	if (renameat(root, NEW_FILE, root, path) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	rc = replace_make_parents(root, path);
	if (rc != 0)
		return rc;
	return renameat(root, NEW_FILE, root, path) == 0 ? 0 : -errno;
}

int replace_file(int root, const char *path, const char *text, enum attribute_kind kind, int *fd)
{
	int new_fd = -1, rc = 0;

	if (text[0] == '\0') {
		if (unlinkat(root, path, 0) != 0 && errno != ENOENT)
			return -errno;
		return 0;
	}
	(void)unlinkat(root, NEW_FILE, 0);
	if (kind == ATTRIBUTE_LINK)
		rc = symlinkat(text, root, NEW_FILE) == 0 ? 0 : -errno;
	else
		rc = new_fd = write_new_file(root, text);
	if (rc >= 0)
		rc = rename_new(root, path);
	if (rc == 0 && fd)
		*fd = new_fd;
	else if (new_fd >= 0)
		close(new_fd);
	return rc;
}
