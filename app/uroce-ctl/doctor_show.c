/* SPDX-License-Identifier: BSD-3-Clause */
/* Print findings: "OK" or "warn", the check, what was found, and what to change. */
#include "doctor_show.h"

#include <stdio.h>
#include <string.h>

#include "doctor_checks.h"

#define INDENT 6 /* the width of the first word, and of further lines */

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
