/* SPDX-License-Identifier: BSD-3-Clause */
/* The command capture. */
#ifndef CTL_CAPTURE_H
#define CTL_CAPTURE_H

#include <stddef.h>

#include "capture_plan.h"

/** Execute the tool that captures. Returns only if it cannot, with `error`. */
void capture_run(const struct report_devices *devices, const struct capture_want *want, char *error,
		 size_t error_size);

#endif
