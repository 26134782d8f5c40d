/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a program that fails smaller, as long as it fails in the same way. */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include <stdint.h>

#include "supervise.h"

/**
 * Find a smaller variant of the program that a report tells of. Its children run for a while, so
 * long that it is worth it; not in the process of a program.
 *
 * @param variant
 *   Set to the smallest that was found.
 * @return
 *   How many programs were tried.
 */
unsigned int shrink(const struct options *options, const struct report *failure, int status,
		    struct variant *variant);

#endif
