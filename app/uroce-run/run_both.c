/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepares the environment of uroce-run --also-system. */
#include "run_both.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "both/system.h"
#include "launch.h"

#define LIBRARY "libibverbs.so.1"
/* rdma-core's number for the interface between its library and its drivers. lib/both has the
 * symbols of this one. */
#define DRIVER_SYMBOL  "verbs_register_driver_34"
#define DRIVER_VERSION "IBVERBS_PRIVATE_34"

/* Where the library of lib/both is, relative to the directory of ours: if installed, and in a build
 * tree. */
static const char *const both_dirs[] = {"both", "../both"};

static int both_find_dir(const char *library, char *dir, size_t dir_size, char *error,
			 size_t error_size)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < RTE_DIM(both_dirs); i++) {
		if (snprintf(dir, dir_size, "%s/%s", library, both_dirs[i]) < (int)dir_size &&
		    snprintf(path, sizeof(path), "%s/" LIBRARY, dir) < (int)sizeof(path) &&
		    access(path, R_OK) == 0)
			return 0;
	}
	snprintf(error, error_size,
		 "also-system: no both/" LIBRARY " is below %s; install uroce "
		 "again",
		 library);
	return -ENOENT;
}

/* Check a library that the dynamic linker has found, and get its path. */
static int both_check_system(void *library, char *path, size_t path_size, char *error,
			     size_t error_size)
{
	const struct link_map *map;
	char *real;

	if (dlsym(library, "uroce_private_cm")) {
		snprintf(error, error_size,
			 "also-system: the dynamic linker finds uroce's " LIBRARY
			 ", not the system's; do not run uroce-run in uroce-run");
		return -ENOTSUP;
	}
	if (!dlvsym(library, DRIVER_SYMBOL, DRIVER_VERSION)) {
		snprintf(error, error_size,
			 "also-system: the system's " LIBRARY " has no " DRIVER_VERSION
			 ": it is of another release of rdma-core");
		return -ENOTSUP;
	}
	/* Make it absolute: the program may have another directory. */
	real = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? realpath(map->l_name, NULL) : NULL;
	if (!real) {
		snprintf(error, error_size, "also-system: cannot tell where " LIBRARY " is");
		return -ENOENT;
	}
	snprintf(path, path_size, "%s", real);
	free(real);
	return 0;
}

static int both_find_system(char *path, size_t path_size, char *error, size_t error_size)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
	int rc;

	if (!library) {
		snprintf(error, error_size, "also-system: the system has no usable " LIBRARY ": %s",
			 dlerror());
		return -ENOENT;
	}
	rc = both_check_system(library, path, path_size, error, error_size);
	dlclose(library);
	return rc;
}

int both_export(const char *library, char *error, size_t error_size)
{
	char dir[PATH_MAX], path[PATH_MAX];
	int rc;

	rc = both_find_dir(library, dir, sizeof(dir), error, error_size);
	if (rc == 0)
		rc = both_find_system(path, sizeof(path), error, error_size);
	if (rc == 0 && setenv(BOTH_SYSTEM_VARIABLE, path, 1) != 0) {
		snprintf(error, error_size, "no memory");
		rc = -ENOMEM;
	}
	return rc == 0 ? launch_prepend_library_path(dir, error, error_size) : rc;
}
