/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes running programs: their congestion control, the level of their messages. */
#ifndef CTL_CHANGE_H
#define CTL_CHANGE_H

#include <stddef.h>

#include "command.h"

/** Give the command's changes to each process that its filter selects. `error` is empty if all of
 * them have done them. */
void change_give(const struct report_devices *devices, const struct command *command, char *error,
		 size_t error_size);

#endif
