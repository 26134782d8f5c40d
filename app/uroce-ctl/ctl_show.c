/* SPDX-License-Identifier: BSD-3-Clause */
/* Show devices, links, objects and counters in the format of rdma(8). */
#include "ctl_show.h"

#include <stdio.h>

bool show_is_there(const struct report_devices *devices, const struct report_filter *filter,
		   char *error, size_t error_size)
{
	uint32_t next = 0;

	if ((!filter->device && !filter->net && filter->pid == 0) ||
	    devices_next(devices, filter, &next))
		return true;
	if (filter->pid != 0)
		snprintf(error, error_size, "process %d has no such device; see 'dev'",
			 filter->pid);
	else if (filter->device)
		snprintf(error, error_size, "there is no device '%s'%s; see 'dev'", filter->device,
			 filter->net ? " in that network" : "");
	else
		snprintf(error, error_size, "there is no network '%s'; see 'dev'", filter->net);
	return false;
}

bool show_is_one(const struct report_devices *devices, const struct report_filter *filter,
		 char *error, size_t error_size)
{
	const struct report_device *device;
	uint32_t next = 0, count = 0;
	size_t len;

	len = (size_t)snprintf(error, error_size, "there are several; add 'net NET' or 'pid PID':");
	while ((device = devices_next(devices, filter, &next)) != NULL) {
		count++;
		if (len < error_size)
			len += (size_t)snprintf(error + len, error_size - len,
						"%s %s of net %s (%s)", count > 1 ? "," : "",
						device->name, device->net, device->head->comm);
	}
	if (count <= 1)
		error[0] = '\0';
	return count <= 1;
}

static void add_process(const struct report_view *view, struct output *output)
{
	output_number(output, "pid", (uint64_t)view->pid);
	output_text(output, "comm", view->comm);
	/* Mark an old report: the process is stopped, or it runs its engine only while it polls. */
	if (!view->fresh)
		output_text(output, "answer", "old");
}

/* Say whose device it is. An owner's report may be out of our reach. */
static void add_owner(const struct report_device *device, struct output *output)
{
	if (device->head->facts.role == REPORT_ATTACHED)
		output_number(output, "owner-pid", (uint64_t)device->head->facts.owner_pid);
	else
		add_process(device->head, output);
}

void show_one_dev(const struct report_device *device, struct output *output)
{
	output_dev(output, device);
	report_tell_dev(&device->head->facts, &output->fields);
	output_number(output, "processes", device->processes);
	add_owner(device, output);
	output_item_end(output);
}

void show_dev(const struct report_devices *devices, const struct report_filter *filter,
	      struct output *output)
{
	uint32_t next = 0;

	for (const struct report_device *device; (device = devices_next(devices, filter, &next));)
		show_one_dev(device, output);
}

void show_program(const struct report_device *device, const struct report_view *view,
		  struct output *output)
{
	output_link(output, device);
	add_process(view, output);
	output_item_end(output);
}

void show_link(const struct report_devices *devices, const struct report_filter *filter,
	       struct output *output)
{
	uint32_t next = 0;

	for (const struct report_device *device; (device = devices_next(devices, filter, &next));) {
		output_link(output, device);
		report_tell_link(&device->head->facts, &output->fields);
		add_owner(device, output);
		output_item_end(output);
	}
}

void show_summary(const struct report_devices *devices, const struct report_filter *filter,
		  struct output *output)
{
	uint32_t next = 0;

	for (const struct report_device *device; (device = devices_next(devices, filter, &next));) {
		output_dev(output, device);
		for (int kind = 0; kind < REPORT_KINDS; kind++)
			output_number(output, report_kind_name((enum report_kind)kind),
				      device->totals[kind]);
		add_owner(device, output);
		output_item_end(output);
	}
}

void show_object(const struct report_device *device, const struct report_view *view,
		 const struct report_record *record, struct output *output)
{
	if (record->kind == REPORT_QP || record->kind == REPORT_CM_ID)
		output_link(output, device);
	else
		output_dev(output, device);
	report_tell_record(record, &output->fields);
	add_process(view, output);
	output_item_end(output);
}

void show_objects(const struct report_devices *devices, const struct report_filter *filter,
		  enum report_kind kind, struct output *output)
{
	uint32_t next = 0;

	for (const struct report_view *view; (view = devices_next_view(devices, filter, &next));) {
		const struct report_device *device = devices_of(devices, next - 1);

		for (uint32_t i = 0; i < view->record_count; i++) {
			if (view->records[i].kind == (uint32_t)kind)
				show_object(device, view, &view->records[i], output);
		}
	}
}

void show_statistic(const struct report_devices *devices, const struct report_filter *filter,
		    struct output *output)
{
	uint32_t next = 0;

	for (const struct report_view *view; (view = devices_next_view(devices, filter, &next));) {
		const struct report_device *device = devices_of(devices, next - 1);

		output_link(output, device);
		add_process(view, output);
		report_tell_stats(view, &output->fields);
		output_item_end(output);
	}
}

void show_congestion(const struct report_devices *devices, const struct report_filter *filter,
		     struct output *output)
{
	uint32_t next = 0;

	for (const struct report_view *view; (view = devices_next_view(devices, filter, &next));) {
		const struct report_device *device = devices_of(devices, next - 1);

		/* An owner has no queue pairs. */
		if (view->facts.role == REPORT_OWNER)
			continue;
		output_link(output, device);
		add_process(view, output);
		report_tell_congestion(view, &output->fields);
		output_item_end(output);
	}
}
