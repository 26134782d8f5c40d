/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the checks, and shows their findings; reads files of the kernel, or of a tree that takes
 * its place. */
#include "doctor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read_line.h"

#define INDENT 6 /* the width of the first word, and of further lines */

void doctor_tell(const struct doctor *doctor, const char *check, const char *subject,
		 const char *change, const char *found, ...)
{
	struct finding finding = {.check = check, .ok = !change};
	va_list args;

	snprintf(finding.subject, sizeof(finding.subject), "%s", subject);
	snprintf(finding.change, sizeof(finding.change), "%s", change ? change : "");
	va_start(args, found);
	vsnprintf(finding.found, sizeof(finding.found), found, args);
	va_end(args);
	doctor->tell(doctor->arg, &finding);
}

/* Make a path under the host's root. Returns false if it is too long. */
__attribute__((format(printf, 3, 0))) static bool
make_path(const struct doctor *doctor, char path[PATH_MAX], const char *format, va_list args)
{
	const int root = snprintf(path, PATH_MAX, "%s", doctor->host->root);
	int len;

	if (root < 0 || root >= PATH_MAX)
		return false;
	len = vsnprintf(path + root, PATH_MAX - (size_t)root, format, args);
	return len >= 0 && len < PATH_MAX - root;
}

FILE *doctor_open(const struct doctor *doctor, const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", doctor->host->root, path) >= (int)sizeof(full))
		return NULL;
	return fopen(full, "re");
}

bool doctor_read(const struct doctor *doctor, char *line, size_t size, const char *path, ...)
{
	char full[PATH_MAX];
	va_list args;
	bool fits;

	line[0] = '\0';
	va_start(args, path);
	fits = make_path(doctor, full, path, args);
	va_end(args);
	return fits && read_line(full, line, size);
}

uint64_t doctor_number(const struct doctor *doctor, uint64_t missing, const char *path, ...)
{
	char full[PATH_MAX], line[64], *end;
	uint64_t number;
	va_list args;
	bool fits;

	va_start(args, path);
	fits = make_path(doctor, full, path, args);
	va_end(args);
	if (!fits || !read_line(full, line, sizeof(line)))
		return missing;
	number = strtoull(line, &end, 0);
	return end == line ? missing : number;
}

bool doctor_link(const struct doctor *doctor, char *name, size_t size, const char *path, ...)
{
	char full[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t len = -1;
	va_list args;

	va_start(args, path);
	if (make_path(doctor, full, path, args))
		len = readlink(full, target, sizeof(target) - 1);
	va_end(args);
	target[len < 0 ? 0 : len] = '\0';
	last = strrchr(target, '/');
	snprintf(name, size, "%s", last ? last + 1 : target);
	return len >= 0;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

size_t doctor_list(const struct doctor *doctor, const char *path, char ***names)
{
	struct dirent **entries;
	char full[PATH_MAX];
	size_t listed = 0;
	int count;

	*names = NULL;
	if (snprintf(full, sizeof(full), "%s%s", doctor->host->root, path) >= (int)sizeof(full))
		return 0;
	count = scandir(full, &entries, is_shown, versionsort);
	if (count < 0)
		return 0;
	*names = calloc((size_t)count + 1, sizeof(**names));
	for (int i = 0; i < count; i++) {
		if (*names && ((*names)[listed] = strdup(entries[i]->d_name)) != NULL)
			listed++;
		free(entries[i]);
	}
	free(entries);
	return listed;
}

void doctor_list_free(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

void doctor_run(const struct doctor *doctor)
{
	doctor_memory(doctor);
	doctor_kernel(doctor);
	doctor_nics(doctor);
	doctor_ifaces(doctor);
	doctor_sockets(doctor);
}

/* Print a finding: "OK" or "warn", the check, what was found, and what to change. */
static void print_line(const struct terminal *terminal, const struct finding *finding)
{
	const enum tint tint = finding->ok ? TINT_GOOD : TINT_WARN;
	unsigned int column;
	char head[256];

	terminal_put(terminal, tint, finding->ok ? "OK" : "warn");
	printf("%*s", INDENT - (finding->ok ? 2 : 4), "");
	snprintf(head, sizeof(head), "%s%s%s:", finding->check, finding->subject[0] ? " " : "",
		 finding->subject);
	column = terminal_wrap(terminal, TINT_NAME, INDENT, INDENT, head);
	column = terminal_wrap(terminal, TINT_PLAIN, column, INDENT, finding->found);
	if (finding->change[0]) {
		column = terminal_wrap(terminal, TINT_PLAIN, column, INDENT, "->");
		terminal_wrap(terminal, TINT_PLAIN, column, INDENT, finding->change);
	}
	putchar('\n');
}

static void tell(void *arg, const struct finding *finding)
{
	struct output *output = arg;

	if (!output->json) {
		print_line(output->terminal, finding);
		return;
	}
	output_item(output);
	output_text(output, "check", finding->check);
	if (finding->subject[0])
		output_text(output, "subject", finding->subject);
	output_text(output, "state", finding->ok ? "ok" : "warn");
	output_text(output, "found", finding->found);
	if (finding->change[0])
		output_text(output, "change", finding->change);
	output_item_end(output);
}

void doctor_show(const struct doctor_host *host, struct output *output)
{
	const struct doctor doctor = {.host = host, .tell = tell, .arg = output};

	doctor_run(&doctor);
}
