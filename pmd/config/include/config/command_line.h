/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings from a command line. They override those of the file, which is read before. */
#ifndef CONFIG_COMMAND_LINE_H
#define CONFIG_COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/settings.h"

/** Restart scanning with getopt_long, without its messages. Not MT-safe (getopt). */
void command_line_rewind(void);

/**
 * Explain in `error` why getopt_long refused the option that it read last: `code` is '?' or, where
 * the short options begin with ':', ':' for a missing value. Not MT-safe (getopt).
 *
 * @return
 *   true if `code` means a refusal; false leaves `error` as it was.
 */
bool command_line_refused(int code, char **argv, char *error, size_t error_size);

/** Explain in `error` that an argument stands where only options may. */
void command_line_no_option(const char *argument, char *error, size_t error_size);

/**
 * Remove the file's settings that the command line replaces: a port replaces the file's port, and
 * addresses belong to their port. Call it after the file and before the command line. Not MT-safe.
 *
 * @param netdev, port, ip
 *   True if the command line has this setting. `ip` also stands for a kernel interface from which
 *   the addresses are taken.
 */
void command_line_make_way(struct settings *settings, bool netdev, bool port, bool ip);

/**
 * Apply the command line's settings: each option whose code is at most `last_setting` has the name
 * of a setting. Not MT-safe (getopt).
 *
 * @return
 *   0 or -errno; then `error` says why.
 */
int command_line_apply(int argc, char **argv, const char *short_options,
		       const struct option *long_options, int last_setting,
		       struct settings *settings, char *error, size_t error_size);

#endif
