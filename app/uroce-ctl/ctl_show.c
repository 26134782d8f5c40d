/* SPDX-License-Identifier: BSD-3-Clause */
/* Show devices, links, objects and counters in the format of rdma(8). */
#include "ctl_show.h"

#include <string.h>

static bool wants_device(const struct show_filter *filter, const struct ctl_device *device)
{
	return !filter->device || strcmp(filter->device, device->name) == 0;
}

static bool wants_view(const struct show_filter *filter, const struct report_view *view)
{
	return filter->pid == 0 || filter->pid == view->pid;
}

static const struct ctl_device *device_of(const struct ctl_devices *devices, uint32_t view)
{
	return &devices->list[devices->of[view]];
}

/* Return true if the filter shows this device: one of its processes must pass as well. */
static bool wants(const struct ctl_devices *devices, const struct show_filter *filter, uint32_t i)
{
	if (!wants_device(filter, &devices->list[i]))
		return false;
	for (uint32_t v = 0; v < devices->views.count; v++) {
		if (devices->of[v] == i && wants_view(filter, &devices->views.list[v]))
			return true;
	}
	return false;
}

/* Return the first device from index *next on that the filter shows, or NULL. Set *next to the
 * index after it. */
static const struct ctl_device *next_device(const struct ctl_devices *devices,
					    const struct show_filter *filter, uint32_t *next)
{
	while (*next < devices->count) {
		const uint32_t i = (*next)++;

		if (wants(devices, filter, i))
			return &devices->list[i];
	}
	return NULL;
}

/* Do the same for views. */
static const struct report_view *next_view(const struct ctl_devices *devices,
					   const struct show_filter *filter, uint32_t *next)
{
	while (*next < devices->views.count) {
		const uint32_t v = (*next)++;
		const struct report_view *view = &devices->views.list[v];

		if (wants_device(filter, device_of(devices, v)) && wants_view(filter, view))
			return view;
	}
	return NULL;
}

static void add_process(struct output *output, const struct report_view *view)
{
	output_number(output, "pid", (uint64_t)view->pid);
	output_text(output, "comm", view->comm);
	/* Mark an old report: the process is stopped, or it runs its engine only while it polls. */
	if (!view->fresh)
		output_text(output, "answer", "old");
}

void show_dev(const struct ctl_devices *devices, const struct show_filter *filter,
	      struct output *output)
{
	uint32_t next = 0;

	for (const struct ctl_device *device; (device = next_device(devices, filter, &next));) {
		output_dev(output, device->index, device->name);
		report_tell_dev(&device->head->facts, &output->fields);
		output_number(output, "processes", device->processes);
		if (device->head->facts.role == REPORT_ATTACHED)
			output_number(output, "owner-pid", (uint64_t)device->head->facts.owner_pid);
		else
			add_process(output, device->head);
		output_item_end(output);
	}
}

void show_link(const struct ctl_devices *devices, const struct show_filter *filter,
	       struct output *output)
{
	uint32_t next = 0;

	for (const struct ctl_device *device; (device = next_device(devices, filter, &next));) {
		output_link(output, device->index, device->name);
		report_tell_link(&device->head->facts, &output->fields);
		output_item_end(output);
	}
}

void show_summary(const struct ctl_devices *devices, const struct show_filter *filter,
		  struct output *output)
{
	uint32_t next = 0;

	for (const struct ctl_device *device; (device = next_device(devices, filter, &next));) {
		output_dev(output, device->index, device->name);
		for (int kind = 0; kind < REPORT_KINDS; kind++)
			output_number(output, report_kind_name((enum report_kind)kind),
				      device->totals[kind]);
		output_item_end(output);
	}
}

void show_objects(const struct ctl_devices *devices, const struct show_filter *filter,
		  enum report_kind kind, struct output *output)
{
	uint32_t next = 0;

	for (const struct report_view *view; (view = next_view(devices, filter, &next));) {
		const struct ctl_device *device = device_of(devices, next - 1);

		for (uint32_t i = 0; i < view->record_count; i++) {
			if (view->records[i].kind != (uint32_t)kind)
				continue;
			if (kind == REPORT_QP)
				output_link(output, device->index, device->name);
			else
				output_dev(output, device->index, device->name);
			report_tell_record(&view->records[i], &output->fields);
			add_process(output, view);
			output_item_end(output);
		}
	}
}

void show_statistic(const struct ctl_devices *devices, const struct show_filter *filter,
		    struct output *output)
{
	uint32_t next = 0;

	for (const struct report_view *view; (view = next_view(devices, filter, &next));) {
		const struct ctl_device *device = device_of(devices, next - 1);

		output_link(output, device->index, device->name);
		add_process(output, view);
		report_tell_stats(view, &output->fields);
		output_item_end(output);
	}
}
