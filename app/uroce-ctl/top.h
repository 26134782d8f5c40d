/* SPDX-License-Identifier: BSD-3-Clause */
/* The live view. */
#ifndef TOP_H
#define TOP_H

#include <stdint.h>

#include "ctl_show.h"

/**
 * Show processes and queue pairs, over and over, until `q` is pressed.
 *
 * @param ms
 *   Between two looks.
 * @param rounds
 *   How many; 0: without end.
 * @return
 *   0 or -errno.
 */
int top_run(const struct show_filter *filter, unsigned int ms, uint32_t rounds);

#endif
