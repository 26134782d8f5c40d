/* SPDX-License-Identifier: BSD-3-Clause */
/* Launch the program and its servers. */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#define LIBRARY "libibverbs.so.1"

/* Paths from uroce-run's directory to the library's: in a build tree, and installed (set by Meson).
 */
static const char *const library_dirs[] = {"../lib/verbs", UROCE_LIBRARY_DIR};

int launch_find_library(const char *bin_dir, char *dir, size_t dir_size, char *error,
			size_t error_size)
{
	char path[PATH_MAX], *real;
	size_t len;

	for (size_t i = 0; i < RTE_DIM(library_dirs); i++) {
		if (snprintf(path, sizeof(path), "%s/%s/" LIBRARY, bin_dir, library_dirs[i]) >=
		    (int)sizeof(path))
			continue;
		if (access(path, R_OK) != 0)
			continue;
		/* Use the real path: a path with ".." would change if the directory of uroce-run
		 * were moved. */
		path[strlen(path) - strlen("/" LIBRARY)] = '\0';
		real = realpath(path, NULL);
		if (real == NULL)
			continue;
		len = strlen(real);
		if (len < dir_size)
			memcpy(dir, real, len + 1);
		free(real);
		if (len < dir_size)
			return 0;
		snprintf(error, error_size, "the name of the directory of " LIBRARY " is too long");
		return -ENAMETOOLONG;
	}
	snprintf(error, error_size,
		 "uroce's own " LIBRARY
		 " is in neither %s/%s nor %s/%s; build or install uroce again",
		 bin_dir, library_dirs[0], bin_dir, library_dirs[1]);
	return -ENOENT;
}

int launch_find_self(char *dir, size_t dir_size)
{
	ssize_t len = readlink("/proc/self/exe", dir, dir_size);

	if (len < 0)
		return -errno;
	if ((size_t)len == dir_size)
		return -ENAMETOOLONG;
	dir[len] = '\0';
	*strrchr(dir, '/') = '\0';
	return 0;
}

/* Put an element in front of a variable's list, or behind it. */
static int extend(const char *variable, const char *element, bool in_front)
{
	const char *old = getenv(variable);
	char *list;
	int ret;

	/* An empty element would mean the current directory. */
	if (old == NULL || *old == '\0')
		return setenv(variable, element, 1) == 0 ? 0 : -ENOMEM;
	if (asprintf(&list, "%s:%s", in_front ? element : old, in_front ? old : element) < 0)
		return -ENOMEM;
	ret = setenv(variable, list, 1);
	free(list);
	return ret == 0 ? 0 : -ENOMEM;
}

int launch_prepend(const char *variable, const char *element)
{
	return extend(variable, element, true);
}

int launch_append(const char *variable, const char *element)
{
	return extend(variable, element, false);
}

int launch_prepend_library_path(const char *dir, char *error, size_t error_size)
{
	int ret;

	if (strpbrk(dir, ":;$") != NULL) {
		snprintf(error, error_size,
			 "%s: the dynamic linker takes no directory with ':', ';' or '$' in its "
			 "name; "
			 "move uroce",
			 dir);
		return -EINVAL;
	}
	ret = launch_prepend("LD_LIBRARY_PATH", dir);
	if (ret < 0)
		snprintf(error, error_size, "no memory");
	return ret;
}

#define TLS_TUNABLE "glibc.rtld.optional_static_tls="

/* The last value of a tunable is the one that counts. */
static unsigned long reserved_tls(const char *tunables)
{
	unsigned long bytes = 0;

	for (const char *at = tunables; at != NULL && *at != '\0'; at = strchr(at, ':')) {
		at += *at == ':';
		if (strncmp(at, TLS_TUNABLE, strlen(TLS_TUNABLE)) == 0)
			bytes = strtoul(at + strlen(TLS_TUNABLE), NULL, 0);
	}
	return bytes;
}

int launch_reserve_tls(unsigned int bytes)
{
	char tunable[64];

	if (reserved_tls(getenv("GLIBC_TUNABLES")) >= bytes)
		return 0;
	snprintf(tunable, sizeof(tunable), TLS_TUNABLE "%u", bytes);
	return launch_append("GLIBC_TUNABLES", tunable);
}

static bool is_among(int fd, const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] == fd)
			return true;
	return false;
}

/* Old seccomp filters refuse close_range. */
void launch_close_from(int first, const int *keep, size_t count)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		const int fd = atoi(entry->d_name); /* 0: "." and ".." */

		if (fd >= first && fd != dirfd(dir) && !is_among(fd, keep, count))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

int launch_begin_session(void)
{
	FILE *file = fopen("/proc/self/autogroup", "re");
	int nice_value = 0;
	bool known;

	known = file && fscanf(file, "%*s nice %d", &nice_value) == 1;
	if (file)
		fclose(file);
	if (setsid() < 0)
		return -errno;
	file = known && nice_value != 0 ? fopen("/proc/self/autogroup", "we") : NULL;
	if (file) {
		fprintf(file, "%d", nice_value);
		fclose(file);
	}
	return 0;
}

int launch_exec(char **program, char *error, size_t error_size)
{
	execvp(program[0], program);
	snprintf(error, error_size, "%s: %s", program[0], strerror(errno));
	return errno == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}
