/* SPDX-License-Identifier: BSD-3-Clause */
/* The live view. */
#ifndef TOP_H
#define TOP_H

#include <stdint.h>

#include "ctl_show.h"
#include "terminal.h"

/**
 * Show processes and queue pairs periodically until the user presses `q`.
 *
 * @param ms
 *   Interval between two rounds.
 * @param rounds
 *   Number of rounds; 0: no limit.
 * @return
 *   0 or -errno.
 */
int top_run(const struct report_filter *filter, const struct terminal *terminal, unsigned int ms,
	    uint32_t rounds);

#endif
