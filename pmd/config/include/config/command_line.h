/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings from a command line, which wins over the file that was read before. */
#ifndef CONFIG_COMMAND_LINE_H
#define CONFIG_COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/settings.h"

/** Begin a scan by getopt_long anew; it prints nothing. Not MT-safe (getopt). */
void command_line_rewind(void);

/**
 * A port on the command line takes the place of the file's, and addresses go with their port. Call
 * between file and command line. Not MT-safe.
 *
 * @param netdev, port, ip
 *   Which of these settings the command line has; `ip` also stands for an interface of the kernel's
 *   to take the addresses from.
 */
void command_line_make_way(struct settings *settings, bool netdev, bool port, bool ip);

/**
 * Set what the command line sets: each option whose code is at most `last_setting` has a setting's
 * name. Not MT-safe (getopt).
 *
 * @return
 *   0 or -errno; then `error` says why.
 */
int command_line_apply(int argc, char **argv, const char *short_options,
		       const struct option *long_options, int last_setting,
		       struct settings *settings, char *error, size_t error_size);

#endif
