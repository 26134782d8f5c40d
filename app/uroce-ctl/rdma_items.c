/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the files of a view and the reports of its processes. */
#include "rdma.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>
#include <rte_common.h>

#include "ctl_output.h"
#include "report/devices.h"
#include "view/table.h"

#define PORT 1 /* the only port of a device */

/* A device of the view. */
struct shown {
	uint32_t index;
	char name[VIEW_NAME_MAX];
};

struct shown_devices {
	struct shown list[VIEW_DEVICES_MAX];
	uint32_t count;
};

/* Add a field. Omit it if memory is short. */
static void add(struct json_object *item, const char *name, struct json_object *value)
{
	if (value && json_object_object_add(item, name, value) != 0)
		json_object_put(value);
}

static void add_text(struct json_object *item, const char *name, const char *value)
{
	add(item, name, json_object_new_string(value));
}

static void add_number(struct json_object *item, const char *name, uint64_t value)
{
	add(item, name, json_object_new_uint64(value));
}

static void end_item(struct json_object *items, struct json_object *item)
{
	if (json_object_array_add(items, item) != 0)
		json_object_put(item);
}

/* Read the first line of a file of a directory, "" if there is none. */
static void read_file(char *line, size_t size, const char *dir, const char *name)
{
	char path[PATH_MAX];

	line[0] = '\0';
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		read_line(path, line, size);
}

/* Find the first entry of a directory, "" if there is none. */
static void read_entry(char *name, size_t size, const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	name[0] = '\0';
	if (!dir)
		return;
	while (name[0] == '\0' && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			snprintf(name, size, "%s", entry->d_name);
	closedir(dir);
}

static int by_index(const void *a, const void *b)
{
	const struct shown *left = a, *right = b;

	return (left->index > right->index) - (left->index < right->index);
}

static void find_devices(struct shown_devices *devices)
{
	DIR *dir = opendir("/" VIEW_CLASS_VERBS);
	const struct dirent *entry;
	char path[PATH_MAX];

	devices->count = 0;
	if (!dir)
		return;
	while (devices->count < VIEW_DEVICES_MAX && (entry = readdir(dir)) != NULL) {
		struct shown *shown = &devices->list[devices->count];

		if (sscanf(entry->d_name, "uverbs%u", &shown->index) != 1)
			continue;
		snprintf(path, sizeof(path), "/" VIEW_CLASS_VERBS "/%s", entry->d_name);
		read_file(shown->name, sizeof(shown->name), path, "ibdev");
		if (shown->name[0] != '\0')
			devices->count++;
	}
	closedir(dir);
	qsort(devices->list, devices->count, sizeof(devices->list[0]), by_index);
}

static struct json_object *begin_item(const struct shown *shown)
{
	struct json_object *item = json_object_new_object();

	add_number(item, "ifindex", shown->index);
	add_text(item, "ifname", shown->name);
	return item;
}

/* Return what follows "N: " in a file of sysfs. */
static const char *after_number(const char *line)
{
	const char *colon = strstr(line, ": ");

	return colon ? colon + 2 : line;
}

static struct json_object *dev_item(const struct shown *shown)
{
	static const struct {
		const char *name, *file;
	} fields[] = {
		{"fw", "fw_ver"},
		{"node_guid", "node_guid"},
		{"sys_image_guid", "sys_image_guid"},
	};
	struct json_object *item = begin_item(shown);
	char dir[PATH_MAX], line[256];

	snprintf(dir, sizeof(dir), "/" VIEW_CLASS "/%s", shown->name);
	read_file(line, sizeof(line), dir, "node_type");
	for (char *at = line; *at != '\0'; at++)
		*at = (char)tolower((unsigned char)*at);
	add_text(item, "node_type", after_number(line));
	add_text(item, "protocol", "roce");
	for (size_t i = 0; i < RTE_DIM(fields); i++) {
		read_file(line, sizeof(line), dir, fields[i].file);
		add_text(item, fields[i].name, line);
	}
	return item;
}

static struct json_object *link_item(const struct shown *shown)
{
	static const char *const phys_states[] = {
		[0] = "NOP",
		[2] = "POLLING",
		[3] = "DISABLED",
		[5] = "LINK_UP",
	};
	struct json_object *item = begin_item(shown);
	char dir[PATH_MAX], path[PATH_MAX], line[256];
	unsigned long number;
	unsigned int netdev;

	snprintf(dir, sizeof(dir), "/" VIEW_CLASS "/%s/ports/%d", shown->name, PORT);
	add_number(item, "port", PORT);
	read_file(line, sizeof(line), dir, "state");
	add_text(item, "state", after_number(line));
	read_file(line, sizeof(line), dir, "phys_state");
	number = strtoul(line, NULL, 10);
	add_text(item, "physical_state",
		 number < RTE_DIM(phys_states) && phys_states[number] ? phys_states[number]
								      : "UNKNOWN");
	snprintf(path, sizeof(path), "/" VIEW_CLASS "/%s/device/net", shown->name);
	read_entry(line, sizeof(line), path);
	if (line[0] == '\0')
		return item;
	add_text(item, "netdev", line);
	netdev = if_nametoindex(line);
	if (netdev != 0)
		add_number(item, "netdev_index", netdev);
	return item;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static struct json_object *statistic_item(const struct shown *shown)
{
	struct json_object *item = json_object_new_object();
	char dir[PATH_MAX], line[64];
	struct dirent **names;
	int count;

	add_text(item, "ifname", shown->name);
	add_number(item, "port", PORT);
	snprintf(dir, sizeof(dir), "/" VIEW_CLASS "/%s/ports/%d/hw_counters", shown->name, PORT);
	count = scandir(dir, &names, NULL, by_name);
	for (int i = 0; i < count; i++) {
		read_file(line, sizeof(line), dir, names[i]->d_name);
		/* The kernel's name for the age of the files: not a counter. */
		if (names[i]->d_name[0] != '.' && strcmp(names[i]->d_name, "lifespan") != 0)
			add_number(item, names[i]->d_name, strtoull(line, NULL, 10));
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	return item;
}

/* Return true if a process has the same environment variable as this one. */
static bool has_variable(pid_t pid, const char *name, const char *value)
{
	const size_t len = strlen(name);
	char path[64], *text = NULL;
	bool found = false;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && getdelim(&text, &size, '\0', file) > 0)
		found = strncmp(text, name, len) == 0 && text[len] == '=' &&
			strcmp(text + len + 1, value) == 0;
	free(text);
	fclose(file);
	return found;
}

/* Return true if a process is of this process's view: it has the same mount namespace, or the same
 * directory of files. */
static bool is_of_view(pid_t pid)
{
	const char *view = getenv(VIEW_VARIABLE);
	char path[64], ours[64] = "", theirs[64] = "";

	if (strcmp(view, "/") != 0)
		return has_variable(pid, VIEW_VARIABLE, view);
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) > 0 &&
	       readlink(path, theirs, sizeof(theirs) - 1) > 0 && strcmp(ours, theirs) == 0;
}

/* Return the next report of a device by a process of this view, or NULL. */
static const struct report_view *next_report(const struct report_devices *reports,
					     const struct shown *shown, uint32_t *next)
{
	const struct report_filter all = {0};

	for (const struct report_view *view; (view = devices_next_view(reports, &all, next));)
		if (strcmp(view->facts.device, shown->name) == 0 && is_of_view(view->pid))
			return view;
	return NULL;
}

static struct json_object *summary_item(const struct report_devices *reports,
					const struct shown *shown)
{
	static const enum report_kind order[] = {
		REPORT_PD, REPORT_CQ, REPORT_QP, REPORT_CM_ID, REPORT_MR, REPORT_CTX, REPORT_SRQ,
	};
	struct json_object *item = begin_item(shown);
	uint64_t totals[REPORT_KINDS] = {0};
	uint32_t next = 0;

	for (const struct report_view *view; (view = next_report(reports, shown, &next));)
		for (int kind = 0; kind < REPORT_KINDS; kind++)
			totals[kind] += view->totals[kind];
	for (size_t i = 0; i < RTE_DIM(order); i++)
		add_number(item, report_kind_name(order[i]), totals[order[i]]);
	return item;
}

static void field_text(void *arg, const char *name, const char *value)
{
	add_text(arg, name, value);
}

static void field_number(void *arg, const char *name, uint64_t value)
{
	add_number(arg, name, value);
}

/* Return true if an object has a port: a queue pair that is not in RESET, a connection that has an
 * address of the device. */
static bool has_port(const struct report_record *record)
{
	static const uint8_t any[sizeof(record->cm_id.local)];

	if (record->kind == REPORT_QP)
		return record->qp.state != IBV_QPS_RESET;
	return record->kind == REPORT_CM_ID && memcmp(record->cm_id.local, any, sizeof(any)) != 0;
}

/* Return true if a request asks for an object with these fields. */
static bool is_wanted(const struct rdma_request *request, const struct report_record *record,
		      struct json_object *fields)
{
	if (record->kind != (uint32_t)request->kind ||
	    (request->port == RDMA_PORT_ONE && !has_port(record)) ||
	    (request->port == RDMA_PORT_NONE && has_port(record)))
		return false;
	for (uint32_t i = 0; i < request->filter_count; i++) {
		struct json_object *value =
			json_object_object_get(fields, request->filters[i].name);

		if (!value ||
		    !rdma_matches(request->filters[i].value, json_object_get_string(value)))
			return false;
	}
	return true;
}

static void add_object(struct json_object *items, const struct rdma_request *request,
		       const struct shown *shown, const struct report_view *view,
		       const struct report_record *record)
{
	struct json_object *all = json_object_new_object(), *item, *value;
	const struct report_fields fields = {
		.text = field_text, .number = field_number, .arg = all};

	report_tell_record(record, &fields);
	add_number(all, "pid", (uint64_t)view->pid);
	add_text(all, "comm", view->comm);
	if (is_wanted(request, record, all)) {
		item = begin_item(shown);
		if (has_port(record))
			add_number(item, "port", PORT);
		for (const char *const *name = rdma_field_names(request->kind); *name; name++)
			if (json_object_object_get_ex(all, *name, &value))
				add(item, *name, json_object_get(value));
		end_item(items, item);
	}
	json_object_put(all);
}

static void add_objects(struct json_object *items, const struct rdma_request *request,
			const struct report_devices *reports, const struct shown *shown)
{
	uint32_t next = 0;

	for (const struct report_view *view; (view = next_report(reports, shown, &next));)
		for (uint32_t i = 0; i < view->record_count; i++)
			add_object(items, request, shown, view, &view->records[i]);
}

static void add_items(struct json_object *items, const struct rdma_request *request,
		      const struct report_devices *reports, const struct shown *shown)
{
	switch (request->show) {
	case RDMA_DEV:
		end_item(items, dev_item(shown));
		break;
	case RDMA_LINK:
		end_item(items, link_item(shown));
		break;
	case RDMA_STATISTIC:
		end_item(items, statistic_item(shown));
		break;
	case RDMA_SUMMARY:
		end_item(items, summary_item(reports, shown));
		break;
	case RDMA_OBJECTS:
		add_objects(items, request, reports, shown);
		break;
	case RDMA_HELP:
	case RDMA_VERSION:
		break;
	}
}

/* Say that a device is not there, in the words of rdma(8). */
static void refuse(const struct rdma_request *request, char *error, size_t error_size)
{
	if (request->show == RDMA_SUMMARY)
		snprintf(error, error_size, "Unknown parameter '%s'.", request->device);
	else if (request->show == RDMA_DEV ||
		 (request->show == RDMA_OBJECTS && request->kind != REPORT_QP &&
		  request->kind != REPORT_CM_ID))
		snprintf(error, error_size, "Wrong device name - %s", request->device);
	else
		snprintf(error, error_size, "Wrong device name");
}

struct json_object *rdma_items(const struct rdma_request *request, char *error, size_t error_size)
{
	const bool asks = request->show == RDMA_SUMMARY || request->show == RDMA_OBJECTS;
	struct json_object *items = json_object_new_array();
	struct report_devices reports = {0};
	struct shown_devices devices;
	bool found = request->device[0] == '\0';
	int rc;

	find_devices(&devices);
	rc = asks ? devices_look(&reports) : 0;
	for (uint32_t i = 0; rc == 0 && i < devices.count; i++) {
		if (request->device[0] != '\0' &&
		    strcmp(request->device, devices.list[i].name) != 0)
			continue;
		found = true;
		add_items(items, request, &reports, &devices.list[i]);
	}
	if (asks && rc == 0)
		devices_release(&reports);
	if (rc == 0 && found)
		return items;
	if (rc != 0)
		snprintf(error, error_size, "rdma: %s", strerror(-rc));
	else
		refuse(request, error, error_size);
	json_object_put(items);
	return NULL;
}
