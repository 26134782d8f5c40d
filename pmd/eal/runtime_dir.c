/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the directory in which EAL keeps files that other processes read. */
#include "runtime_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define FALLBACK "/tmp/dpdk"

int runtime_dir_check_at(const char *path)
{
	struct stat dir;

	/* Once the directory is ours, nobody can replace it: its parent is sticky. */
	(void)mkdir(path, 0700);
	if (lstat(path, &dir) == 0 && S_ISDIR(dir.st_mode) && dir.st_uid == geteuid() &&
	    (dir.st_mode & 022) == 0)
		return 0;
	log_error("DPDK's directory %s can be written by others: set XDG_RUNTIME_DIR to a "
		  "directory of this user",
		  path);
	return -EPERM;
}

int runtime_dir_check(void)
{
	/* EAL's own choice: the first of these that is set, /var/run for root, else /tmp. */
	if (getenv("RUNTIME_DIRECTORY") || getuid() == 0 || getenv("XDG_RUNTIME_DIR"))
		return 0;
	return runtime_dir_check_at(FALLBACK);
}
