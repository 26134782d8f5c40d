/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of testroce: a port as for uroce-run, and a test. */
#include "testroce_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/command_line.h"
#include "stages.h"
#include "sweep_plot.h"

const char options_help[] =
	"Usage: testroce [EAL OPTION... --] [PORT] [--listen [ADDR:]PORT | --connect ADDR[:PORT]] "
	"[OPTION...]\n"
	"\n"
	"Measure RDMA on a network port: between two testroce, or with both sides in one process.\n"
	"\n"
	"The port, as for uroce-run; without one, that of a running uroced:\n"
	"  --netdev IFACE       a kernel interface\n"
	"  --udp[=IFACE]        the same by an ordinary UDP socket\n"
	"  --port DEVARGS       a DPDK device\n"
	"  --ip ADDR/LEN        an address of --port; may be repeated\n"
	"  --gateway ADDR, --route \"PREFIX/LEN via ADDR\"\n"
	"                       its routers to other networks\n"
	"  --socket PATH        the uroced that listens there (default: " SETTINGS_DEFAULT_SOCKET
	")\n"
	"  --impair ARGS        damage this side's packets on purpose, as for uroce-run\n"
	"  --name NAME, --mtu BYTES, --engines N, --progress MODE, --stores WAY,\n"
	"  --log-level LEVEL, --cc ALGORITHM, --sack auto|yes|no\n"
	"\n"
	"The sides:\n"
	"  --listen [ADDR:]PORT serve all active sides that connect\n"
	"  --once               end when all active sides have disconnected\n"
	"  --pair               run both sides, in two processes connected by memif; no port\n"
	"  --connect ADDR[:PORT] measure with the testroce that listens there\n"
	"  -i, --interactive    take commands at a prompt; \"help\" lists them\n"
	"\n"
	"The test; numbers may end in K, M or G:\n"
	"  --mode MODE          write (default), read, send, atomic, latency,\n"
	"                       source, sink, null (regions), storage or incast\n"
	"  --op OP              what latency measures: write (default), read, send or atomic\n"
	"  --size BYTES         size of a message (default: 64K; 4K for storage, 8 for atomic\n"
	"                       and latency)\n"
	"  --qps N              queue pairs (default: 1)\n"
	"  --threads N          threads that measure, each with its part of the queue pairs,\n"
	"                       or with --listen those that serve (default: 1)\n"
	"  --depth N            messages in flight, for each queue pair (default: 64)\n"
	"  --path-mtu N         payload of a packet in bytes, 256 to 4096 (default: 1024)\n"
	"  --batch N            work requests in one post (default: 1)\n"
	"  --signal N           one completion for so many messages (default: depth / 4, at most "
	"16)\n"
	"  --read-percent N     share of reads in the storage mode (default: 70)\n"
	"  --in-capsule BYTES   larger blocks are not written with their command (default: 4K)\n"
	"  --inline BYTES       messages up to this size are posted inline (default: 64)\n"
	"  --region BYTES       memory that messages cycle through (default: a place for each)\n"
	"  --seconds S          duration of a test (default: 2; 0: until it is stopped), or\n"
	"  --messages N         number of messages\n"
	"  --verify             the receiver checks every byte\n"
	"  --loss N             drop so many of a million received packets, on both sides\n"
	"  --without LIST       switch off these optimisations, on both sides\n"
	"                       (names: see the manual page of uroce-run)\n"
	"  --seed N             seed of random values\n"
	"\n"
	"The output:\n"
	"  --stats-period S     print a line of figures every S seconds (default: 10 in\n"
	"                       longer tests)\n"
	"  --json FILE          write results as JSON, a line for each test\n"
	"  --stages             print the cycles by stage of the packet path\n"
	"  --ablation           print a table of what each optimisation gains\n"
	"  --sweep FOLDER       measure series of sizes, depths and queue pairs; write JSON,\n"
	"                       CSV and plots\n"
	"  --repeat N           measure each figure of these two so often, up to 25 (default: 3)\n"
	"  --help, --version\n"
	"\n"
	"Examples:\n"
	"  testroce --port net_memif0,socket=/run/x.sock,role=server --ip 10.0.0.1/24 --listen "
	"19790\n"
	"  testroce --port net_memif0,socket=/run/x.sock,role=client --ip 10.0.0.2/24 \\\n"
	"           --connect 127.0.0.1 --mode latency --op send --size 64\n";

#define ABLATION_NS    UINT64_C(500000000) /* duration of one of its tests */
#define SWEEP_NS       UINT64_C(200000000)
#define REPEAT_DEFAULT 3

enum {
	CODE_NETDEV = 256,
	CODE_PORT,
	CODE_IP,
	CODE_SOCKET,
	CODE_LAST_SETTING,
	CODE_PLAN,
	CODE_PATH_MTU,
	CODE_VERIFY,
	CODE_LISTEN,
	CODE_CONNECT,
	CODE_ONCE,
	CODE_PAIR,
	CODE_INTERACTIVE,
	CODE_ABLATION,
	CODE_STAGES,
	CODE_SWEEP,
	CODE_REPEAT,
	CODE_JSON,
	CODE_PERIOD,
	CODE_HELP,
	CODE_VERSION,
};

/* Options up to CODE_LAST_SETTING have the names of settings. Options of CODE_PLAN have the names
 * that plan_set takes. */
static const struct option long_options[] = {
	{"netdev", required_argument, NULL, CODE_NETDEV},
	{"udp", optional_argument, NULL, CODE_NETDEV},
	{"port", required_argument, NULL, CODE_PORT},
	{"ip", required_argument, NULL, CODE_IP},
	{"gateway", required_argument, NULL, CODE_LAST_SETTING},
	{"route", required_argument, NULL, CODE_LAST_SETTING},
	{"socket", required_argument, NULL, CODE_SOCKET},
	{"cc", required_argument, NULL, CODE_LAST_SETTING},
	{"impair", required_argument, NULL, CODE_LAST_SETTING},
	{"name", required_argument, NULL, CODE_LAST_SETTING},
	{"mtu", required_argument, NULL, CODE_LAST_SETTING},
	{"engines", required_argument, NULL, CODE_LAST_SETTING},
	{"progress", required_argument, NULL, CODE_LAST_SETTING},
	{"sack", required_argument, NULL, CODE_LAST_SETTING},
	{"log-level", required_argument, NULL, CODE_LAST_SETTING},
	{"stores", required_argument, NULL, CODE_LAST_SETTING},
	{"mode", required_argument, NULL, CODE_PLAN},
	{"op", required_argument, NULL, CODE_PLAN},
	{"size", required_argument, NULL, CODE_PLAN},
	{"qps", required_argument, NULL, CODE_PLAN},
	{"threads", required_argument, NULL, CODE_PLAN},
	{"depth", required_argument, NULL, CODE_PLAN},
	{"batch", required_argument, NULL, CODE_PLAN},
	{"signal", required_argument, NULL, CODE_PLAN},
	{"inline", required_argument, NULL, CODE_PLAN},
	{"read-percent", required_argument, NULL, CODE_PLAN},
	{"in-capsule", required_argument, NULL, CODE_PLAN},
	{"region", required_argument, NULL, CODE_PLAN},
	{"seconds", required_argument, NULL, CODE_PLAN},
	{"messages", required_argument, NULL, CODE_PLAN},
	{"seed", required_argument, NULL, CODE_PLAN},
	{"loss", required_argument, NULL, CODE_PLAN},
	{"without", required_argument, NULL, CODE_PLAN},
	{"path-mtu", required_argument, NULL, CODE_PATH_MTU},
	{"verify", no_argument, NULL, CODE_VERIFY},
	{"listen", required_argument, NULL, CODE_LISTEN},
	{"connect", required_argument, NULL, CODE_CONNECT},
	{"interactive", no_argument, NULL, CODE_INTERACTIVE},
	{"once", no_argument, NULL, CODE_ONCE},
	{"pair", no_argument, NULL, CODE_PAIR},
	{"stages", no_argument, NULL, CODE_STAGES},
	{"ablation", no_argument, NULL, CODE_ABLATION},
	{"sweep", required_argument, NULL, CODE_SWEEP},
	{"repeat", required_argument, NULL, CODE_REPEAT},
	{"json", required_argument, NULL, CODE_JSON},
	{"stats-period", required_argument, NULL, CODE_PERIOD},
	{"help", no_argument, NULL, CODE_HELP},
	{"version", no_argument, NULL, CODE_VERSION},
	{NULL, 0, NULL, 0},
};

int options_eal_end(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return 0;
}

static int set_period(struct options *options, const char *value, char *error, size_t error_size)
{
	char *end;
	const double seconds = strtod(value, &end);

	if (end == value || *end != '\0' || !(seconds >= 0.1 && seconds <= 1e6)) {
		snprintf(error, error_size, "stats-period: '%s' is not a time from 0.1", value);
		return -1;
	}
	options->period_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int set_repeat(struct options *options, const char *value, char *error, size_t error_size)
{
	uint64_t repeat;

	if (!plan_parse_number(value, &repeat) || repeat == 0 || repeat > SPREAD_ROUNDS_MAX) {
		snprintf(error, error_size, "repeat: '%s' is not a number from 1 to %d", value,
			 SPREAD_ROUNDS_MAX);
		return -1;
	}
	options->repeat = (unsigned int)repeat;
	return 0;
}

/* Options that were present. options_finish fills in defaults for the others. */
struct given {
	bool seconds, port;
};

static int options_take(struct options *options, int code, const char *name, struct given *given,
			char *error, size_t error_size)
{
	given->port |= code == CODE_NETDEV || code == CODE_PORT;
	given->seconds |= strcmp(name, "seconds") == 0;
	options->has_size |= strcmp(name, "size") == 0;
	if (code <= CODE_LAST_SETTING)
		return settings_set(&options->settings, name, optarg ? optarg : "", error,
				    error_size);
	switch (code) {
	case CODE_PLAN:
		return plan_set(&options->plan, name, optarg, error, error_size);
	case CODE_PATH_MTU:
		return plan_set(&options->plan, "mtu", optarg, error, error_size);
	case CODE_VERIFY:
		options->plan.verify = 1;
		return 0;
	case CODE_LISTEN:
		options->listen = optarg;
		return 0;
	case CODE_CONNECT:
		options->connect = optarg;
		return 0;
	case CODE_ONCE:
		options->once = true;
		return 0;
	case CODE_PAIR:
		options->pair = true;
		return 0;
	case CODE_INTERACTIVE:
		options->interactive = true;
		return 0;
	case CODE_ABLATION:
		options->ablation = true;
		return 0;
	case CODE_STAGES:
		options->stages = true;
		return 0;
	case CODE_SWEEP:
		options->sweep = optarg;
		return 0;
	case CODE_REPEAT:
		return set_repeat(options, optarg, error, error_size);
	case CODE_JSON:
		options->json = optarg;
		return 0;
	default:
		return set_period(options, optarg, error, error_size);
	}
}

static enum options_result options_check_plan(const struct options *options, char *error,
					      size_t error_size)
{
	struct plan plan = options->plan;

	if (options->stages && plan.threads > 1) {
		snprintf(error, error_size, STAGES_REFUSED);
		return OPTIONS_BAD;
	}
	/* The clients say how many queue pairs the threads of a server have. */
	if (options->listen)
		plan.threads = 1;
	return plan_check(&plan, error, error_size) < 0 ? OPTIONS_BAD : OPTIONS_RUN;
}

/* Check the options of --pair. The port is set only after the fork, so it is not checked here. */
static enum options_result options_finish_pair(struct options *options, const struct given *given,
					       char *error, size_t error_size)
{
	if (given->port || options->settings.socket[0] != '\0' || options->listen ||
	    options->connect) {
		snprintf(error, error_size,
			 "--pair makes its own port and runs both sides: name neither a port nor a "
			 "side");
		return OPTIONS_BAD;
	}
	return options_check_plan(options, error, error_size);
}

static enum options_result options_finish(struct options *options, const struct given *given,
					  const char *default_socket, char *error,
					  size_t error_size)
{
	if (options->listen && options->connect) {
		snprintf(error, error_size, "--listen and --connect are for two processes");
		return OPTIONS_BAD;
	}
	if (options->ablation + (options->sweep != NULL) + options->interactive +
		    (options->listen != NULL) >
	    1) {
		snprintf(error, error_size,
			 "--ablation, --sweep, --listen and -i do not go together");
		return OPTIONS_BAD;
	}
	if (options->repeat > 0 && !options->ablation && !options->sweep) {
		snprintf(error, error_size, "--repeat is for --ablation and --sweep");
		return OPTIONS_BAD;
	}
	if (options->repeat == 0)
		options->repeat = REPEAT_DEFAULT;
	if ((options->ablation || options->sweep) && !given->seconds)
		options->plan.duration_ns = options->sweep ? SWEEP_NS : ABLATION_NS;
	/* A test at the prompt runs until the command "stop". */
	if (options->interactive && !given->seconds)
		options->plan.duration_ns = 0;
	if (!options->has_size)
		plan_default_size(&options->plan);
	if (options->pair)
		return options_finish_pair(options, given, error, error_size);
	if (!given->port && options->settings.socket[0] == '\0' &&
	    settings_set(&options->settings, "socket", default_socket, error, error_size) < 0)
		return OPTIONS_BAD;
	if (settings_check(&options->settings, error, error_size) < 0)
		return OPTIONS_BAD;
	return options_check_plan(options, error, error_size);
}

enum options_result options_parse(int argc, char **argv, const char *default_socket,
				  struct options *options, char *error, size_t error_size)
{
	struct given given = {0};
	int code, index = 0;

	memset(options, 0, sizeof(*options));
	settings_init(&options->settings);
	plan_init(&options->plan);
	command_line_rewind();
	while ((code = getopt_long(argc, argv, ":i", long_options, &index)) != -1) {
		if (code == 'i')
			code = CODE_INTERACTIVE;
		if (code == CODE_HELP)
			return OPTIONS_HELP;
		if (code == CODE_VERSION)
			return OPTIONS_VERSION;
		if (command_line_refused(code, argv, error, error_size))
			return OPTIONS_BAD;
		if (options_take(options, code, long_options[index].name, &given, error,
				 error_size) < 0)
			return OPTIONS_BAD;
	}
	if (optind < argc) {
		command_line_no_option(argv[optind], error, error_size);
		return OPTIONS_BAD;
	}
	return options_finish(options, &given, default_socket, error, error_size);
}
