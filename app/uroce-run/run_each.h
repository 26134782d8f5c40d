/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a command once for each call that can fail (--inject every=call). */
#ifndef UROCE_RUN_EACH_H
#define UROCE_RUN_EACH_H

#include "config/settings.h"

/** Return the errno value with which each call is to fail; 0: the settings do not ask for it.
 * MT-safe. */
int each_error(const struct settings *settings);

/**
 * Run the command as it is, and then again and again: in the Nth run its Nth call fails. Stop after
 * a run in which no call was left. Print a line for each run. Not MT-safe.
 *
 * @param program
 *   Where the command begins in argv.
 * @return
 *   The exit status: 0, or 1 if a run crashed or hung.
 */
int each_run(char **argv, char **program, int error);

#endif
