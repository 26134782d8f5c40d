/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's arguments: its memory, the devices that it probes, and an lcore that pins no thread. */
#ifndef EAL_ARGS_H
#define EAL_ARGS_H

#include <stdbool.h>

#include "config/devargs.h"
#include "eal/runtime.h"

#define EAL_ARGS_MAX 64 /* SETTINGS_EAL_WORDS_MAX are the user's */

struct eal_args {
	char text[EAL_ARGS_MAX][DEVARGS_TEXT_MAX + DEVARGS_NAME_MAX];
	char *argv[EAL_ARGS_MAX];
	int argc;
};

/* The kind of pages for EAL's memory. */
enum eal_pages {
	EAL_PAGES_PLAIN, /* allocated when EAL starts */
	EAL_PAGES_HUGE,
	EAL_PAGES_2_MIB, /* enough pages of 2 MiB are free, so leave larger ones to the program */
};

/** Make all arguments except the lcore. */
void eal_args_make(struct eal_args *args, const struct runtime_config *config,
		   enum eal_pages pages);

/**
 * Add one lcore that may run on every CPU that the caller may use. So EAL pins no thread, and EAL's
 * threads may run on the same CPUs as the program's. May change the caller's affinity.
 */
void eal_args_add_lcore(struct eal_args *args);

#endif
