/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the two libraries, and looks up all their functions. */
#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "both.h"
#include "both/system.h"
#include "cm/private.h"
#include "jumps.h"

#define LIBRARY "libibverbs.so.1"

/* Where uroce's library is, seen from this one: if installed, and in a build tree. */
static const char *const our_dirs[] = {"..", "../verbs"};

struct both_calls both_ours, both_systems;
bool *both_systems_allow_disassociate;
static bool (*owns)(const struct ibv_device *device);

/* Functions of struct both_calls, by name. */
static const struct entry {
	const char *name;
	size_t offset;
} entries[] = {
/* clang-format off */
#define ENTRY(name) {#name, offsetof(struct both_calls, name)}
/* clang-format on */
#define CALL(type, name, device, parameters, arguments) ENTRY(name),
#define CALL_VOID(name, device, parameters, arguments)	ENTRY(name),
#include "calls.def"
#undef CALL
#undef CALL_VOID
	ENTRY(ibv_get_device_list), ENTRY(ibv_free_device_list), ENTRY(ibv_ack_async_event),
	ENTRY(ibv_import_device),   ENTRY(ibv_fork_init),	 ENTRY(ibv_is_fork_initialized),
};

const struct both_calls *both_calls_of(const struct ibv_device *device)
{
	return owns(device) ? &both_ours : &both_systems;
}

/* End the process: a program with half of its verbs would fail later and less clearly. */
static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "uroce: also-system: %s\n", what);
	exit(EXIT_FAILURE);
}

static void *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		fail(dlerror());
	return library;
}

static void *load_ours(void)
{
	char path[PATH_MAX];
	Dl_info self;
	int length;

	if (dladdr(&both_ours, &self) == 0 || !strrchr(self.dli_fname, '/'))
		fail("cannot tell where " LIBRARY " is");
	length = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
	for (size_t i = 0; i < RTE_DIM(our_dirs); i++) {
		if (snprintf(path, sizeof(path), "%.*s/%s/" LIBRARY, length, self.dli_fname,
			     our_dirs[i]) < (int)sizeof(path) &&
		    access(path, R_OK) == 0)
			return load(path);
	}
	fail("uroce's own " LIBRARY " is missing; build or install uroce again");
}

static void *find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		fail(dlerror());
	return symbol;
}

static void find_all(void *library, struct both_calls *calls)
{
	for (size_t i = 0; i < RTE_DIM(entries); i++)
		*(void **)((char *)calls + entries[i].offset) = find(library, entries[i].name);
}

static void __attribute__((constructor)) libraries_load(void)
{
	const char *path = secure_getenv(BOTH_SYSTEM_VARIABLE);
	const struct cm_private *private;
	void *ours, *systems;

	if (!path || path[0] != '/')
		fail(BOTH_SYSTEM_VARIABLE
		     " is not set; start the program by uroce-run --also-system");
	ours = load_ours();
	systems = load(path);
	find_all(ours, &both_ours);
	find_all(systems, &both_systems);
#define OURS(name)    jump_##name = find(ours, #name);
#define SYSTEMS(name) jump_##name = find(systems, #name);
#include "jumps.def"
	both_systems_allow_disassociate = find(systems, "verbs_allow_disassociate_destroy");
	private = uroce_private_cm(CM_PRIVATE_VERSION);
	if (!private)
		fail("this " LIBRARY " and uroce's are not of the same build");
	owns = private->owns;
}
