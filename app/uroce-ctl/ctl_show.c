/* SPDX-License-Identifier: BSD-3-Clause */
/* Show devices, links, objects and counters in the format of rdma(8), and give commands to the
 * programs that a filter selects, one after the other. */
#include "ctl_show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "report/read.h"

#define ANSWER_MS 2000

/* The reports of all processes, to write into them. */
struct givers {
	struct report_set set;
	const struct command *command;
	uint32_t processes; /* that were given commands */
	uint32_t failed;    /* of these */
};

/* Find the report that a view is a copy of; NULL if its process has ended. */
static struct report *find_report(struct report_set *set, const struct report_view *view)
{
	for (uint32_t i = 0; i < set->count; i++) {
		struct report *report = set->sources[i]->report;

		if (set->sources[i]->pid == view->pid &&
		    strncmp(report->facts.device, view->facts.device,
			    sizeof(report->facts.device)) == 0)
			return report;
	}
	return NULL;
}

/* Return true if a program has this queue pair, or may have it: a report does not have room for
 * all. */
static bool has_qp(const struct report_view *view, uint32_t qpn)
{
	return report_find_qp(view, qpn) || view->record_count == REPORT_RECORDS_MAX;
}

static const char *reason(int rc)
{
	switch (rc) {
	case -ESRCH:
		return "it has ended";
	case -ETIMEDOUT:
		return "it does not answer: it is stopped, or runs its device only while it polls";
	case -EINPROGRESS:
		return "it did not say if it has done this";
	case -ENOENT:
		return "it has no such queue pair";
	case -EOPNOTSUPP:
		return "a queue pair of this type cannot have this algorithm";
	default:
		return strerror(-rc);
	}
}

static int give_all(struct givers *givers, const struct report_view *view)
{
	struct report *report = find_report(&givers->set, view);
	int rc = report ? 0 : -ESRCH;

	for (uint32_t i = 0; rc == 0 && i < givers->command->change_count; i++)
		rc = report_command_give(report, &givers->command->changes[i], ANSWER_MS);
	return rc;
}

static bool has_filter(const struct report_filter *filter)
{
	return filter->device || filter->net || filter->pid != 0;
}

/* An owner has no queue pairs; its programs have reports of their own. Without a filter the
 * messages that are meant are those of owners. */
static bool is_meant(const struct command *command, const struct report_view *view)
{
	const bool is_owner = view->facts.role == REPORT_OWNER;

	if (command->object == COMMAND_LOG)
		return is_owner || has_filter(&command->filter);
	return !is_owner && (command->qpn == 0 || has_qp(view, command->qpn));
}

static void give(struct givers *givers, const struct report_view *view)
{
	const int rc = give_all(givers, view);

	givers->processes++;
	if (rc == 0)
		return;
	givers->failed++;
	fprintf(stderr, "uroce-ctl: process %d (%s): %s\n", view->pid, view->comm, reason(rc));
}

void change_give(const struct report_devices *devices, const struct command *command, char *error,
		 size_t error_size)
{
	static struct givers givers;
	const struct report_view *view;
	uint32_t next = 0;
	int rc;

	/* Many programs may have a device of this name. A process is named on purpose. */
	if (has_filter(&command->filter) && command->filter.pid == 0 &&
	    !show_is_one(devices, &command->filter, error, error_size))
		return;
	givers = (struct givers){.command = command};
	report_set_init(&givers.set);
	rc = report_scan(&givers.set);
	while (rc == 0 && (view = devices_next_view(devices, &command->filter, &next))) {
		if (is_meant(command, view))
			give(&givers, view);
	}
	report_set_fini(&givers.set);
	if (rc != 0)
		snprintf(error, error_size, "%s", strerror(-rc));
	else if (givers.processes == 0)
		snprintf(error, error_size, "%s",
			 command->qpn != 0		? "there is no such queue pair"
			 : has_filter(&command->filter) ? "no program has the device"
							: "no uroced runs");
	else if (givers.failed > 0)
		snprintf(error, error_size, "%u of %u programs did not change all", givers.failed,
			 givers.processes);
}

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
