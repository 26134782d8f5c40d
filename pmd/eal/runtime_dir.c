/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the directory in which EAL keeps files that other processes read, and looks for a primary
 * there. */
#include "runtime_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "eal/runtime.h"

#define FALLBACK  "/tmp/dpdk"
#define JOIN	  "mp_socket" /* at which secondary processes join */
#define TELEMETRY "dpdk_telemetry.v2"

int runtime_dir_check_at(const char *path)
{
	struct stat dir;

	/* Once the directory is ours, nobody can replace it: its parent is sticky. */
	if (mkdir(path, 0700) != 0 && errno != EEXIST) {
		const int rc = -errno;

		log_error("DPDK's directory %s cannot be made: %s: set XDG_RUNTIME_DIR to a "
			  "directory of this user",
			  path, strerror(-rc));
		return rc;
	}
	if (lstat(path, &dir) == 0 && S_ISDIR(dir.st_mode) && dir.st_uid == geteuid() &&
	    (dir.st_mode & 022) == 0)
		return 0;
	log_error("DPDK's directory %s can be written by others: set XDG_RUNTIME_DIR to a "
		  "directory of this user",
		  path);
	return -EPERM;
}

/* EAL's own choice: the first of these that is set, /var/run for root, else /tmp. */
static const char *runtime_dir_parent(void)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (!dir)
		dir = getuid() == 0 ? "/var/run" : getenv("XDG_RUNTIME_DIR");
	return dir ? dir : "/tmp";
}

bool runtime_make_directory(char *path, size_t size)
{
	return snprintf(path, size, "%s/dpdk", runtime_dir_parent()) < (int)size &&
	       (mkdir(path, 0700) == 0 || errno == EEXIST);
}

int runtime_dir_check(void)
{
	if (getenv("RUNTIME_DIRECTORY") || getuid() == 0 || getenv("XDG_RUNTIME_DIR"))
		return 0;
	return runtime_dir_check_at(FALLBACK);
}

/* Return 0 if a process has this socket, or -errno. */
static int runtime_dir_ask(const char *prefix, const char *name, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/dpdk/%s/%s",
		     runtime_dir_parent(), prefix, name) >= (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

/* Find a primary with this prefix in any directory: that of another user. Write the path of one of
 * its sockets. */
static bool runtime_dir_find(const char *prefix, char *path, size_t size)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	char line[PATH_MAX], part[PATH_MAX];
	bool found = false;

	snprintf(part, sizeof(part), "/dpdk/%s/", prefix);
	while (sockets && !found && fgets(line, sizeof(line), sockets)) {
		found = strstr(line, part) != NULL;
		if (found)
			snprintf(path, size, "%.*s", (int)strcspn(strchr(line, '/'), "\n"),
				 strchr(line, '/'));
	}
	if (sockets)
		fclose(sockets);
	return found;
}

int runtime_dir_check_primary(const char *prefix, char *error, size_t error_size)
{
	char path[PATH_MAX];
	const int rc = runtime_dir_ask(prefix, JOIN, SOCK_DGRAM);

	if (rc == 0)
		return 0;
	if (runtime_dir_ask(prefix, TELEMETRY, SOCK_SEQPACKET) == 0)
		snprintf(error, error_size,
			 "the DPDK primary with file-prefix '%s' shares no memory: start it "
			 "without --in-memory and --no-shconf",
			 prefix);
	else if (runtime_dir_find(prefix, path, sizeof(path)))
		snprintf(error, error_size,
			 "the DPDK primary with file-prefix '%s' is another user's (%s): run as "
			 "that user, with the same RUNTIME_DIRECTORY",
			 prefix, path);
	else
		snprintf(error, error_size,
			 "no DPDK primary with file-prefix '%s' runs: its files would be in "
			 "%s/dpdk/%s",
			 prefix, runtime_dir_parent(), prefix);
	return rc;
}
