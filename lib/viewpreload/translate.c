/* SPDX-License-Identifier: BSD-3-Clause */
/* Translates paths of a view. It calls no function that this library replaces. */
#include "translate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VARIABLE "UROCE_VIEW"

static const char *const shown[] = {
	"/sys/class/infiniband",     "/sys/class/infiniband_verbs",
	"/sys/class/infiniband_mad", "/sys/class/misc/rdma_cm",
	"/dev/infiniband",
};
#define SHOWN (sizeof(shown) / sizeof(shown[0]))

/* Set by the constructor. "": there is no view. */
static char view_root[PATH_MAX];
static size_t view_root_len;

static void __attribute__((constructor(101))) translate_init(void)
{
	const char *root = secure_getenv(VARIABLE);

	if (!root || root[0] != '/' || root[1] == '\0' || strlen(root) >= sizeof(view_root))
		return;
	strcpy(view_root, root);
	view_root_len = strlen(view_root);
}

void uroce_view_leave(void)
{
	view_root_len = 0;
}

/* gcc's ASan ends a program in which another library comes before its own, so that nobody takes its
 * place. Ours calls its functions. */
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/* Return the length of the view's directory that a path starts with, or 0. */
static size_t shown_len(const char *path)
{
	for (size_t i = 0; i < SHOWN; i++) {
		const size_t len = strlen(shown[i]);

		if (strncmp(path, shown[i], len) == 0 && (path[len] == '/' || path[len] == '\0'))
			return len;
	}
	return 0;
}

/* Resolve "//", "." and ".." of an absolute path. ".." is resolved only inside the view: elsewhere
 * the name before it may be a symbolic link. Return false if the path does not lead into the view.
 * MT-safe. */
static bool translate_normalize(const char *path, char *buffer, size_t size)
{
	size_t len = 0;

	buffer[0] = '\0';
	while (*path != '\0') {
		const size_t part = strcspn(path + strspn(path, "/"), "/");

		path += strspn(path, "/");
		if (part == 0)
			break;
		if (part == 2 && strncmp(path, "..", 2) == 0) {
			if (shown_len(buffer) == 0)
				return false;
			len = (size_t)(strrchr(buffer, '/') - buffer);
		} else if (part != 1 || *path != '.') {
			if (len + 1 + part >= size)
				return false;
			buffer[len++] = '/';
			memcpy(buffer + len, path, part);
			len += part;
		}
		buffer[len] = '\0';
		path += part;
	}
	return shown_len(buffer) != 0;
}

/* Make an absolute path of a relative one. A directory of the view itself needs no translation:
 * its descriptor leads to the real files. */
static bool make_absolute(int dirfd, const char *path, char *buffer, size_t size)
{
	char link[64];
	ssize_t len;

	if (dirfd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/self/cwd");
	else
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	len = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, size - 1);
	if (len <= 0 || buffer[0] != '/')
		return false;
	buffer[len] = '\0';
	/* A relative path leads into the view only from a directory above it. */
	if (len > 1 && strncmp(buffer, "/sys", 4) != 0 && strncmp(buffer, "/dev", 4) != 0)
		return false;
	return snprintf(buffer + len, size - (size_t)len, "/%s", path) < (int)(size - (size_t)len);
}

const char *translate(int dirfd, const char *path, char *buffer)
{
	const int saved_errno = errno;
	char absolute[PATH_MAX], normal[PATH_MAX];
	const char *result = path;

	if (view_root_len == 0 || !path || path[0] == '\0')
		return path;
	if (path[0] == '/') {
		/* Nearly all paths end here. */
		if (strncmp(path, "/sys", 4) != 0 && strncmp(path, "/dev", 4) != 0 &&
		    strncmp(path, "//", 2) != 0 && strncmp(path, "/.", 2) != 0)
			return path;
		if (translate_normalize(path, normal, sizeof(normal)) &&
		    snprintf(buffer, PATH_MAX, "%s%s", view_root, normal) < PATH_MAX)
			result = buffer;
	} else if (make_absolute(dirfd, path, absolute, sizeof(absolute)) &&
		   translate_normalize(absolute, normal, sizeof(normal)) &&
		   snprintf(buffer, PATH_MAX, "%s%s", view_root, normal) < PATH_MAX) {
		result = buffer;
	}
	errno = saved_errno;
	return result;
}

bool translate_back(char *path)
{
	if (view_root_len == 0 || strncmp(path, view_root, view_root_len) != 0 ||
	    path[view_root_len] != '/')
		return false;
	memmove(path, path + view_root_len, strlen(path + view_root_len) + 1);
	return true;
}
