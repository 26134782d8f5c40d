/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a failing program smaller, while it fails in the same way. */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include <stdint.h>

#include "supervise.h"

/**
 * Find a smaller variant of a program that failed, by running others in children for up to a
 * minute.
 *
 * @param status
 *   How the failed program's process ended, as waitpid has it.
 * @param variant
 *   Set to the smallest that was found.
 * @return
 *   How many programs were tried.
 */
unsigned int shrink(const struct options *options, const struct report *failure, int status,
		    struct variant *variant);

#endif
