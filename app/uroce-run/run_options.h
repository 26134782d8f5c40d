/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of uroce-run. */
#ifndef UROCE_RUN_OPTIONS_H
#define UROCE_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"

enum options_result {
	OPTIONS_RUN, /* settings and program are set */
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_BAD, /* error is set */
};

/* Requests of the command line that are no settings. */
struct run_request {
	uint32_t local; /* number of devices of a private network (run_local.h); 0: there is none */
	char **program; /* the program's own argv */
};

/**
 * Read the command line and the configuration file that goes with it. Not MT-safe (getopt).
 *
 * @param default_file
 *   The configuration file to read if it exists, the command line names neither a file nor a port,
 * and no uroced runs.
 * @param default_socket
 *   Path at which to look for uroced's socket.
 */
enum options_result options_parse(int argc, char **argv, const char *default_file,
				  const char *default_socket, struct settings *settings,
				  struct run_request *request, char *error, size_t error_size);

/** The text of --help. */
extern const char options_help[];

#endif
