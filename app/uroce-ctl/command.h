/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of uroce-ctl. */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl_show.h"

enum command_object {
	COMMAND_DEV,
	COMMAND_LINK,
	COMMAND_RESOURCE,
	COMMAND_STATISTIC,
	COMMAND_TOP,
	COMMAND_HELP,
	COMMAND_VERSION,
};

struct command {
	enum command_object object;
	int kind; /* COMMAND_RESOURCE: enum report_kind, or -1 to count each kind */
	bool json;
	unsigned int ms; /* COMMAND_TOP */
	uint32_t rounds; /* COMMAND_TOP; 0: without end */
	struct show_filter filter;
	char device[64]; /* filter.device points here */
};

/** Parse the command line. Returns false with `error` if it is invalid. Not MT-safe (getopt). */
bool command_parse(int argc, char **argv, struct command *command, char *error, size_t error_size);

/** The text of --help. */
extern const char command_help[];

#endif
