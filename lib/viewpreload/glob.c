/* SPDX-License-Identifier: BSD-3-Clause */
/* glob(3) in the view: the pattern is translated, and the names that it finds are translated
 * back. */
#include <glob.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>

#include "translate.h"

#define GLOB(name, type)                                                                          \
	int name(const char *pattern, int flags, int (*on_error)(const char *, int), type *found) \
	{                                                                                         \
		typedef int function(const char *, int, int (*)(const char *, int), type *);      \
		function *const real = (function *)dlsym(RTLD_NEXT, #name);                       \
		const size_t before = flags & GLOB_APPEND ? found->gl_pathc : 0;                  \
		char buffer[PATH_MAX];                                                            \
		int rc;                                                                           \
                                                                                                  \
		rc = real(translate(AT_FDCWD, pattern, buffer), flags, on_error, found);          \
		for (size_t i = before; rc == 0 && i < found->gl_pathc; i++)                      \
			translate_back(                                                           \
				found->gl_pathv[found->gl_offs * !!(flags & GLOB_DOOFFS) + i]);   \
		return rc;                                                                        \
	}
GLOB(glob, glob_t)
GLOB(glob64, glob64_t)
