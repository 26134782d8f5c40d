/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse words in the syntax of rdma(8): an object, "show", a kind, and filters. Words may be
 * abbreviated. */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "config/settings.h"
#include "transport/cc.h"

#define CAPTURE_FILE "uroce.pcapng"
#define MS_DEFAULT   1000
#define QPN_MAX	     0xffffff
#define SECONDS_MAX  3600

const char command_help[] =
	"Usage: uroce-ctl [-j] dev [show [DEV] [FILTER...]]\n"
	"       uroce-ctl [-j] link [show [DEV[/1]] [FILTER...]]\n"
	"       uroce-ctl [-j] resource [show [DEV] [FILTER...]]\n"
	"       uroce-ctl [-j] resource show qp|cq|mr|pd|srq|ctx|cm_id [FILTER...]\n"
	"       uroce-ctl [-j] statistic [show] [FILTER...]\n"
	"       uroce-ctl [-d SECONDS] [-n COUNT] top [FILTER...]\n"
	"       uroce-ctl [-d SECONDS] [-n COUNT] monitor [FILTER...]\n"
	"       uroce-ctl metrics [show] [qp] [FILTER...]\n"
	"       uroce-ctl [-w FILE] [-n COUNT] capture [qp LQPN] [FILTER...]\n"
	"       uroce-ctl [-j] congestion [show] [FILTER...]\n"
	"       uroce-ctl congestion set NAME VALUE [NAME VALUE...] [qp LQPN] FILTER...\n"
	"       uroce-ctl log level error|warn|info|debug [FILTER...]\n"
	"       uroce-ctl why [FILTER...]\n"
	"       uroce-ctl [-j] doctor\n"
	"       uroce-ctl cdi [socket PATH]\n"
	"\n"
	"Show uroce's RDMA devices, their objects and counters, capture their\n"
	"packets, show and change congestion control, change the level of\n"
	"messages, say what programs wait for, show what this host allows, and\n"
	"describe the device of an uroced for container engines.\n"
	"\n"
	"  FILTER := { dev DEV | link DEV[/1] | net NET | pid PID }\n"
	"\n"
	"  -j, --json           print JSON\n"
	"  --color WHEN         auto (default: on a terminal), always or never\n"
	"  -d, --delay SECONDS  top, monitor: time between two looks (default: 1)\n"
	"  -n, --count COUNT    top: end after so many views, monitor: lines,\n"
	"                       capture: packets\n"
	"  -w, --write FILE     capture: the file (default: " CAPTURE_FILE ")\n"
	"  --help, --version\n";

static const char *const objects[] = {
	[COMMAND_DEV] = "dev",
	[COMMAND_LINK] = "link",
	[COMMAND_RESOURCE] = "resource",
	[COMMAND_STATISTIC] = "statistic",
	[COMMAND_TOP] = "top",
	[COMMAND_MONITOR] = "monitor",
	[COMMAND_METRICS] = "metrics",
	[COMMAND_CAPTURE] = "capture",
	[COMMAND_CONGESTION] = "congestion",
	[COMMAND_LOG] = "log",
	[COMMAND_DOCTOR] = "doctor",
	[COMMAND_CDI] = "cdi",
	[COMMAND_WHY] = "why",
	[COMMAND_HELP] = "help",
};

/* Words that are not parsed yet. */
struct words {
	char **at;
	int left;
	char *error;
	size_t error_size;
};

static bool refuse(const struct words *words, const char *what, const char *word)
{
	snprintf(words->error, words->error_size, "%s '%s'; see --help", what, word);
	return false;
}

static char *next(struct words *words)
{
	if (words->left == 0)
		return NULL;
	words->left--;
	return *words->at++;
}

static bool is_word(const char *given, const char *word)
{
	return given[0] != '\0' && strncmp(given, word, strlen(given)) == 0;
}

/* Take the next word if it is `word`. */
static bool take(struct words *words, const char *word)
{
	if (words->left == 0 || !is_word(*words->at, word))
		return false;
	next(words);
	return true;
}

static bool set_device(struct command *command, struct words *words, const char *name)
{
	const size_t len = strcspn(name, "/");

	if (len == 0 || len >= sizeof(command->device) ||
	    (name[len] == '/' && strcmp(name + len, "/1") != 0))
		return refuse(words, "there is no device", name);
	memcpy(command->device, name, len);
	command->device[len] = '\0';
	command->filter.device = command->device;
	return true;
}

static bool parse_number(const char *text, unsigned long max, unsigned long *number)
{
	char *end;

	errno = 0;
	*number = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *number <= max;
}

static bool parse_filter(struct command *command, struct words *words)
{
	const char *word = next(words);
	const char *value = next(words);
	unsigned long number;

	if (!value)
		return refuse(words, "a value is missing after", word);
	if ((command->object == COMMAND_CAPTURE || command->change_count > 0) &&
	    is_word(word, "qp")) {
		if (!parse_number(value, QPN_MAX, &number) || number == 0)
			return refuse(words, "not the number of a queue pair:", value);
		command->qpn = (uint32_t)number;
		return true;
	}
	if (is_word(word, "dev") || is_word(word, "link"))
		return set_device(command, words, value);
	if (is_word(word, "net")) {
		command->filter.net = value;
		return true;
	}
	if (!is_word(word, "pid"))
		return refuse(words, "there is no filter", word);
	if (!parse_number(value, INT32_MAX, &number) || number == 0)
		return refuse(words, "not the number of a process:", value);
	command->filter.pid = (pid_t)number;
	return true;
}

/* Parse a kind of objects, if there is one. */
static void parse_kind(struct command *command, struct words *words)
{
	for (int kind = 0; kind < REPORT_KINDS; kind++) {
		if (words->left > 0 &&
		    strcmp(*words->at, report_kind_name((enum report_kind)kind)) == 0) {
			next(words);
			command->kind = kind;
			return;
		}
	}
}

/* Parse one name and its value after "congestion set". Return false with an error. */
static bool parse_change(struct command *command, struct words *words)
{
	const uint32_t index = cc_param_find(words->at[0]);
	const bool is_param = index < CC_PARAM_COUNT;
	struct report_command *change = &command->changes[command->change_count];
	const char *name = next(words);
	const char *value = next(words);
	unsigned long number = 0;

	if (!value)
		return refuse(words, "a value is missing after", name);
	if (command->change_count == COMMAND_CHANGES_MAX)
		return refuse(words, "too many values: at", name);
	if (is_param) {
		if (!parse_number(value, cc_param(index)->most, &number) ||
		    number < cc_param(index)->least) {
			snprintf(words->error, words->error_size, "%s: from %u to %u, not '%s'",
				 name, cc_param(index)->least, cc_param(index)->most, value);
			return false;
		}
	} else if (cc_find(value) == CC_KINDS) {
		return refuse(words, "there is no algorithm", value);
	}
	*change = (struct report_command){
		.kind = is_param ? REPORT_COMMAND_PARAM : REPORT_COMMAND_ALGORITHM,
		.index = is_param ? (uint8_t)index : (uint8_t)cc_find(value),
		.value = (uint32_t)number};
	command->change_count++;
	return true;
}

/* Parse what follows "congestion set". */
static bool parse_set(struct command *command, struct words *words)
{
	while (words->left > 0 && (strcmp(words->at[0], "algorithm") == 0 ||
				   cc_param_find(words->at[0]) < CC_PARAM_COUNT)) {
		if (!parse_change(command, words))
			return false;
	}
	if (command->change_count == 0)
		return words->left > 0 ? refuse(words, "there is nothing to set named", *words->at)
				       : refuse(words, "a name is missing after", "set");
	while (words->left > 0) {
		if (!parse_filter(command, words))
			return false;
	}
	if (!command->filter.device && !command->filter.net && command->filter.pid == 0)
		return refuse(words,
			      "say for which device or process:", "dev DEV, net NET or pid PID");
	for (uint32_t i = 0; i < command->change_count; i++) {
		if (command->changes[i].kind == REPORT_COMMAND_ALGORITHM)
			command->changes[i].value = command->qpn;
		else if (command->qpn != 0)
			return refuse(words, "a queue pair has only an algorithm, not",
				      cc_param(command->changes[i].index)->name);
	}
	return true;
}

/* Parse what follows "log". */
static bool parse_log(struct command *command, struct words *words)
{
	const char *level;
	struct settings settings;

	if (!take(words, "level") || (level = next(words)) == NULL)
		return refuse(words, "log needs", "level LEVEL");
	settings_init(&settings);
	if (settings_set(&settings, "log-level", level, words->error, words->error_size) != 0)
		return false;
	command->changes[command->change_count++] = (struct report_command){
		.kind = REPORT_COMMAND_LOG_LEVEL, .index = (uint8_t)settings.log_level};
	while (words->left > 0) {
		if (!parse_filter(command, words))
			return false;
	}
	return command->qpn == 0 || refuse(words, "there is no filter", "qp");
}

/* Commands that run until they are ended: they print no list. */
static bool runs_on(enum command_object object)
{
	return object == COMMAND_TOP || object == COMMAND_MONITOR || object == COMMAND_CAPTURE;
}

/* Commands that name a device without "dev". */
static bool takes_device(const struct command *command)
{
	return command->object == COMMAND_DEV || command->object == COMMAND_LINK ||
	       (command->object == COMMAND_RESOURCE && command->kind < 0);
}

/* Parse what follows "cdi". */
static bool parse_cdi(struct command *command, struct words *words)
{
	if (take(words, "socket")) {
		command->socket = next(words);
		if (!command->socket)
			return refuse(words, "a value is missing after", "socket");
	}
	return words->left == 0 || refuse(words, "cdi takes no", next(words));
}

static bool parse_words(struct command *command, struct words *words)
{
	const char *object = next(words);
	size_t i;

	if (!object)
		return refuse(words, "no", "command");
	for (i = 0; i < RTE_DIM(objects) && !(objects[i] && is_word(object, objects[i])); i++)
		;
	if (i == RTE_DIM(objects))
		return refuse(words, "there is no command", object);
	command->object = (enum command_object)i;
	if (command->object == COMMAND_HELP)
		return true;
	if (command->object == COMMAND_DOCTOR)
		return words->left == 0 || refuse(words, "doctor takes no", next(words));
	if (command->object == COMMAND_CDI)
		return parse_cdi(command, words);
	if (command->object == COMMAND_LOG)
		return parse_log(command, words);
	if (command->object == COMMAND_CONGESTION && take(words, "set"))
		return parse_set(command, words);
	if (!runs_on(command->object) && command->object != COMMAND_WHY && !take(words, "show"))
		take(words, "list");
	if (command->object == COMMAND_RESOURCE)
		parse_kind(command, words);
	if (command->object == COMMAND_METRICS && take(words, "qp"))
		command->kind = REPORT_QP;
	/* A filter has two words. */
	if (takes_device(command) && words->left % 2 == 1 &&
	    !set_device(command, words, next(words)))
		return false;
	while (words->left > 0) {
		if (!parse_filter(command, words))
			return false;
	}
	return true;
}

static bool parse_seconds(const char *text, unsigned int *ms)
{
	char *end;
	const double seconds = strtod(text, &end);

	if (end == text || *end != '\0' || !(seconds >= 0.1 && seconds <= SECONDS_MAX))
		return false;
	*ms = (unsigned int)(seconds * 1000);
	return true;
}

static bool parse_colour(const char *text, enum colour_when *when)
{
	static const char *const names[] = {
		[COLOUR_AUTO] = "auto",
		[COLOUR_ALWAYS] = "always",
		[COLOUR_NEVER] = "never",
	};

	for (size_t i = 0; i < RTE_DIM(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*when = (enum colour_when)i;
			return true;
		}
	}
	return false;
}

/* Options of commands that have no use for them are refused. */
static bool options_fit(const struct command *command, const struct words *words)
{
	const enum command_object object = command->object;

	if (command->json && command->change_count > 0)
		return refuse(words, "no JSON of", objects[object]);
	if (command->json && (runs_on(object) || object == COMMAND_METRICS ||
			      object == COMMAND_CDI || object == COMMAND_WHY))
		return refuse(words, "no JSON of", objects[object]);
	if (command->count > 0 && !runs_on(object))
		return refuse(words, "no count for", objects[object]);
	if (command->ms > 0 && object != COMMAND_TOP && object != COMMAND_MONITOR)
		return refuse(words, "no delay for", objects[object]);
	if (command->file && object != COMMAND_CAPTURE)
		return refuse(words, "no file for", objects[object]);
	return true;
}

bool command_parse(int argc, char **argv, struct command *command, char *error, size_t error_size)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},	 {"color", required_argument, NULL, 'C'},
		{"delay", required_argument, NULL, 'd'}, {"count", required_argument, NULL, 'n'},
		{"write", required_argument, NULL, 'w'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	 {NULL, 0, NULL, 0},
	};
	struct words words = {.error = error, .error_size = error_size};
	unsigned long count;
	int code;

	memset(command, 0, sizeof(*command));
	command->kind = -1;
	command->socket = SETTINGS_DEFAULT_ISOLATED;
	optind = 0;
	opterr = 0;
	while ((code = getopt_long(argc, argv, "jd:n:w:hV", options, NULL)) != -1) {
		switch (code) {
		case 'j':
			command->json = true;
			break;
		case 'd':
			if (!parse_seconds(optarg, &command->ms))
				return refuse(&words,
					      "not a time from 0.1 to 3600 seconds:", optarg);
			break;
		case 'n':
			if (!parse_number(optarg, UINT32_MAX, &count) || count == 0)
				return refuse(&words, "no count:", optarg);
			command->count = (uint32_t)count;
			break;
		case 'w':
			command->file = optarg;
			break;
		case 'C':
			if (!parse_colour(optarg, &command->colour))
				return refuse(&words, "auto, always or never, not", optarg);
			break;
		case 'h':
			command->object = COMMAND_HELP;
			return true;
		case 'V':
			command->object = COMMAND_VERSION;
			return true;
		default:
			return refuse(&words, "unknown, or without its value:", argv[optind - 1]);
		}
	}
	words.at = argv + optind;
	words.left = argc - optind;
	if (!parse_words(command, &words) || !options_fit(command, &words))
		return false;
	if (command->ms == 0)
		command->ms = MS_DEFAULT;
	if (!command->file)
		command->file = CAPTURE_FILE;
	return true;
}
