/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of testroce. */
#ifndef TESTROCE_OPTIONS_H
#define TESTROCE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "plan.h"

enum options_result {
	OPTIONS_RUN,
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_BAD, /* error is set */
};

struct options {
	struct settings settings; /* of the port */
	struct plan plan;
	const char *listen;  /* "[ADDR:]PORT", or NULL */
	const char *connect; /* "ADDR[:PORT]"; with neither, both sides are in this process */
	bool interactive;
	bool has_size; /* --size was given, so the size does not follow the mode */
	bool once;     /* the server ends after its first client */
	bool pair;     /* both sides, in two processes; settings lack the port */
	bool stages;
	bool ablation;
	const char *sweep;   /* folder to write to, or NULL */
	unsigned int repeat; /* rounds of the ablation or the sweep, 1 to SPREAD_ROUNDS_MAX */
	const char *json;    /* file to write to, or NULL */
	uint64_t period_ns;  /* of --stats-period; 0: default */
};

/**
 * Read the command line. Not MT-safe (getopt).
 *
 * @param argc, argv
 *   argv[0], then the arguments after EAL's options.
 * @param default_socket
 *   The socket of uroced, to attach to if no port is given.
 */
enum options_result options_parse(int argc, char **argv, const char *default_socket,
				  struct options *options, char *error, size_t error_size);

/** Return the index of the "--" that ends EAL's options, 0 without EAL options. MT-safe. */
int options_eal_end(int argc, char **argv);

/** The text of --help. */
extern const char options_help[];

#endif
