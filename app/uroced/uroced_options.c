/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of uroced. The configuration file is read first; the command line overrides it.
 */
#include "uroced_options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "config/command_line.h"

const char options_help[] =
	"Usage: uroced [--netdev IFACE | --udp[=IFACE] | --port DEVARGS {--ip ADDR/LEN... | "
	"--kernel IFACE}] "
	"[OPTION...]\n"
	"       uroced --status [--socket PATH]\n"
	"\n"
	"Share a network port between RDMA programs: uroce-run attaches them.\n"
	"\n"
	"  --netdev IFACE       a kernel interface; its addresses and MTU are used\n"
	"  --udp[=IFACE]        the same by an ordinary UDP socket, which needs no privilege\n"
	"                       (default: the interface that leads to other networks)\n"
	"  --port DEVARGS       a DPDK device: its driver's name and arguments\n"
	"  --ip ADDR/LEN        an address of --port, IPv4 or IPv6; may be repeated\n"
	"                       (ADDR/LEN@VID: in that 802.1Q VLAN)\n"
	"  --gateway ADDR       the router of --port to all other networks\n"
	"  --route \"PREFIX/LEN via ADDR\"\n"
	"                       the router to one network; may be repeated\n"
	"  --kernel IFACE       make a kernel interface of that name. It gets the frames of\n"
	"                       --port that are not RoCE; its addresses are used\n"
	"  --impair ARGS        damage packets on purpose, as a bad network does\n"
	"                       (see the manual page of uroce-run)\n"
	"  --mtu N              the largest IP packet in bytes (default: the port's maximum)\n"
	"  --socket PATH        the socket at which programs attach\n"
	"                       (default: " SETTINGS_DEFAULT_SOCKET ")\n"
	"  --socket-owner USER  the socket's owner,\n"
	"  --socket-group GROUP its group,\n"
	"  --socket-mode MODE   and its mode (default: 0660) decide who may attach\n"
	"  --isolated[=PATH]    also a socket for untrusted programs, which share no memory\n"
	"                       (default: none; PATH: " SETTINGS_DEFAULT_ISOLATED ")\n"
	"  --isolated-mode MODE the mode of that socket (default: 0666); its owner and group\n"
	"                       are those of the first one\n"
	"  --metrics[=PATH]     a socket that answers GET /metrics in the format of\n"
	"                       Prometheus (default: none; PATH: " SETTINGS_DEFAULT_METRICS ")\n"
	"  --max-qp N           limits of each program: queue pairs,\n"
	"  --max-memory BYTES   registered memory (K, M, G and T may follow),\n"
	"  --max-buffers N      and packet buffers, 768 to 1536\n"
	"  --cc ALGORITHM       congestion control of programs that choose none: none\n"
	"                       (default), dcqcn or swift (see the manual page of uroce-run)\n"
	"  --capture WHAT       packets that dpdk-dumpcap may capture: no (default), port,\n"
	"                       or all (also those between programs, which then pass\n"
	"                       through uroced)\n"
	"  --eal OPTIONS        further options of DPDK's EAL, in one argument\n"
	"  --file-prefix NAME   DPDK's name for the process's files "
	"(default: " SETTINGS_DEFAULT_PREFIX ")\n"
	"  --hand-over HOW      the path of packets between attached programs: direct\n"
	"                       (default: not through uroced, no ICRC), checked (the same\n"
	"                       with ICRC) or owner (through uroced, with ICRC)\n"
	"  --uplink HOW         the path of packets between attached programs and --netdev:\n"
	"                       socket (default: each program has a packet socket of its\n"
	"                       own, if it can) or ring (through uroced)\n"
	"  --log-level LEVEL    the least important messages on stderr: error, warn\n"
	"                       (default), info or debug\n"
	"  --config FILE        read these settings from FILE first\n"
	"                       (default: " SETTINGS_DEFAULT_FILE ", if no port is named)\n"
	"  --replace            take the place of the uroced at --socket: its programs go on\n"
	"  --status             print the state of a running uroced and its programs as JSON\n"
	"  --help, --version\n";

enum {
	CODE_NETDEV = 256,
	CODE_UDP,
	CODE_PORT,
	CODE_IP,
	CODE_KERNEL,
	CODE_OTHER_SETTING,
	CODE_CONFIG,
	CODE_REPLACE,
	CODE_STATUS,
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
	{"kernel", required_argument, NULL, CODE_KERNEL},
	{"impair", required_argument, NULL, CODE_OTHER_SETTING},
	{"mtu", required_argument, NULL, CODE_OTHER_SETTING},
	{"socket", required_argument, NULL, CODE_OTHER_SETTING},
	{"socket-owner", required_argument, NULL, CODE_OTHER_SETTING},
	{"socket-group", required_argument, NULL, CODE_OTHER_SETTING},
	{"socket-mode", required_argument, NULL, CODE_OTHER_SETTING},
	{"isolated", optional_argument, NULL, CODE_OTHER_SETTING},
	{"isolated-mode", required_argument, NULL, CODE_OTHER_SETTING},
	{"metrics", optional_argument, NULL, CODE_OTHER_SETTING},
	{"max-qp", required_argument, NULL, CODE_OTHER_SETTING},
	{"max-memory", required_argument, NULL, CODE_OTHER_SETTING},
	{"max-buffers", required_argument, NULL, CODE_OTHER_SETTING},
	{"cc", required_argument, NULL, CODE_OTHER_SETTING},
	{"capture", required_argument, NULL, CODE_OTHER_SETTING},
	{"eal", required_argument, NULL, CODE_OTHER_SETTING},
	{"file-prefix", required_argument, NULL, CODE_OTHER_SETTING},
	{"hand-over", required_argument, NULL, CODE_OTHER_SETTING},
	{"uplink", required_argument, NULL, CODE_OTHER_SETTING},
	{"log-level", required_argument, NULL, CODE_OTHER_SETTING},
	{"config", required_argument, NULL, CODE_CONFIG},
	{"replace", no_argument, NULL, CODE_REPLACE},
	{"status", no_argument, NULL, CODE_STATUS},
	{"help", no_argument, NULL, CODE_HELP},
	{"version", no_argument, NULL, CODE_VERSION},
	{NULL, 0, NULL, 0},
};

/* Settings that a file may contain because uroce-run uses them. They have no effect in uroced. */
static const char *const idle_settings[] = {
	"check", "check-suppress", "engines",	"explain", "inject", "like",   "progress",
	"sack",	 "stores",	   "telemetry", "unfold",  "view",   "without"};

/* Settings that a running uroced cannot change. */
static const char *const fixed_settings[] = {
	"netdev",   "udp",	     "port",	     "impair",	     "kernel",
	"mtu",	    "socket",	     "socket-owner", "socket-group", "socket-mode",
	"isolated", "isolated-mode", "metrics",	     "hand-over",    "uplink",
	"capture",  "file-prefix",   "max-buffers",  "eal",
};

/* Results of the first pass over the command line. */
struct overview {
	const char *config;
	bool has_netdev, has_port, has_ip, has_kernel;
	bool replace, status;
};

static enum options_result options_survey(int argc, char **argv, struct overview *overview,
					  char *error, size_t error_size)
{
	int code;

	command_line_rewind();
	while ((code = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		overview->has_netdev |= code == CODE_NETDEV || code == CODE_UDP;
		overview->has_port |= code == CODE_PORT;
		overview->has_ip |= code == CODE_IP;
		overview->has_kernel |= code == CODE_KERNEL;
		overview->replace |= code == CODE_REPLACE;
		overview->status |= code == CODE_STATUS;
		if (code == CODE_CONFIG)
			overview->config = optarg;
		if (code == CODE_HELP)
			return OPTIONS_HELP;
		if (code == CODE_VERSION)
			return OPTIONS_VERSION;
		if (command_line_refused(code, argv, error, error_size))
			return OPTIONS_BAD;
	}
	if (optind < argc) {
		command_line_no_option(argv[optind], error, error_size);
		return OPTIONS_BAD;
	}
	if (overview->status)
		return OPTIONS_STATUS;
	return overview->replace ? OPTIONS_REPLACE : OPTIONS_RUN;
}

static bool options_read_file(struct overview *overview, const char *default_file,
			      struct settings *settings, char *error, size_t error_size)
{
	if (overview->config == NULL) {
		if (overview->has_netdev || overview->has_port || access(default_file, F_OK) != 0)
			return true;
		overview->config = default_file;
	}
	return settings_read_file(settings, overview->config, error, error_size) == 0;
}

static bool options_read_tenants(const struct overview *overview, struct options_tenants *tenants,
				 char *error, size_t error_size)
{
	int count = 0;

	if (overview->config != NULL)
		count = tenant_read_file(overview->config, tenants->list, TENANT_SETTINGS_MAX,
					 error, error_size);
	tenants->count = (size_t)RTE_MAX(count, 0);
	return count >= 0;
}

/* A UDP socket has RoCE's UDP port of the whole network namespace, and each netdev that of its
 * interface. */
static bool options_share_udp_port(const struct settings *settings, size_t count)
{
	size_t interfaces = 0, sockets = 0;

	for (size_t i = 0; i < count; i++) {
		interfaces += settings[i].netdev[0] != '\0';
		sockets += settings[i].udp;
	}
	return sockets > 0 && interfaces > 1;
}

/* Read the port of [uroce] or of the command line, then the other ports of the file. A port on the
 * command line replaces all ports of the file. */
static int options_read_ports(const struct overview *overview, struct settings *settings,
			      size_t *count, char *error, size_t error_size)
{
	const bool has_port = settings->netdev[0] != '\0' || settings->port[0] != '\0';
	const struct settings common = *settings;
	int rc = 0;

	if (has_port && settings_check(settings, error, error_size) < 0)
		return -EINVAL;
	*count = has_port;
	if (overview->has_netdev || overview->has_port || !overview->config)
		return 0;
	rc = settings_read_ports(&common, overview->config, settings + *count,
				 SETTINGS_PORTS_MAX - *count, error, error_size);
	if (rc < 0)
		return rc;
	for (int i = 0; has_port && i < rc; i++) {
		if (strcmp(settings[i + 1].name, settings->name) == 0) {
			snprintf(error, error_size, "%s: two devices are called %s",
				 overview->config, settings->name);
			return -EINVAL;
		}
	}
	*count += (size_t)rc;
	if (options_share_udp_port(settings, *count)) {
		snprintf(error, error_size,
			 "%s: a port by udp has UDP port 4791 of this host; no other one can be by "
			 "udp "
			 "or netdev",
			 overview->config);
		return -EINVAL;
	}
	return 0;
}

enum options_result options_parse(int argc, char **argv, const char *default_file,
				  struct settings *settings, size_t *count,
				  struct options_tenants *tenants, char *error, size_t error_size)
{
	struct overview overview = {0};
	enum options_result result = options_survey(argc, argv, &overview, error, error_size);
	int rc;

	if (result != OPTIONS_RUN && result != OPTIONS_REPLACE && result != OPTIONS_STATUS)
		return result;
	settings_init(settings);
	if (!options_read_file(&overview, default_file, settings, error, error_size) ||
	    !options_read_tenants(&overview, tenants, error, error_size))
		return OPTIONS_BAD;
	tenants->file = overview.config;
	command_line_make_way(settings, overview.has_netdev, overview.has_port,
			      overview.has_ip || overview.has_kernel);
	if (command_line_apply(argc, argv, ":", long_options, CODE_OTHER_SETTING, settings, error,
			       error_size) < 0)
		return OPTIONS_BAD;
	if (settings->socket[0] == '\0')
		snprintf(settings->socket, sizeof(settings->socket), "%s", SETTINGS_DEFAULT_SOCKET);
	if (result == OPTIONS_STATUS)
		return result;
	if (settings->secondary != 0) {
		snprintf(error, error_size,
			 "secondary is set, but only uroce-run can use it, because uroced must own "
			 "its ports: remove it, or name another file with --config");
		return OPTIONS_BAD;
	}
	rc = options_read_ports(&overview, settings, count, error, error_size);
	if (rc < 0)
		return OPTIONS_BAD;
	if (*count == 0) {
		snprintf(error, error_size,
			 "no port: name one with --netdev IFACE, or with --port DEVARGS and --ip "
			 "ADDR/LEN or --kernel IFACE");
		return OPTIONS_BAD;
	}
	return result;
}

static bool has_name(const char *names, const char *name)
{
	const size_t len = strlen(name);

	while (names[0] != '\0') {
		const size_t word = strcspn(names, ",");

		if (word == len && memcmp(names, name, len) == 0)
			return true;
		names += word;
		names += strspn(names, ", ");
	}
	return false;
}

/* Add the names of settings whose values differ. */
static void name_different(const struct settings *a, const struct settings *b,
			   const char *const *list, size_t count, char *names, size_t size)
{
	for (size_t i = 0; i < count; i++) {
		const size_t len = strlen(names);
		char value[512], other[512];

		settings_get(a, list[i], value, sizeof(value));
		settings_get(b, list[i], other, sizeof(other));
		if (strcmp(value, other) != 0 && !has_name(names, list[i]))
			snprintf(names + len, size - len, "%s%s", len > 0 ? ", " : "", list[i]);
	}
}

void options_name_idle(const struct settings *settings, char *names, size_t size)
{
	struct settings untouched;

	settings_init(&untouched);
	names[0] = '\0';
	name_different(settings, &untouched, idle_settings, RTE_DIM(idle_settings), names, size);
}

const struct settings *options_find_port(const struct settings *ports, size_t count,
					 const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(ports[i].name, name) == 0)
			return &ports[i];
	}
	return NULL;
}

void options_name_fixed(const struct settings *before, size_t before_count,
			const struct settings *now, size_t now_count, char *names, size_t size)
{
	bool is_new = false;

	names[0] = '\0';
	for (size_t i = 0; i < now_count; i++) {
		const struct settings *same = options_find_port(before, before_count, now[i].name);

		if (same)
			name_different(same, &now[i], fixed_settings, RTE_DIM(fixed_settings),
				       names, size);
		is_new |= !same;
	}
	if (is_new)
		snprintf(names + strlen(names), size - strlen(names), "%sa new section [port]",
			 names[0] ? ", " : "");
}
