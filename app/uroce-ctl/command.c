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

#define MS_DEFAULT  1000
#define SECONDS_MAX 3600

const char command_help[] = "Usage: uroce-ctl [-j] dev [show [DEV]]\n"
			    "       uroce-ctl [-j] link [show [DEV[/1]]]\n"
			    "       uroce-ctl [-j] resource [show [DEV]]\n"
			    "       uroce-ctl [-j] resource show qp|cq|mr|pd [FILTER...]\n"
			    "       uroce-ctl [-j] statistic [show] [FILTER...]\n"
			    "       uroce-ctl [-d SECONDS] [-n COUNT] top [FILTER...]\n"
			    "\n"
			    "Show uroce's RDMA devices, their objects and counters.\n"
			    "\n"
			    "  FILTER := { dev DEV | link DEV[/1] | pid PID }\n"
			    "\n"
			    "  -j, --json           print JSON\n"
			    "  -d, --delay SECONDS  top: time between two views (default: 1)\n"
			    "  -n, --count COUNT    top: end after so many views\n"
			    "  --help, --version\n";

static const char *const objects[] = {
	[COMMAND_DEV] = "dev",		 [COMMAND_LINK] = "link",
	[COMMAND_RESOURCE] = "resource", [COMMAND_STATISTIC] = "statistic",
	[COMMAND_TOP] = "top",		 [COMMAND_HELP] = "help",
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
	unsigned long pid;

	if (!value)
		return refuse(words, "a value is missing after", word);
	if (is_word(word, "dev") || is_word(word, "link"))
		return set_device(command, words, value);
	if (!is_word(word, "pid"))
		return refuse(words, "there is no filter", word);
	if (!parse_number(value, INT32_MAX, &pid) || pid == 0)
		return refuse(words, "not the number of a process:", value);
	command->filter.pid = (pid_t)pid;
	return true;
}

/* Parse what follows "resource": a kind, a device, or nothing. */
static bool parse_kind(struct command *command, struct words *words)
{
	for (int kind = 0; kind < REPORT_KINDS; kind++) {
		if (words->left > 0 &&
		    strcmp(*words->at, report_kind_name((enum report_kind)kind)) == 0) {
			next(words);
			command->kind = kind;
			return true;
		}
	}
	return words->left == 0 || set_device(command, words, next(words));
}

static bool parse_words(struct command *command, struct words *words)
{
	const char *object = next(words);
	size_t i;

	if (!object)
		return refuse(words, "no", "command");
	for (i = 0; i < RTE_DIM(objects) && !is_word(object, objects[i]); i++)
		;
	if (i == RTE_DIM(objects))
		return refuse(words, "there is no command", object);
	command->object = (enum command_object)i;
	if (command->object == COMMAND_HELP)
		return true;
	if (command->object != COMMAND_TOP && !take(words, "show"))
		take(words, "list");
	if (command->object == COMMAND_RESOURCE && !parse_kind(command, words))
		return false;
	if ((command->object == COMMAND_DEV || command->object == COMMAND_LINK) && words->left == 1)
		return set_device(command, words, next(words));
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

bool command_parse(int argc, char **argv, struct command *command, char *error, size_t error_size)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},	 {"delay", required_argument, NULL, 'd'},
		{"count", required_argument, NULL, 'n'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	 {NULL, 0, NULL, 0},
	};
	struct words words = {.error = error, .error_size = error_size};
	unsigned long count;
	int code;

	memset(command, 0, sizeof(*command));
	command->kind = -1;
	command->ms = MS_DEFAULT;
	optind = 0;
	opterr = 0;
	while ((code = getopt_long(argc, argv, "jd:n:hV", options, NULL)) != -1) {
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
			command->rounds = (uint32_t)count;
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
	return parse_words(command, &words);
}
