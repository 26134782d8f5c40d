/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C library's calls that take a path. Each translates its path and calls the C library's own
 * function, so that what programs get back - descriptors, streams, directories - is the C
 * library's.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

/* Declare `real`, the function of this name in the libraries after this one. The C library
 * has every function here, so a lookup does not fail. */
#define REAL(ret, name, ...)                           \
	static ret (*real)(__VA_ARGS__);               \
	if (!__atomic_load_n(&real, __ATOMIC_ACQUIRE)) \
	__atomic_store_n(&real, (ret(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name), __ATOMIC_RELEASE)

/* The mode is passed only if a file may be created. */
#define READ_MODE(flags, last, mode)                                    \
	do {                                                            \
		va_list list;                                           \
		(mode) = 0;                                             \
		if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
			va_start(list, last);                           \
			(mode) = va_arg(list, mode_t);                  \
			va_end(list);                                   \
		}                                                       \
	} while (0)

#define OPEN(name)                                                           \
	int name(const char *path, int flags, ...)                           \
	{                                                                    \
		char buffer[PATH_MAX];                                       \
		mode_t mode;                                                 \
                                                                             \
		REAL(int, name, const char *, int, ...);                     \
		READ_MODE(flags, flags, mode);                               \
		return real(translate(AT_FDCWD, path, buffer), flags, mode); \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                         \
	int name(int dir, const char *path, int flags, ...)                  \
	{                                                                    \
		char buffer[PATH_MAX];                                       \
		mode_t mode;                                                 \
                                                                             \
		REAL(int, name, int, const char *, int, ...);                \
		READ_MODE(flags, flags, mode);                               \
		return real(dir, translate(dir, path, buffer), flags, mode); \
	}
OPENAT(openat)
OPENAT(openat64)

/* Define a function with a path as its first argument. */
#define PATH1(ret, name)                                        \
	ret name(const char *path)                              \
	{                                                       \
		char buffer[PATH_MAX];                          \
                                                                \
		REAL(ret, name, const char *);                  \
		return real(translate(AT_FDCWD, path, buffer)); \
	}
#define PATH2(ret, name, type)                                       \
	ret name(const char *path, type arg)                         \
	{                                                            \
		char buffer[PATH_MAX];                               \
                                                                     \
		REAL(ret, name, const char *, type);                 \
		return real(translate(AT_FDCWD, path, buffer), arg); \
	}
/* A directory's descriptor, a path relative to it, and what follows. */
#define AT3(ret, name, type)                                         \
	ret name(int dir, const char *path, type arg)                \
	{                                                            \
		char buffer[PATH_MAX];                               \
                                                                     \
		REAL(ret, name, int, const char *, type);            \
		return real(dir, translate(dir, path, buffer), arg); \
	}
#define AT4(ret, name, type1, type2)                                        \
	ret name(int dir, const char *path, type1 arg1, type2 arg2)         \
	{                                                                   \
		char buffer[PATH_MAX];                                      \
                                                                            \
		REAL(ret, name, int, const char *, type1, type2);           \
		return real(dir, translate(dir, path, buffer), arg1, arg2); \
	}

/* With _FORTIFY_SOURCE compilers call these functions instead of open. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
PATH2(int, __open_2, int)
PATH2(int, __open64_2, int)
AT3(int, __openat_2, int)
AT3(int, __openat64_2, int)

PATH2(FILE *, fopen, const char *)
PATH2(FILE *, fopen64, const char *)
PATH1(DIR *, opendir)
PATH1(int, chdir)
PATH2(int, access, int)
PATH2(int, euidaccess, int)
PATH2(int, eaccess, int)
AT4(int, faccessat, int, int)
PATH2(int, stat, struct stat *)
PATH2(int, lstat, struct stat *)
PATH2(int, stat64, struct stat64 *)
PATH2(int, lstat64, struct stat64 *)
AT4(int, fstatat, struct stat *, int)
AT4(int, fstatat64, struct stat64 *, int)
PATH2(int, statfs, struct statfs *)
PATH2(int, statfs64, struct statfs64 *)
PATH2(int, statvfs, struct statvfs *)
PATH2(int, statvfs64, struct statvfs64 *)

int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *result)
{
	char buffer[PATH_MAX];

	REAL(int, statx, int, const char *, int, unsigned int, struct statx *);
	return real(dir, translate(dir, path, buffer), flags, mask, result);
}

/* Programs built before glibc 2.33 call these for stat and its relatives. */
#define XSTAT(name, type)                                                        \
	int name(int version, const char *path, type *status);                   \
	int name(int version, const char *path, type *status)                    \
	{                                                                        \
		char buffer[PATH_MAX];                                           \
                                                                                 \
		REAL(int, name, int, const char *, type *);                      \
		return real(version, translate(AT_FDCWD, path, buffer), status); \
	}
XSTAT(__xstat, struct stat)
XSTAT(__lxstat, struct stat)
XSTAT(__xstat64, struct stat64)
XSTAT(__lxstat64, struct stat64)

#define FXSTATAT(name, type)                                                            \
	int name(int version, int dir, const char *path, type *status, int flags);      \
	int name(int version, int dir, const char *path, type *status, int flags)       \
	{                                                                               \
		char buffer[PATH_MAX];                                                  \
                                                                                        \
		REAL(int, name, int, int, const char *, type *, int);                   \
		return real(version, dir, translate(dir, path, buffer), status, flags); \
	}
FXSTATAT(__fxstatat, struct stat)
FXSTATAT(__fxstatat64, struct stat64)

ssize_t readlink(const char *path, char *target, size_t size)
{
	char buffer[PATH_MAX];

	REAL(ssize_t, readlink, const char *, char *, size_t);
	return real(translate(AT_FDCWD, path, buffer), target, size);
}

ssize_t readlinkat(int dir, const char *path, char *target, size_t size)
{
	char buffer[PATH_MAX];

	REAL(ssize_t, readlinkat, int, const char *, char *, size_t);
	return real(dir, translate(dir, path, buffer), target, size);
}

ssize_t __readlink_chk(const char *path, char *target, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *target, size_t size, size_t room)
{
	if (size > room)
		abort();
	return readlink(path, target, size);
}

static char *back(char *path)
{
	if (path)
		translate_back(path);
	return path;
}

char *realpath(const char *path, char *resolved)
{
	char buffer[PATH_MAX];

	REAL(char *, realpath, const char *, char *);
	return back(real(translate(AT_FDCWD, path, buffer), resolved));
}

char *__realpath_chk(const char *path, char *resolved, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (room < PATH_MAX)
		abort();
	return realpath(path, resolved);
}

char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

/* The C library's own scandir and glob call its opendir inside, which cannot be replaced. */
#define SCANDIR(name, type)                                                             \
	int name(const char *path, type ***names, int (*wanted)(const type *),          \
		 int (*compare)(const type **, const type **))                          \
	{                                                                               \
		char buffer[PATH_MAX];                                                  \
                                                                                        \
		REAL(int, name, const char *, type ***, int (*)(const type *),          \
		     int (*)(const type **, const type **));                            \
		return real(translate(AT_FDCWD, path, buffer), names, wanted, compare); \
	}
SCANDIR(scandir, struct dirent)
SCANDIR(scandir64, struct dirent64)
