/* SPDX-License-Identifier: BSD-3-Clause */
/* Compare successive sets of reports, and print what has appeared and what has gone. */
#include "ctl_show.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* One direction of a comparison: what `all` has and `other` does not have. */
struct difference {
	const struct report_devices *all, *other;
	const struct report_filter *filter;
	struct output *output;
	uint32_t *left;			       /* lines; 0: no limit */
	bool ended;			       /* the last of these is printed */
	const char *device, *program, *object; /* words of the lines */
};

static int compare_records(const void *a, const void *b)
{
	const struct report_record *one = a, *two = b;

	if (one->kind != two->kind)
		return one->kind < two->kind ? -1 : 1;
	return one->number < two->number ? -1 : one->number > two->number;
}

static void sort_records(struct report_devices *devices)
{
	for (uint32_t i = 0; i < devices->views.count; i++) {
		struct report_view *view = &devices->views.list[i];

		if (view->record_count > 0)
			qsort(view->records, view->record_count, sizeof(view->records[0]),
			      compare_records);
	}
}

/* Begin a line with this word. Return false if all lines are printed. */
static bool begin(struct difference *difference, const char *word)
{
	if (difference->ended)
		return false;
	difference->output->prefix = word;
	difference->ended = *difference->left > 0 && --*difference->left == 0;
	return true;
}

static void print_devices(struct difference *difference)
{
	const struct report_device *device;
	uint32_t next = 0;

	while ((device = devices_next(difference->all, difference->filter, &next)) != NULL) {
		if (!devices_find(difference->other, device->head) &&
		    begin(difference, difference->device))
			show_one_dev(device, difference->output);
	}
}

static void print_objects(struct difference *difference, const struct report_device *device,
			  const struct report_view *view, const struct report_view *other)
{
	for (uint32_t i = 0; i < view->record_count; i++) {
		const struct report_record *record = &view->records[i];

		if (other && bsearch(record, other->records, other->record_count, sizeof(*record),
				     compare_records))
			continue;
		if (begin(difference, difference->object))
			show_object(device, view, record, difference->output);
	}
}

static void print_programs(struct difference *difference, bool objects_first)
{
	const struct report_view *view;
	uint32_t next = 0;

	while ((view = devices_next_view(difference->all, difference->filter, &next)) != NULL) {
		const struct report_device *device = devices_of(difference->all, next - 1);
		const struct report_view *other = devices_find_view(difference->other, view);

		if (objects_first)
			print_objects(difference, device, view, other);
		/* An owner appears and goes with its device. */
		if (!other && view->facts.role != REPORT_OWNER &&
		    begin(difference, difference->program))
			show_program(device, view, difference->output);
		if (!objects_first)
			print_objects(difference, device, view, other);
	}
}

bool monitor_compare(struct report_devices *before, struct report_devices *now,
		     const struct report_filter *filter, struct output *output, uint32_t *left)
{
	struct difference gone = {before,	   now,		filter,	     output, left, false,
				  "[UNREGISTER] ", "[DETACH] ", "[DESTROY] "};
	struct difference new = {now,	before,	       filter,	    output,	left,
				 false, "[REGISTER] ", "[ATTACH] ", "[CREATE] "};

	sort_records(before);
	sort_records(now);
	print_programs(&gone, true);
	print_devices(&gone);
	new.ended = gone.ended;
	print_devices(&new);
	print_programs(&new, false);
	return !new.ended;
}

int monitor_run(const struct report_filter *filter, const struct terminal *terminal,
		unsigned int ms, uint32_t lines)
{
	struct report_devices before = {0}, now;
	struct output output;
	bool more = true;
	int rc = devices_look(&before);

	output_begin(&output, false, terminal);
	while (rc == 0 && more) {
		poll(NULL, 0, (int)ms);
		rc = devices_look(&now);
		if (rc != 0)
			break;
		more = monitor_compare(&before, &now, filter, &output, &lines);
		fflush(stdout);
		devices_release(&before);
		before = now;
	}
	devices_release(&before);
	return rc;
}
