/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of uroced. */
#ifndef UROCED_OPTIONS_H
#define UROCED_OPTIONS_H

#include <stddef.h>

#include "config/settings.h"

enum options_result {
	OPTIONS_RUN,	 /* settings are set */
	OPTIONS_REPLACE, /* the same, in place of the uroced at settings.socket */
	OPTIONS_STATUS,	 /* print the status of the uroced at settings.socket */
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_BAD, /* error is set */
};

/* Settings that only the configuration file can have. */
struct options_tenants {
	const char *file; /* NULL: none was read */
	struct tenant_settings list[TENANT_SETTINGS_MAX];
	size_t count;
};

/**
 * Read the command line and the configuration file that goes with it. Not MT-safe (getopt).
 *
 * @param settings
 *   Room for SETTINGS_PORTS_MAX ports; all have the same socket, limits and log level.
 * @param count
 *   Set to the number of ports.
 * @param tenants
 *   Set to the tenants of the file.
 * @param default_file
 *   The configuration file to read if it exists and the command line names neither a file nor a
 * port.
 */
enum options_result options_parse(int argc, char **argv, const char *default_file,
				  struct settings *settings, size_t *count,
				  struct options_tenants *tenants, char *error, size_t error_size);

/**
 * Name the settings that only uroce-run uses. A file may be for both programs, so uroced accepts
 * them, and warns that they have no effect here.
 *
 * @param names
 *   Set to the settings' names, separated by commas; "" if there are none.
 */
void options_name_idle(const struct settings *settings, char *names, size_t size);

/** Return the settings of the port whose device has this name, or NULL. */
const struct settings *options_find_port(const struct settings *ports, size_t count,
					 const char *name);

/**
 * Name the settings that differ and that a running uroced cannot change.
 *
 * @param names
 *   Set to the settings' names, separated by commas, and "a new section [port]" if a device is new;
 *   "" if there are none.
 */
void options_name_fixed(const struct settings *before, size_t before_count,
			const struct settings *now, size_t now_count, char *names, size_t size);

/** The text of --help. */
extern const char options_help[];

#endif
