/* SPDX-License-Identifier: BSD-3-Clause */
/* What EAL is started with: memory, the one device that it shall look for, an lcore that pins
 * nobody. */
#ifndef EAL_ARGS_H
#define EAL_ARGS_H

#include <stdbool.h>

#include "config/devargs.h"
#include "eal/runtime.h"

#define EAL_ARGS_MAX 32

struct eal_args {
	char text[EAL_ARGS_MAX][DEVARGS_TEXT_MAX + DEVARGS_NAME_MAX];
	char *argv[EAL_ARGS_MAX];
	int argc;
};

/* What the memory is to be taken from. */
enum eal_pages {
	EAL_PAGES_PLAIN, /* and at the start */
	EAL_PAGES_HUGE,
	EAL_PAGES_2_MIB, /* enough of these are free: larger ones are left to the program */
};

/** All but the lcore. */
void eal_args_make(struct eal_args *args, const struct runtime_config *config,
		   enum eal_pages pages);

/**
 * One lcore that may run on every CPU that the caller may: so EAL has nobody to pin, and its own
 * threads stay as free as the program's. May change the caller's affinity.
 */
void eal_args_add_lcore(struct eal_args *args);

#endif
