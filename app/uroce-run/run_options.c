/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of uroce-run. The configuration file is read first; the command line overrides
 * it. */
#include "run_options.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/command_line.h"
#include "run_local.h"

const char options_help[] =
	"Usage: uroce-run [--netdev IFACE | --udp[=IFACE] | --port DEVARGS --ip ADDR/LEN... |\n"
	"                 --socket PATH | --isolated | --local[=N]]\n"
	"                 [OPTION...] [--] PROGRAM [ARG...]\n"
	"\n"
	"Run PROGRAM, an unmodified RDMA program, with an RDMA device on a network port.\n"
	"\n"
	"  --netdev IFACE     a kernel interface; its addresses and MTU are used\n"
	"  --udp[=IFACE]      the same by an ordinary UDP socket, which needs no privilege\n"
	"                     (default: the interface that leads to other networks)\n"
	"  --port DEVARGS     a DPDK device: its driver's name and arguments, or a PCI address\n"
	"  --ip ADDR/LEN      an address of --port, IPv4 or IPv6; may be repeated\n"
	"                     (ADDR/LEN@VID: in that 802.1Q VLAN)\n"
	"  --gateway ADDR     the router of --port to all other networks\n"
	"  --route \"PREFIX/LEN via ADDR\"\n"
	"                     the router to one network; may be repeated\n"
	"  --socket PATH      the port of the uroced that listens there\n"
	"                     (default, if no port is named: " SETTINGS_DEFAULT_SOCKET ")\n"
	"  --isolated[=PATH]  the same without shared memory, for untrusted programs\n"
	"                     (default: " SETTINGS_DEFAULT_ISOLATED ")\n"
	"  --local[=N]        a private network of all that PROGRAM starts, with N devices\n"
	"                     (default: 1); needs no uroced, port, privilege or huge pages\n"
	"                     then\n"
	"  --impair ARGS      damage packets on purpose, as a bad network does: loss=0.01 loses 1 "
	"%\n"
	"                     (all arguments: see the manual page)\n"
	"  --name NAME        the RDMA device's name (default: uroce0)\n"
	"  --mtu N            the largest IP packet in bytes (default: the port's maximum)\n"
	"  --cc ALGORITHM     congestion control: none, dcqcn (the network marks packets) or "
	"swift\n"
	"                     (by delay); default: uroced's, or none\n"
	"  --engines N|auto   engines of the device, so that as many threads can move packets at "
	"a\n"
	"                     time (default: 1; auto: one for each CPU)\n"
	"  --progress MODE    the threads that move packets: hybrid (default), inline\n"
	"                     or dedicated\n"
	"  --explain[=yes|no] say on stderr why calls, connects and queue pairs fail\n"
	"  --inject RULES     let calls and work requests fail, and raise events:\n"
	"                     'call=ibv_reg_mr,errno=ENOMEM;op=write,status=retry_exc_err' (see\n"
	"                     the manual page)\n"
	"  --like DEVICE      have only what DEVICE has, and refuse as its driver does: "
	"connectx-6,\n"
	"                     irdma, bnxt, erdma or rxe\n"
	"  --unfold SEED      choose by SEED what the specification leaves open: the order of\n"
	"                     completions, events, retries; FIRST..LAST runs PROGRAM with each\n"
	"  --check[=yes|error|no]\n"
	"                     say on stderr which mistakes of the program do no harm here, and do\n"
	"                     elsewhere; error: it then ends with exit status 66\n"
	"  --check-suppress FILE\n"
	"                     what --check does not say: see the manual page\n"
	"  --telemetry yes|no DPDK's telemetry socket, with /uroce/... (default: no)\n"
	"  --sack auto|yes|no tell peers that are uroce which packets came behind a lost one:\n"
	"                     auto (default) once they have introduced themselves, yes from\n"
	"                     the first packet on\n"
	"  --eal OPTIONS      further options of DPDK's EAL, in one argument\n"
	"  --file-prefix NAME DPDK's name for the process's files (default: rte)\n"
	"  --secondary N      use queue N of --port, which belongs to the DPDK application\n"
	"                     that runs with --file-prefix\n"
	"  --view WAY         show the device in /sys/class/infiniband and /dev/infiniband: yes\n"
	"                     (default), mount or preload (only in that way), or no\n"
	"  --log-level LEVEL  the least important messages on stderr: error, warn\n"
	"                     (default), info or debug\n"
	"  --stores WAY       how long packets are stored in memory that another CPU reads:\n"
	"                     auto (default: as measured), round or past-caches\n"
	"  --without LIST     switch off optimisations, to measure what each gains\n"
	"                     (names, separated by commas: see the manual page)\n"
	"  --config FILE      read these settings from FILE first\n"
	"                     (default: " SETTINGS_DEFAULT_FILE
	", if no port is named and no uroced\n"
	"                     runs)\n"
	"  --help, --version\n"
	"\n"
	"Examples:\n"
	"  uroce-run --local -- ctest\n"
	"  uroce-run --netdev eth1 -- ibv_devinfo\n"
	"  uroce-run --port net_memif0,socket=/run/x.sock,role=server --ip 10.0.0.1/24 -- "
	"ib_write_bw\n";

enum {
	CODE_NETDEV = 256,
	CODE_UDP,
	CODE_PORT,
	CODE_IP,
	CODE_SOCKET,
	CODE_ISOLATED,
	CODE_OTHER_SETTING,
	CODE_LOCAL,
	CODE_CONFIG,
	CODE_HELP,
	CODE_VERSION,
};

/* Options up to CODE_OTHER_SETTING have the names of settings. */
static const struct option long_options[] = {
	{"netdev", required_argument, NULL, CODE_NETDEV},
	{"udp", optional_argument, NULL, CODE_UDP},
	{"port", required_argument, NULL, CODE_PORT},
	{"ip", required_argument, NULL, CODE_IP},
	{"gateway", required_argument, NULL, CODE_OTHER_SETTING},
	{"route", required_argument, NULL, CODE_OTHER_SETTING},
	{"socket", required_argument, NULL, CODE_SOCKET},
	{"isolated", optional_argument, NULL, CODE_ISOLATED},
	{"impair", required_argument, NULL, CODE_OTHER_SETTING},
	{"name", required_argument, NULL, CODE_OTHER_SETTING},
	{"mtu", required_argument, NULL, CODE_OTHER_SETTING},
	{"engines", required_argument, NULL, CODE_OTHER_SETTING},
	{"cc", required_argument, NULL, CODE_OTHER_SETTING},
	{"progress", required_argument, NULL, CODE_OTHER_SETTING},
	{"explain", optional_argument, NULL, CODE_OTHER_SETTING},
	{"inject", required_argument, NULL, CODE_OTHER_SETTING},
	{"like", required_argument, NULL, CODE_OTHER_SETTING},
	{"unfold", required_argument, NULL, CODE_OTHER_SETTING},
	{"check", optional_argument, NULL, CODE_OTHER_SETTING},
	{"check-suppress", required_argument, NULL, CODE_OTHER_SETTING},
	{"telemetry", required_argument, NULL, CODE_OTHER_SETTING},
	{"sack", required_argument, NULL, CODE_OTHER_SETTING},
	{"stores", required_argument, NULL, CODE_OTHER_SETTING},
	{"eal", required_argument, NULL, CODE_OTHER_SETTING},
	{"file-prefix", required_argument, NULL, CODE_OTHER_SETTING},
	{"secondary", required_argument, NULL, CODE_OTHER_SETTING},
	{"view", required_argument, NULL, CODE_OTHER_SETTING},
	{"log-level", required_argument, NULL, CODE_OTHER_SETTING},
	{"without", required_argument, NULL, CODE_OTHER_SETTING},
	{"local", optional_argument, NULL, CODE_LOCAL},
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
	uint32_t local; /* number of devices; 0: no --local */
	int program;	/* index of PROGRAM */
};

/* The '+' stops getopt at PROGRAM, because the options after it belong to PROGRAM. */
static const char short_options[] = "+:";

static bool options_read_local(const char *text, uint32_t *devices)
{
	char *end;
	unsigned long count;

	if (!text) {
		*devices = 1;
		return true;
	}
	count = isdigit((unsigned char)text[0]) ? strtoul(text, &end, 10) : 0;
	if (count < 1 || count > LOCAL_DEVICES_MAX || *end != '\0')
		return false;
	*devices = (uint32_t)count;
	return true;
}

static enum options_result options_survey(int argc, char **argv, struct overview *overview,
					  char *error, size_t error_size)
{
	int code;

	command_line_rewind();
	while ((code = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		overview->has_netdev |= code == CODE_NETDEV || code == CODE_UDP;
		overview->has_port |= code == CODE_PORT;
		overview->has_ip |= code == CODE_IP;
		overview->has_socket |= code == CODE_SOCKET;
		overview->has_isolated |= code == CODE_ISOLATED;
		if (code == CODE_CONFIG)
			overview->config = optarg;
		if (code == CODE_HELP)
			return OPTIONS_HELP;
		if (code == CODE_VERSION)
			return OPTIONS_VERSION;
		if (command_line_refused(code, argv, error, error_size))
			return OPTIONS_BAD;
		if (code == CODE_LOCAL && !options_read_local(optarg, &overview->local)) {
			snprintf(error, error_size, "local: '%s' is no number of devices, 1 to %d",
				 optarg, LOCAL_DEVICES_MAX);
			return OPTIONS_BAD;
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
		    overview->has_isolated || overview->local > 0)
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
	const bool attach = overview->has_socket || overview->has_isolated || overview->local > 0;

	command_line_make_way(settings, overview->has_netdev || attach,
			      overview->has_port || attach, overview->has_ip);
	if (attach) {
		settings->mtu = 0;
		settings->eal[0] = '\0';
	}
	if (overview->has_socket || overview->local > 0)
		settings->isolated[0] = '\0';
	/* The private uroced has another path, which is known when its directory has been made. */
	if (overview->local > 0)
		snprintf(settings->socket, sizeof(settings->socket), "%s", SETTINGS_DEFAULT_SOCKET);
}

/* Check that the options do not contradict --local. */
static bool options_suit_local(const struct overview *overview, const struct settings *settings,
			       char *error, size_t error_size)
{
	if (overview->local == 0)
		return true;
	if (overview->has_netdev || overview->has_port || overview->has_socket ||
	    overview->has_isolated)
		snprintf(error, error_size,
			 "local has a port of its own; leave out netdev, udp, port, socket and "
			 "isolated");
	else if (overview->local > 1 && strcmp(settings->name, SETTINGS_DEFAULT_NAME) != 0)
		snprintf(error, error_size, "name: several devices are called uroce0, uroce1, ...");
	else
		return true;
	return false;
}

enum options_result options_parse(int argc, char **argv, const char *default_file,
				  const char *default_socket, struct settings *settings,
				  struct run_request *request, char *error, size_t error_size)
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
	    !options_suit_local(&overview, settings, error, error_size) ||
	    settings_check(settings, error, error_size) < 0)
		return OPTIONS_BAD;
	*request = (struct run_request){
		.local = overview.local,
		.program = argv + overview.program,
	};
	if (*request->program == NULL) {
		snprintf(error, error_size, "no program to run; see --help");
		return OPTIONS_BAD;
	}
	return OPTIONS_RUN;
}
