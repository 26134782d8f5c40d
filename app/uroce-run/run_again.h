/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the command again and again, in processes of their own: once for each call that can fail
 * (--inject every=call), or once for each seed (--unfold FIRST..LAST). */
#ifndef RUN_AGAIN_H
#define RUN_AGAIN_H

#include <stdbool.h>

#include "config/settings.h"

/** Return true if the settings ask for more than one run. MT-safe. */
bool again_wanted(const struct settings *settings);

/**
 * Run the command as often as the settings say, and print what each run has done. Not MT-safe.
 *
 * @param program
 *   Where the command begins in argv.
 * @return
 *   The exit status: 0, or 1 if a run failed; with --inject, if one crashed or hung.
 */
int again_run(char **argv, char **program, const struct settings *settings);

#endif
