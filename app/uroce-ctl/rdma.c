/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse words in the syntax of rdma(8), and answer in its words. */
#include "rdma.h"

#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>
#include <rte_common.h>

#include "view/table.h"

#define COUNTER_INDENT "\n    "

static const char help[] =
	"Usage: rdma [ OPTIONS ] OBJECT { COMMAND | help }\n"
	"where  OBJECT := { dev | link | resource | statistic | help }\n"
	"       OPTIONS := { -V[ersion] | -d[etails] | -j[son] | -p[retty] }\n"
	"       rdma dev show [ DEV ]\n"
	"       rdma link show [ DEV/1 ]\n"
	"       rdma resource show [ DEV ]\n"
	"       rdma resource show { qp | cm_id } [ link DEV[/1] ] [ FILTER VALUE ... ]\n"
	"       rdma resource show { cq | mr | pd | ctx | srq } [ dev DEV ] [ FILTER VALUE ... ]\n"
	"       rdma statistic show [ link DEV[/1] ]\n"
	"\n"
	"Show the devices of uroce in this view (uroce-run). Only the kernel's\n"
	"devices can be changed.\n";

struct words {
	char **at;
	int left;
	char *error;
	size_t error_size;
};

static bool __attribute__((format(printf, 2, 3)))
refuse(const struct words *words, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(words->error, words->error_size, format, list);
	va_end(list);
	return false;
}

/* Take the next word if it is `word` or an abbreviation of it. */
static bool take(struct words *words, const char *word)
{
	if (words->left == 0 || words->at[0][0] == '\0' ||
	    strncmp(words->at[0], word, strlen(words->at[0])) != 0)
		return false;
	words->at++;
	words->left--;
	return true;
}

const char *const *rdma_field_names(enum report_kind kind)
{
	static const char *const qp[] = {"lqpn",   "rqpn",	     "type", "state", "rq-psn",
					 "sq-psn", "path-mig-state", "pdn",  "pid",   "comm",
					 NULL};
	static const char *const cq[] = {"cqn", "cqe", "users", "pid", "comm", NULL};
	static const char *const mr[] = {"mrn", "rkey", "lkey", "iova", "mrlen",
					 "pdn", "pid",	"comm", NULL};
	static const char *const pd[] = {"pdn", "users", "pid", "comm", NULL};
	static const char *const srq[] = {"srqn", "type", "pdn", "cqn", "pid", "comm", NULL};
	static const char *const ctx[] = {"ctxn", "pid", "comm", NULL};
	static const char *const cm_id[] = {"cm-idn", "lqpn",	  "state",    "ps", "pid",
					    "comm",   "src-addr", "dst-addr", NULL};
	static const char *const *const names[REPORT_KINDS] = {
		[REPORT_QP] = qp,   [REPORT_CQ] = cq,	[REPORT_MR] = mr,	[REPORT_PD] = pd,
		[REPORT_SRQ] = srq, [REPORT_CTX] = ctx, [REPORT_CM_ID] = cm_id,
	};

	return names[kind];
}

/* Set the device of a word "DEV", or "DEV/1" and relatives if it may have a port. */
static bool set_device(struct rdma_request *request, const struct words *words, const char *word,
		       bool may_have_port)
{
	const char *slash = may_have_port ? strchr(word, '/') : NULL;
	const size_t len = slash ? (size_t)(slash - word) : strlen(word);

	request->port = RDMA_PORT_ALL;
	if (slash && strcmp(slash, "/1") == 0)
		request->port = RDMA_PORT_ONE;
	else if (slash && strcmp(slash, "/-") == 0)
		request->port = RDMA_PORT_NONE;
	else if (slash && slash[1] != '\0')
		return refuse(words, "Wrong device name");
	if (len == 0 || len >= sizeof(request->device))
		return refuse(words, "Wrong device name");
	memcpy(request->device, word, len);
	request->device[len] = '\0';
	return true;
}

static bool no_more(const struct words *words)
{
	return words->left == 0 || refuse(words, "Unknown parameter '%s'.", words->at[0]);
}

/* Parse what follows "dev show" and "resource show". */
static bool parse_device(struct rdma_request *request, struct words *words)
{
	if (words->left == 0)
		return true;
	if (!set_device(request, words, words->at[0], false))
		return false;
	words->at++;
	words->left--;
	return no_more(words);
}

/* Parse what follows "link show" or "statistic show link". */
static bool parse_port(struct rdma_request *request, struct words *words)
{
	if (words->left == 0)
		return true;
	if (!set_device(request, words, words->at[0], true))
		return false;
	/* There is no link without a port. */
	if (request->port == RDMA_PORT_NONE ||
	    (request->show == RDMA_LINK && request->port != RDMA_PORT_ONE))
		return refuse(words, "Wrong device name");
	words->at++;
	words->left--;
	return no_more(words);
}

static bool add_filter(struct rdma_request *request, const struct words *words)
{
	const char *const *names = rdma_field_names(request->kind);

	while (*names && strcmp(*names, words->at[0]) != 0)
		names++;
	if (!*names)
		return refuse(words, "Unsupported filter option: %s", words->at[0]);
	if (request->filter_count == RDMA_FILTERS_MAX)
		return refuse(words, "Too many filter options at %s", words->at[0]);
	request->filters[request->filter_count++] =
		(struct rdma_filter){.name = words->at[0], .value = words->at[1]};
	return true;
}

/* Parse what follows "resource show KIND". */
static bool parse_filters(struct rdma_request *request, struct words *words)
{
	const bool of_link = request->kind == REPORT_QP || request->kind == REPORT_CM_ID;

	if (words->left == 1)
		return refuse(words, "No filter data was supplied to filter option %s",
			      words->at[0]);
	if (words->left % 2 == 1)
		return refuse(words, "There is filter option without data");
	for (; words->left > 0; words->at += 2, words->left -= 2) {
		if (strcmp(words->at[0], of_link ? "link" : "dev") == 0) {
			if (!set_device(request, words, words->at[1], of_link))
				return false;
		} else if (!add_filter(request, words)) {
			return false;
		}
	}
	return true;
}

/* Take "show" or "list", or no word. False with an error if there is another one. */
static bool take_show(struct words *words, const char *object)
{
	return take(words, "show") || take(words, "list") || words->left == 0 ||
	       refuse(words, "rdma: %s %s: not for the devices of uroce; see 'rdma help'", object,
		      words->at[0]);
}

static bool parse_resource(struct rdma_request *request, struct words *words)
{
	for (int kind = 0; kind < REPORT_KINDS; kind++) {
		if (take(words, report_kind_name((enum report_kind)kind))) {
			request->show = RDMA_OBJECTS;
			request->kind = (enum report_kind)kind;
			return parse_filters(request, words);
		}
	}
	request->show = RDMA_SUMMARY;
	return parse_device(request, words);
}

static bool parse_words(struct rdma_request *request, struct words *words)
{
	static const char *const objects[] = {
		[RDMA_DEV] = "dev",
		[RDMA_LINK] = "link",
		[RDMA_SUMMARY] = "resource",
		[RDMA_STATISTIC] = "statistic",
	};
	static const char *const elsewhere[] = {"system", "monitor"};

	request->show = RDMA_HELP;
	if (words->left == 0 || take(words, "help"))
		return true;
	for (size_t i = 0; i < RTE_DIM(objects); i++) {
		if (!objects[i] || !take(words, objects[i]))
			continue;
		if (take(words, "help"))
			return true;
		request->show = (enum rdma_show)i;
		if (!take_show(words, objects[i]))
			return false;
		if (request->show == RDMA_SUMMARY)
			return parse_resource(request, words);
		if (request->show == RDMA_DEV)
			return parse_device(request, words);
		if (request->show == RDMA_STATISTIC && words->left > 0 && !take(words, "link"))
			return refuse(words,
				      "rdma: statistic show %s: not for the devices of uroce",
				      words->at[0]);
		return parse_port(request, words);
	}
	for (size_t i = 0; i < RTE_DIM(elsewhere); i++) {
		if (take(words, elsewhere[i]))
			return refuse(words,
				      "rdma: %s: not for the devices of uroce; see 'rdma help'",
				      elsewhere[i]);
	}
	return refuse(words, "Unknown object '%s'.", words->at[0]);
}

bool rdma_parse(int argc, char **argv, struct rdma_request *request, char *error, size_t error_size)
{
	static const struct option options[] = {
		{"version", no_argument, NULL, 'V'}, {"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},    {"pretty", no_argument, NULL, 'p'},
		{"details", no_argument, NULL, 'd'}, {NULL, 0, NULL, 0},
	};
	struct words words = {.error = error, .error_size = error_size};
	int code;

	*request = (struct rdma_request){0};
	optind = 0;
	opterr = 0;
	while ((code = getopt_long(argc, argv, "Vhjpd", options, NULL)) != -1) {
		switch (code) {
		case 'j':
			request->json = true;
			break;
		case 'p':
			request->pretty = true;
			break;
		case 'd':
			request->details = true;
			break;
		case 'V':
			request->show = RDMA_VERSION;
			return true;
		case 'h':
			request->show = RDMA_HELP;
			return true;
		default:
			return refuse(&words, "Unknown option.");
		}
	}
	words.at = argv + optind;
	words.left = argc - optind;
	return parse_words(request, &words);
}

/* Return true if a number is one of "7" or "1-5". */
static bool in_range(const char *range, size_t len, const char *value)
{
	char text[48], *end;
	uint64_t first, last, number;

	if (len == 0 || len >= sizeof(text))
		return false;
	memcpy(text, range, len);
	text[len] = '\0';
	first = strtoull(text, &end, 0);
	last = *end == '-' ? strtoull(end + 1, &end, 0) : first;
	if (*end != '\0' || end == text)
		return false;
	number = strtoull(value, &end, 0);
	return end != value && *end == '\0' && number >= first && number <= last;
}

bool rdma_matches(const char *wanted, const char *value)
{
	for (;; wanted++) {
		const size_t len = strcspn(wanted, ",");

		if ((strncasecmp(wanted, value, len) == 0 && value[len] == '\0') ||
		    in_range(wanted, len, value))
			return true;
		wanted += len;
		if (*wanted == '\0')
			return false;
	}
}

/* Return true if a field begins an item, and print_head prints it. */
static bool is_of_head(const char *name)
{
	return strcmp(name, "ifindex") == 0 || strcmp(name, "ifname") == 0 ||
	       strcmp(name, "port") == 0;
}

static void print_head(const struct rdma_request *request, struct json_object *item)
{
	const char *name = json_object_get_string(json_object_object_get(item, "ifname"));
	const bool of_link = request->show == RDMA_LINK || request->show == RDMA_STATISTIC ||
			     (request->show == RDMA_OBJECTS &&
			      (request->kind == REPORT_QP || request->kind == REPORT_CM_ID));

	if (of_link)
		printf("link %s/%s ", name, json_object_object_get(item, "port") ? "1" : "-");
	else if (request->show == RDMA_OBJECTS)
		printf("dev %s ", name);
	else
		printf("%" PRId64 ": %s: ",
		       json_object_get_int64(json_object_object_get(item, "ifindex")), name);
}

static void print_item(const struct rdma_request *request, struct json_object *item)
{
	print_head(request, item);
	json_object_object_foreach(item, name, value)
	{
		if (is_of_head(name) || (!request->details && strcmp(name, "netdev_index") == 0))
			continue;
		printf("%s%s %s ", request->show == RDMA_STATISTIC ? COUNTER_INDENT : "", name,
		       json_object_get_string(value));
	}
	putchar('\n');
}

static void print_items(const struct rdma_request *request, struct json_object *items)
{
	if (request->json) {
		puts(json_object_to_json_string_ext(
			items,
			JSON_C_TO_STRING_NOSLASHESCAPE |
				(request->pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
						 : JSON_C_TO_STRING_PLAIN)));
		return;
	}
	for (size_t i = 0; i < json_object_array_length(items); i++)
		print_item(request, json_object_array_get_idx(items, i));
}

static int fail(const char *error)
{
	fprintf(stderr, "%s\n", error);
	return EXIT_FAILURE;
}

/* Outside a view, as of a program that got PATH alone from one inside: execute the next rdma in
 * PATH. Returns if there is none. */
static void exec_next(char **argv)
{
	const char *old = getenv("PATH");
	char *path = old ? strdup(old) : NULL, *rest = path, *dir;
	struct stat self, other;

	if (stat("/proc/self/exe", &self) != 0)
		rest = NULL;
	while ((dir = strsep(&rest, ":")) != NULL) {
		char next[PATH_MAX];

		if (snprintf(next, sizeof(next), "%s/rdma", dir) < (int)sizeof(next) &&
		    stat(next, &other) == 0 &&
		    (other.st_ino != self.st_ino || other.st_dev != self.st_dev))
			execv(next, argv);
	}
	free(path);
}

int rdma_main(int argc, char **argv)
{
	struct rdma_request request;
	struct json_object *items;
	char error[256] = "";

	if (!getenv(VIEW_VARIABLE))
		exec_next(argv);
	if (!rdma_parse(argc, argv, &request, error, sizeof(error)))
		return fail(error);
	if (request.show == RDMA_HELP)
		return fputs(help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	if (request.show == RDMA_VERSION)
		return puts("rdma utility, uroce-" UROCE_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	if (!getenv(VIEW_VARIABLE))
		return fail("rdma: this one shows the view of a program that uroce-run starts, and "
			    "here is none");
	items = rdma_items(&request, error, sizeof(error));
	if (!items)
		return fail(error);
	print_items(&request, items);
	json_object_put(items);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : fail("rdma: cannot write");
}
