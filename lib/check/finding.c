/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells findings once, except those that the user does not want to read. */
#include "check/finding.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"

#define LINE_MAX_LEN 768

/* Texts in a list that only grows. */
struct text {
	struct text *next;
	enum check_rule rule;
	char text[];
};

bool check_wanted;

static const char *const names[CHECK_RULES] = {
	[CHECK_LEAK] = "leak",
	[CHECK_CHANGED] = "changed-buffer",
	[CHECK_OVERWRITTEN] = "overwritten-message",
	[CHECK_DEREGISTERED] = "deregistered-in-use",
	[CHECK_UNSIGNALED] = "nothing-signaled",
	[CHECK_SMALL_CQ] = "small-completion-queue",
	[CHECK_SLEEP] = "lost-wake-up",
	[CHECK_UNACKNOWLEDGED] = "unacknowledged-events",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static struct text *suppressed, *told;
static bool found, must_fail;
static bool is_over; /* the program ends by exit(3) ... */
static int status;   /* ... with this */

static bool add(struct text **list, enum check_rule rule, const char *string)
{
	const size_t size = strlen(string) + 1;
	struct text *text = malloc(sizeof(*text) + size);

	if (!text)
		return false;
	text->rule = rule;
	memcpy(text->text, string, size);
	text->next = *list;
	*list = text;
	return true;
}

/* Read one line of a file of suppressions. Return false if it names no rule. */
static bool suppress(char *line)
{
	char *rest;

	line[strcspn(line, "\n")] = '\0';
	line += strspn(line, " \t\r");
	if (*line == '\0' || *line == '#')
		return true;
	rest = line + strcspn(line, " \t");
	if (*rest != '\0')
		*rest++ = '\0';
	rest += strspn(rest, " \t");
	for (size_t i = strlen(rest); i > 0 && strchr(" \t\r", rest[i - 1]); i--)
		rest[i - 1] = '\0';
	for (int rule = 0; rule < CHECK_RULES; rule++) {
		if (strcmp(line, names[rule]) == 0)
			return add(&suppressed, (enum check_rule)rule, rest);
	}
	return false;
}

static int read_suppressions(const char *path, char *error, size_t error_size)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int rc = 0, number = 0;

	if (!file) {
		rc = -errno;
		snprintf(error, error_size, "check-suppress: %s: %s", path, strerror(-rc));
		return rc;
	}
	while (rc == 0 && getline(&line, &size, file) > 0) {
		number++;
		if (suppress(line))
			continue;
		rc = -EINVAL;
		snprintf(error, error_size, "check-suppress: %s:%d: '%s' is no rule of --check",
			 path, number, line + strspn(line, " \t"));
	}
	free(line);
	fclose(file);
	return rc;
}

static void note_status(int with, void *arg __rte_unused)
{
	is_over = true;
	status = with;
}

int check_start(bool fails, const char *suppressions, char *error, size_t error_size)
{
	int rc;

	if (check_wanted)
		return 0;
	rc = *suppressions == '\0' ? 0 : read_suppressions(suppressions, error, error_size);
	if (rc != 0)
		return rc;
	must_fail = fails;
	check_wanted = on_exit(note_status, NULL) == 0;
	return 0;
}

/* Return true if a finding is told for the first time, and is not suppressed. */
static bool is_new(enum check_rule rule, const char *cause, const char *line)
{
	const struct text *text;

	for (text = suppressed; text; text = text->next) {
		if (text->rule == rule && strstr(line, text->text))
			return false;
	}
	for (text = told; text; text = text->next) {
		if (text->rule == rule && strcmp(text->text, cause) == 0)
			return false;
	}
	return true;
}

void check_finding(enum check_rule rule, const char *cause, const char *format, ...)
{
	const int saved_errno = errno;
	char line[LINE_MAX_LEN];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	pthread_mutex_lock(&lock);
	if (is_new(rule, cause, line)) {
		found = true;
		/* Without memory it is told again. */
		(void)add(&told, rule, cause);
		log_error("check: %s: %s", names[rule], line);
	}
	pthread_mutex_unlock(&lock);
	errno = saved_errno;
}

bool check_ends_well(void)
{
	return is_over && status == 0;
}

void check_end(void)
{
	if (!found || !must_fail || !check_ends_well())
		return;
	/* The handlers that are left run, and streams are written out as ever. */
	exit(CHECK_STATUS);
}

void check_forget(void)
{
	struct text *text;

	pthread_mutex_init(&lock, NULL);
	while ((text = told) != NULL) {
		told = text->next;
		free(text);
	}
	found = false;
}
