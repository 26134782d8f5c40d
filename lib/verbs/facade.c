/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exported calls of libibverbs.so.1. Each passes on to the implementation, a library that is
 * loaded at the first call: an attached program gets one without DPDK, and a program that owns its
 * port one with it. Neither shares a symbol with the program, and there is one copy of each global.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_branch_prediction.h>

#include "cm/private.h"
#include "implementation.h"

#define LIBRARY_ATTACHED "liburoce-attached.so"
#define LIBRARY_ALL	 "liburoce.so.0"

static char directory[PATH_MAX];
static const struct implementation *chosen; /* set once; atomic */

/* Find the directory now: the name by which this library was loaded may be relative to the current
 * directory. Programs find errno as it was: tgtd expects 0 at its start. */
static void __attribute__((constructor)) find_directory(void)
{
	const int saved_errno = errno;
	char path[PATH_MAX];
	Dl_info object;

	if (dladdr(&chosen, &object) != 0 && object.dli_fname && realpath(object.dli_fname, path)) {
		*strrchr(path, '/') = '\0';
		memcpy(directory, path, strlen(path) + 1);
	}
	errno = saved_errno;
}

static void *open_library(const char *name, int flags)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
}

/* Return true if the settings (config/environ.c) name a port, or demand something else of EAL. The
 * provider checks the same (provider_needs_eal). */
static bool wants_eal(void)
{
	const char *telemetry = secure_getenv("UROCE_TELEMETRY");

	return secure_getenv("UROCE_PORT") || secure_getenv("UROCE_NETDEV") ||
	       (secure_getenv("UROCE_ISOLATED") && telemetry && strcmp(telemetry, "yes") == 0);
}

static bool is_of_this_build(const struct implementation *implementation)
{
	return implementation && implementation->size == sizeof(*implementation) &&
	       strcmp(implementation->version, UROCE_VERSION) == 0;
}

/* End the process: a program that was promised uroce's devices would else read only that there are
 * none. Do not call exit(): see provider_start. */
static void give_up(const char *reason)
{
	fprintf(stderr, "uroce: %s\n", reason);
	fflush(stdout);
	_exit(1);
}

/*
 * Several threads may do this at once, with the same result. None of them waits for another: one
 * may hold the loader's lock already, in a constructor of a library that it loads.
 */
static const struct implementation *choose(void)
{
	const int saved_errno = errno;
	const struct implementation *implementation;
	/* An application that calls uroce_attach_port has loaded it. */
	void *library = open_library(LIBRARY_ALL, RTLD_NOLOAD);

	if (!library)
		library = open_library(wants_eal() ? LIBRARY_ALL : LIBRARY_ATTACHED, 0);
	if (!library)
		give_up(dlerror());
	implementation = dlsym(library, "uroce_implementation");
	if (!is_of_this_build(implementation))
		give_up("the libraries beside libibverbs.so.1 are of another version: install them "
			"again, or start the program again if they were replaced meanwhile");
	if (secure_getenv("UROCE_INJECT"))
		implementation = implementation->injecting();
	__atomic_store_n(&chosen, implementation, __ATOMIC_RELEASE);
	errno = saved_errno;
	return implementation;
}

static const struct implementation *get(void)
{
	const struct implementation *implementation = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);

	return likely(implementation) ? implementation : choose();
}

#define CALL(type, function, parameters, arguments) \
	type function parameters                    \
	{                                           \
		return get()->function arguments;   \
	}
#include "inject/calls.def"

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	return get()->get_device_list(__builtin_return_address(0), num_devices);
}

const struct cm_private *uroce_private_cm(uint32_t version)
{
	return get()->private_cm(version);
}

bool uroce_private_has(const void *address)
{
	const struct implementation *implementation = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
	const char *at = address;

	return implementation && at >= implementation->begin && at < implementation->end;
}

/* The functions behind uroce/inject.h. */

int uroce_inject_add(const char *rule)
{
	return get()->inject_add(rule);
}

int uroce_inject_remove(int rule)
{
	return get()->inject_end(rule);
}

int64_t uroce_inject_count(int rule)
{
	return get()->inject_count(rule);
}
