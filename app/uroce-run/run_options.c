/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of uroce-run. The configuration file is read first; the command line overrides
 * it. */
#include "run_options.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/command_line.h"

const char options_help[] =
	"Usage: uroce-run [--netdev IFACE | --port DEVARGS --ip ADDR/LEN... | --socket PATH | "
	"--isolated]\n"
	"                 [OPTION...] [--] PROGRAM [ARG...]\n"
	"\n"
	"Run PROGRAM, an unmodified RDMA program, with an RDMA device on a network port.\n"
	"\n"
	"  --netdev IFACE     a kernel interface; its addresses and MTU are used\n"
	"  --port DEVARGS     a DPDK device: its driver's name and arguments, or a PCI address\n"
	"  --ip ADDR/LEN      an address of --port, IPv4 or IPv6; may be repeated\n"
	"                     (ADDR/LEN@VID: in that 802.1Q VLAN)\n"
	"  --socket PATH      the port of the uroced that listens there\n"
	"                     (default, where no port is named: " SETTINGS_DEFAULT_SOCKET ")\n"
	"  --isolated[=PATH]  the same without sharing memory: for programs that are not trusted\n"
	"                     (default: " SETTINGS_DEFAULT_ISOLATED ")\n"
	"  --name NAME        the RDMA device's name (default: uroce0)\n"
	"  --mtu N            largest IP packet in bytes (default: the port's own)\n"
	"  --progress MODE    who moves packets: hybrid (default), inline or dedicated\n"
	"  --telemetry yes|no DPDK's telemetry socket, with /uroce/... (default: no)\n"
	"  --file-prefix NAME DPDK's name for its files, as telemetry's socket (default: rte)\n"
	"  --secondary N      --port is of the DPDK primary with --file-prefix: use its queues N\n"
	"  --log-level LEVEL  what is printed on stderr: error, warn (default), info or debug\n"
	"  --without LIST     do without some optimisations, to see what each brings\n"
	"                     (names, separated by commas: see the manual page)\n"
	"  --config FILE      read these settings from FILE first\n"
	"                     (default: " SETTINGS_DEFAULT_FILE ", where no port is named and no\n"
	"                     uroced runs)\n"
	"  --help, --version\n"
	"\n"
	"Examples:\n"
	"  uroce-run --netdev eth1 -- ibv_devinfo\n"
	"  uroce-run --port net_memif0,socket=/run/x.sock,role=server --ip 10.0.0.1/24 -- "
	"ib_write_bw\n";

enum {
	CODE_NETDEV = 256,
	CODE_PORT,
	CODE_IP,
	CODE_SOCKET,
	CODE_ISOLATED,
	CODE_OTHER_SETTING,
	CODE_CONFIG,
	CODE_HELP,
	CODE_VERSION,
};

/* Options up to CODE_OTHER_SETTING have the names of settings. */
static const struct option long_options[] = {
	{"netdev", required_argument, NULL, CODE_NETDEV},
	{"port", required_argument, NULL, CODE_PORT},
	{"ip", required_argument, NULL, CODE_IP},
	{"socket", required_argument, NULL, CODE_SOCKET},
	{"isolated", optional_argument, NULL, CODE_ISOLATED},
	{"name", required_argument, NULL, CODE_OTHER_SETTING},
	{"mtu", required_argument, NULL, CODE_OTHER_SETTING},
	{"progress", required_argument, NULL, CODE_OTHER_SETTING},
	{"telemetry", required_argument, NULL, CODE_OTHER_SETTING},
	{"file-prefix", required_argument, NULL, CODE_OTHER_SETTING},
	{"secondary", required_argument, NULL, CODE_OTHER_SETTING},
	{"log-level", required_argument, NULL, CODE_OTHER_SETTING},
	{"without", required_argument, NULL, CODE_OTHER_SETTING},
	{"config", required_argument, NULL, CODE_CONFIG},
	{"help", no_argument, NULL, CODE_HELP},
	{"version", no_argument, NULL, CODE_VERSION},
	{NULL, 0, NULL, 0},
};

/* Results of the first pass over the command line. */
struct overview {
	const char *config;
	bool has_netdev;
	bool has_port;
	bool has_ip;
	bool has_socket;
	bool has_isolated;
	int program; /* index of PROGRAM */
};

/* The '+' stops getopt at PROGRAM, because the options after it belong to PROGRAM. */
static const char short_options[] = "+:";

/* Report an unknown option. getopt sets only optopt for an unknown short option. */
static void options_say_unknown(char **argv, char *error, size_t error_size)
{
	const char letter[] = {'-', (char)optopt, '\0'};
	const bool is_short = optopt > 0 && optopt < CODE_NETDEV;

	snprintf(error, error_size, "unknown or ambiguous option '%s'; see --help",
		 is_short ? letter : argv[optind - 1]);
}

static enum options_result options_survey(int argc, char **argv, struct overview *overview,
					  char *error, size_t error_size)
{
	int code;

	command_line_rewind();
	while ((code = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		switch (code) {
		case CODE_NETDEV:
			overview->has_netdev = true;
			break;
		case CODE_PORT:
			overview->has_port = true;
			break;
		case CODE_IP:
			overview->has_ip = true;
			break;
		case CODE_SOCKET:
			overview->has_socket = true;
			break;
		case CODE_ISOLATED:
			overview->has_isolated = true;
			break;
		case CODE_CONFIG:
			overview->config = optarg;
			break;
		case CODE_HELP:
			return OPTIONS_HELP;
		case CODE_VERSION:
			return OPTIONS_VERSION;
		case ':':
			snprintf(error, error_size, "%s needs a value; see --help",
				 argv[optind - 1]);
			return OPTIONS_BAD;
		case '?':
			options_say_unknown(argv, error, error_size);
			return OPTIONS_BAD;
		default:
			break;
		}
	}
	overview->program = optind;
	return OPTIONS_RUN;
}

static bool options_read_file(const struct overview *overview, const char *default_file,
			      const char *default_socket, struct settings *settings, char *error,
			      size_t error_size)
{
	const char *path = overview->config;

	if (path == NULL) {
		if (overview->has_netdev || overview->has_port || overview->has_socket ||
		    overview->has_isolated)
			return true;
		/* uroced reads the same file. While uroced runs, it owns that port, so attach to
		 * uroced instead. */
		if (access(default_socket, F_OK) == 0)
			return settings_set(settings, "socket", default_socket, error,
					    error_size) == 0;
		if (access(default_file, F_OK) != 0)
			return true;
		path = default_file;
	}
	return settings_read_file(settings, path, error, error_size) == 0;
}

/* Clear settings of the file that the command line replaces. The port of uroced replaces any other
 * port, and has its own addresses and MTU. */
static void options_make_way(const struct overview *overview, struct settings *settings)
{
	const bool attach = overview->has_socket || overview->has_isolated;

	command_line_make_way(settings, overview->has_netdev || attach,
			      overview->has_port || attach, overview->has_ip);
	if (attach)
		settings->mtu = 0;
	if (overview->has_socket)
		settings->isolated[0] = '\0';
}

enum options_result options_parse(int argc, char **argv, const char *default_file,
				  const char *default_socket, struct settings *settings,
				  char ***program, char *error, size_t error_size)
{
	struct overview overview = {0};
	enum options_result result;

	result = options_survey(argc, argv, &overview, error, error_size);
	if (result != OPTIONS_RUN)
		return result;
	if (overview.has_socket && overview.has_isolated) {
		snprintf(error, error_size,
			 "socket and isolated are two ways to attach; see --help");
		return OPTIONS_BAD;
	}
	settings_init(settings);
	if (!options_read_file(&overview, default_file, default_socket, settings, error,
			       error_size))
		return OPTIONS_BAD;
	options_make_way(&overview, settings);
	if (command_line_apply(argc, argv, short_options, long_options, CODE_OTHER_SETTING,
			       settings, error, error_size) < 0 ||
	    settings_check(settings, error, error_size) < 0)
		return OPTIONS_BAD;
	*program = argv + overview.program;
	if (**program == NULL) {
		snprintf(error, error_size, "no program to run; see --help");
		return OPTIONS_BAD;
	}
	return OPTIONS_RUN;
}
