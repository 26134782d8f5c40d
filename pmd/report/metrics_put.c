/* SPDX-License-Identifier: BSD-3-Clause */
/* Write the lines of a metric in the text format of Prometheus. */
#include "metrics_put.h"

void metrics_put_label(FILE *file, const char *name, const char *value, bool more)
{
	fprintf(file, "%s=\"", name);
	for (const char *c = value; *c; c++) {
		if (*c == '\n')
			fputs("\\n", file);
		else if (*c == '\\' || *c == '"')
			fprintf(file, "\\%c", *c);
		else
			fputc(*c, file);
	}
	fputs(more ? "\"," : "\"", file);
}

void metrics_put_labels(const struct metrics *metrics, uint32_t i)
{
	const struct report_view *view = metrics_view(metrics, i);
	FILE *file = metrics->file;

	metrics_put_label(file, "device", devices_of(metrics->devices, metrics->views[i])->name,
			  true);
	metrics_put_label(file, "comm", view->comm, true);
	fprintf(file, "pid=\"%d\"", view->pid);
}

void metrics_put_head(FILE *file, const char *metric, const char *type, const char *help)
{
	/* Our own texts have neither a backslash nor a newline. */
	fprintf(file, "# HELP %s %c%s.\n# TYPE %s %s\n", metric,
		help[0] >= 'a' && help[0] <= 'z' ? help[0] - 'a' + 'A' : help[0], help + 1, metric,
		type);
}
