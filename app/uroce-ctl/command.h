/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of uroce-ctl. */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl_show.h"
#include "report/report_command.h"
#include "ctl_output.h"

#define COMMAND_CHANGES_MAX 32

enum command_object {
	COMMAND_DEV,
	COMMAND_LINK,
	COMMAND_RESOURCE,
	COMMAND_STATISTIC,
	COMMAND_TOP,
	COMMAND_MONITOR,
	COMMAND_METRICS,
	COMMAND_CAPTURE,
	COMMAND_CONGESTION,
	COMMAND_LOG,
	COMMAND_DOCTOR,
	COMMAND_CDI,
	COMMAND_WHY,
	COMMAND_HELP,
	COMMAND_VERSION,
};

struct command {
	enum command_object object;
	int kind;     /* COMMAND_RESOURCE: enum report_kind, or -1 to count each kind;
			 COMMAND_METRICS: REPORT_QP, or -1 */
	uint32_t qpn; /* COMMAND_CAPTURE, COMMAND_CONGESTION; 0: all */
	bool json;
	enum colour_when colour;
	unsigned int ms;    /* COMMAND_TOP, COMMAND_MONITOR */
	uint32_t count;	    /* COMMAND_TOP: views, COMMAND_MONITOR: lines, COMMAND_CAPTURE: packets;
			       0: without end */
	const char *file;   /* COMMAND_CAPTURE */
	const char *socket; /* COMMAND_CDI */
	/* COMMAND_CONGESTION, COMMAND_LOG: what to set, in this order; none: show */
	struct report_command changes[COMMAND_CHANGES_MAX];
	uint32_t change_count;
	struct report_filter filter;
	char device[64]; /* filter.device points here */
};

/** Parse the command line. Returns false with `error` if it is invalid. Not MT-safe (getopt). */
bool command_parse(int argc, char **argv, struct command *command, char *error, size_t error_size);

/** The text of --help. */
extern const char command_help[];

#endif
