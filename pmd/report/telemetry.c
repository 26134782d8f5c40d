/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands in the style of DPDK's own libraries: without a parameter they list the objects, with an
 * object's number they list its fields. A telemetry answer has at most 16 KiB.
 */
#include "report/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "report/set.h"

#define ANSWER_MS 500
#define LIST_MAX  RTE_TEL_MAX_ARRAY_ENTRIES

static struct report_set *telemetry_set;

/* Replace '-': telemetry allows letters, digits and '_' in names. */
static void plain_name(const char *name, char plain[64])
{
	snprintf(plain, 64, "%s", name);
	for (char *c = plain; *c; c++) {
		if (*c == '-')
			*c = '_';
	}
}

static void add_text(void *arg, const char *name, const char *value)
{
	char plain[64];

	plain_name(name, plain);
	rte_tel_data_add_dict_string(arg, plain, value);
}

static void add_number(void *arg, const char *name, uint64_t value)
{
	char plain[64];

	plain_name(name, plain);
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	rte_tel_data_add_dict_uint(arg, plain, value);
#else
	rte_tel_data_add_dict_u64(arg, plain, value);
#endif
}

static bool has_params(const char *params)
{
	return params && params[0] != '\0';
}

/* Return true if the process owns the device's port. */
static bool is_device(const struct report_view *view)
{
	return view->facts.role != REPORT_ATTACHED;
}

static int answer_devices(const struct report_views *views, const char *params, bool link,
			  struct rte_tel_data *data)
{
	const struct report_fields fields = {add_text, add_number, data};

	if (has_params(params))
		rte_tel_data_start_dict(data);
	else
		rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
	for (uint32_t i = 0; i < views->count; i++) {
		const struct report_view *view = &views->list[i];

		if (!is_device(view))
			continue;
		if (!has_params(params)) {
			rte_tel_data_add_array_string(data, view->facts.device);
		} else if (strcmp(params, view->facts.device) == 0) {
			if (link)
				report_tell_link(&view->facts, &fields);
			else
				report_tell_dev(&view->facts, &fields);
			return 0;
		}
	}
	return has_params(params) ? -ENOENT : 0;
}

static int answer_processes(const struct report_views *views, struct rte_tel_data *data)
{
	char pid[16];

	rte_tel_data_start_dict(data);
	for (uint32_t i = 0; i < views->count; i++) {
		snprintf(pid, sizeof(pid), "%d", views->list[i].pid);
		rte_tel_data_add_dict_string(data, pid, views->list[i].comm);
	}
	return 0;
}

/* Answer with the sums of all programs' counters, or with the counters of one process, which may be
 * the owner of a port. */
static int answer_statistic(const struct report_views *views, const char *params,
			    struct rte_tel_data *data)
{
	const struct report_fields fields = {add_text, add_number, data};
	static const struct report_view none;
	struct report_view sum = none;
	const int pid = has_params(params) ? atoi(params) : 0;

	rte_tel_data_start_dict(data);
	for (uint32_t v = 0; v < views->count; v++) {
		const struct report_view *view = &views->list[v];

		if (pid != 0 ? view->pid != pid : view->facts.role == REPORT_OWNER)
			continue;
		if (sum.stat_count == 0)
			sum = *view;
		else
			for (uint32_t i = 0; i < sum.stat_count; i++)
				sum.stats[i].value += report_stat(view, sum.stats[i].name);
	}
	report_tell_stats(&sum, &fields);
	return pid != 0 && sum.stat_count == 0 ? -ENOENT : 0;
}

static int answer_objects(const struct report_views *views, const char *params,
			  enum report_kind kind, struct rte_tel_data *data)
{
	const struct report_fields fields = {add_text, add_number, data};
	char name[32];
	int listed = 0;

	if (has_params(params))
		rte_tel_data_start_dict(data);
	else
		rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
	for (uint32_t v = 0; v < views->count; v++) {
		const struct report_view *view = &views->list[v];

		for (uint32_t i = 0; i < view->record_count; i++) {
			const struct report_record *record = &view->records[i];

			if (record->kind != (uint32_t)kind)
				continue;
			snprintf(name, sizeof(name), "%d/%" PRIu32, view->pid, record->number);
			if (!has_params(params)) {
				if (listed++ < LIST_MAX)
					rte_tel_data_add_array_string(data, name);
			} else if (strcmp(params, name) == 0) {
				report_tell_record(record, &fields);
				add_number(data, "pid", (uint64_t)view->pid);
				add_text(data, "comm", view->comm);
				return 0;
			}
		}
	}
	return has_params(params) ? -ENOENT : 0;
}

static int answer(const struct report_views *views, const char *command, const char *params,
		  struct rte_tel_data *data)
{
	const char *what = strrchr(command, '/') + 1;

	if (strcmp(what, "dev") == 0 || strcmp(what, "link") == 0)
		return answer_devices(views, params, what[0] == 'l', data);
	if (strcmp(what, "processes") == 0)
		return answer_processes(views, data);
	if (strcmp(what, "statistic") == 0)
		return answer_statistic(views, params, data);
	for (int kind = 0; kind < REPORT_KINDS; kind++) {
		if (strcmp(what, report_kind_name((enum report_kind)kind)) == 0)
			return answer_objects(views, params, (enum report_kind)kind, data);
	}
	return -EINVAL;
}

/* Handle a command. Runs on a telemetry thread. */
static int on_command(const char *command, const char *params, struct rte_tel_data *data)
{
	struct report_views views;
	int rc;

	rc = report_set_collect(telemetry_set, ANSWER_MS, &views);
	if (rc != 0)
		return rc;
	rc = answer(&views, command, params, data);
	report_views_release(&views);
	return rc;
}

int report_telemetry_start(struct report_set *set)
{
	static const struct {
		const char *command, *help;
	} commands[] = {
		{"/uroce/dev", "RDMA devices. Parameter: a device"},
		{"/uroce/link", "Their ports. Parameter: a device"},
		{"/uroce/processes", "Processes that show something, by number"},
		{"/uroce/statistic", "Counters of all programs. Parameter: a process's number"},
		{"/uroce/resource/qp", "Queue pairs. Parameter: PID/LQPN"},
		{"/uroce/resource/cq", "Completion queues. Parameter: PID/CQN"},
		{"/uroce/resource/mr", "Memory regions. Parameter: PID/MRN"},
		{"/uroce/resource/pd", "Protection domains. Parameter: PID/PDN"},
		{"/uroce/resource/srq", "Shared receive queues. Parameter: PID/SRQN"},
		{"/uroce/resource/ctx", "Open contexts. Parameter: PID/CTXN"},
		{"/uroce/resource/cm_id",
		 "Connections and listeners of rdma_cm. Parameter: PID/CM-IDN"},
	};
	int rc = 0;

	telemetry_set = set;
	for (size_t i = 0; i < RTE_DIM(commands) && rc == 0; i++)
		rc = rte_telemetry_register_cmd(commands[i].command, on_command, commands[i].help);
	return rc;
}
