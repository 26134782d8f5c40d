/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes congestion control of running programs. */
#ifndef CTL_CONGESTION_H
#define CTL_CONGESTION_H

#include <stddef.h>

#include "command.h"

/** Set what the command says in each process that its filter selects. `error` is empty if all of
 * them have done it. */
void congestion_set(const struct report_devices *devices, const struct command *command,
		    char *error, size_t error_size);

#endif
