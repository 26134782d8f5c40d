/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings from a command line. */
#include "config/command_line.h"

#include <limits.h>
#include <stdio.h>

void command_line_rewind(void)
{
	optind = 0; /* not 1: with 0 glibc also forgets the state of the last scan */
	opterr = 0;
}

bool command_line_refused(int code, char **argv, char *error, size_t error_size)
{
	/* optopt is the letter of an unknown short option. It is 0 for an unknown long option, and
	 * above UCHAR_MAX, as every code of ours, for a long option that has a wrong value. */
	const char letter[] = {'-', (char)optopt, '\0'};
	const bool is_short = optopt > 0 && optopt <= UCHAR_MAX;

	if (code == ':')
		snprintf(error, error_size, "%s needs a value; see --help", argv[optind - 1]);
	else if (code == '?')
		snprintf(error, error_size, "unknown or ambiguous option '%s'; see --help",
			 is_short ? letter : argv[optind - 1]);
	else
		return false;
	return true;
}

void command_line_no_option(const char *argument, char *error, size_t error_size)
{
	snprintf(error, error_size, "'%s' is not an option; see --help", argument);
}

void command_line_make_way(struct settings *settings, bool netdev, bool port, bool ip)
{
	if (netdev)
		settings->port[0] = '\0';
	if (port)
		settings->netdev[0] = '\0';
	if (netdev || port)
		settings->udp = false;
	if (netdev || ip) {
		settings->ip_count = 0;
		settings->route_count = 0;
		settings->kernel[0] = '\0';
	}
}

int command_line_apply(int argc, char **argv, const char *short_options,
		       const struct option *long_options, int last_setting,
		       struct settings *settings, char *error, size_t error_size)
{
	int code, index, rc = 0;

	command_line_rewind();
	while (rc >= 0 &&
	       (code = getopt_long(argc, argv, short_options, long_options, &index)) != -1) {
		if (code <= last_setting)
			rc = settings_set(settings, long_options[index].name, optarg, error,
					  error_size);
	}
	return rc;
}
