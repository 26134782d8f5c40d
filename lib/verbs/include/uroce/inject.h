/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that a test asks for: calls that fail, work requests that complete with an error,
 * asynchronous events. The rules are those of uroce-run --inject (uroce-run(1)), and the program
 * must run under `uroce-run --inject RULES`, or `--inject none` if it has no rule at its start.
 *
 *     int rule = uroce_inject("op=write,nth=3,status=retry_exc_err");
 *     ...
 *     assert(uroce_injected(rule) == 1);
 *
 * Nothing need be linked: the functions look for uroce's libibverbs.so.1 in the process.
 */
#ifndef UROCE_INJECT_H
#define UROCE_INJECT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>

/* Find a function of uroce's library, also if the process has it in a scope of its own. */
static inline void *uroce_inject_find(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);
	void *library = function ? NULL : dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

	return library ? dlsym(library, name) : function;
}

/** Add a rule, or several with `;` between them. MT-safe. Return the last one's number, from 1, or
 * 0 if there is none; -EINVAL for a bad rule (a line on stderr says why), -ENOSPC after 256 rules,
 * -ENOSYS without `uroce-run --inject`. */
static inline int uroce_inject(const char *rule)
{
	int (*add)(const char *rule) = (int (*)(const char *))uroce_inject_find("uroce_inject_add");

	return add ? add(rule) : -ENOSYS;
}

/** End a rule. MT-safe. 0, -ENOENT or -ENOSYS. */
static inline int uroce_inject_end(int rule)
{
	int (*end)(int rule) = (int (*)(int))uroce_inject_find("uroce_inject_remove");

	return end ? end(rule) : -ENOSYS;
}

/** Return how many faults a rule has made, -ENOENT or -ENOSYS. MT-safe. */
static inline int64_t uroce_injected(int rule)
{
	int64_t (*count)(int rule) = (int64_t(*)(int))uroce_inject_find("uroce_inject_count");

	return count ? count(rule) : -ENOSYS;
}

#endif
