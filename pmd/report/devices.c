/* SPDX-License-Identifier: BSD-3-Clause */
/* Group reports by device. A device is a port of an owner, which is uroced or a program with its
 * own port. */
#include "report/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "report/read.h"

#define PORT_NAME_MAX 64
#define ANSWER_MS     500 /* a sleeping process checks for requests more often than this */

/* Return the process that owns the port. */
static pid_t owner_of(const struct report_view *view)
{
	return view->facts.role == REPORT_ATTACHED ? view->facts.owner_pid : view->pid;
}

/* Return true if the report of the owner lists this process as attached to the port. */
static bool names(const struct report_view *owner, const struct report_view *view)
{
	if (owner->facts.role != REPORT_OWNER || strcmp(owner->facts.port, view->facts.port) != 0)
		return false;
	for (uint32_t i = 0; i < owner->attached_count; i++) {
		if (owner->attached[i] == view->pid)
			return true;
	}
	return false;
}

static bool is_believed(const struct report_views *views, const struct report_view *view)
{
	bool seen = false;

	for (uint32_t i = 0; i < views->count; i++) {
		if (views->list[i].pid != view->facts.owner_pid)
			continue;
		if (names(&views->list[i], view))
			return true;
		seen = true;
	}
	return !seen;
}

/* Drop false claims to be attached. */
static void check_roles(const struct report_views *views)
{
	for (uint32_t i = 0; i < views->count; i++) {
		struct report_view *view = &views->list[i];

		if (view->facts.role != REPORT_ATTACHED || is_believed(views, view))
			continue;
		view->facts.role = REPORT_STANDALONE;
		view->facts.owner_pid = 0;
	}
}

static bool is_of(const struct report_device *device, const struct report_view *view)
{
	return owner_of(device->head) == owner_of(view) &&
	       strcmp(device->head->facts.port, view->facts.port) == 0;
}

const struct report_device *devices_find(const struct report_devices *devices,
					 const struct report_view *view)
{
	for (uint32_t i = 0; i < devices->count; i++) {
		if (is_of(&devices->list[i], view))
			return &devices->list[i];
	}
	return NULL;
}

static uint32_t find_or_add(struct report_devices *devices, const struct report_view *view)
{
	const struct report_device *found = devices_find(devices, view);
	const uint32_t i = found ? found->index : devices->count;

	if (!found)
		devices->list[devices->count++] = (struct report_device){.index = i, .head = view};
	return i;
}

static void count_in(struct report_device *device, const struct report_view *view)
{
	if (view->facts.role == REPORT_OWNER) {
		device->head = view;
		return;
	}
	device->processes++;
	for (int kind = 0; kind < REPORT_KINDS; kind++)
		device->totals[kind] += view->totals[kind];
}

/* The arguments of a DPDK device are no part of the network's name. */
static void set_names(struct report_device *device)
{
	const struct report_facts *facts = &device->head->facts;

	device->name = facts->device;
	snprintf(device->net, sizeof(device->net), "%.*s@%d",
		 RTE_MIN(PORT_NAME_MAX, (int)strcspn(facts->port, ",")), facts->port,
		 owner_of(device->head));
}

int devices_sort(struct report_devices *devices, const struct report_views *views)
{
	const uint32_t count = views->count;

	*devices = (struct report_devices){.views = *views};
	devices->list = calloc(count + 1, sizeof(devices->list[0]));
	devices->of = calloc(count + 1, sizeof(devices->of[0]));
	if (!devices->list || !devices->of) {
		devices_release(devices);
		return -ENOMEM;
	}
	check_roles(views);
	for (uint32_t i = 0; i < count; i++) {
		const struct report_view *view = &devices->views.list[i];

		devices->of[i] = find_or_add(devices, view);
		count_in(&devices->list[devices->of[i]], view);
	}
	for (uint32_t i = 0; i < devices->count; i++)
		set_names(&devices->list[i]);
	return 0;
}

int devices_look(struct report_devices *devices)
{
	static struct report_set set;
	struct report_views views;
	int rc;

	report_set_init(&set);
	rc = report_scan(&set);
	if (rc == 0)
		rc = report_set_collect(&set, ANSWER_MS, &views);
	report_set_fini(&set);
	if (rc == 0)
		rc = devices_sort(devices, &views);
	if (rc == 0)
		devices->left_out = set.left_out;
	return rc;
}

void devices_release(struct report_devices *devices)
{
	report_views_release(&devices->views);
	free(devices->list);
	free(devices->of);
}

const struct report_view *devices_find_view(const struct report_devices *devices,
					    const struct report_view *view)
{
	for (uint32_t i = 0; i < devices->views.count; i++) {
		const struct report_view *other = &devices->views.list[i];

		if (other->pid == view->pid && strcmp(other->facts.port, view->facts.port) == 0)
			return other;
	}
	return NULL;
}

static bool is_net(const char *wanted, const char *net)
{
	const size_t len = strlen(wanted);

	return strncmp(wanted, net, len) == 0 && (net[len] == '\0' || net[len] == '@');
}

static bool wants_device(const struct report_filter *filter, const struct report_device *device)
{
	if (filter->device && strcmp(filter->device, device->name) != 0)
		return false;
	return !filter->net || is_net(filter->net, device->net);
}

static bool wants_view(const struct report_filter *filter, const struct report_view *view)
{
	return filter->pid == 0 || filter->pid == view->pid;
}

static bool wants(const struct report_devices *devices, const struct report_filter *filter,
		  uint32_t i)
{
	if (!wants_device(filter, &devices->list[i]))
		return false;
	for (uint32_t v = 0; v < devices->views.count; v++) {
		if (devices->of[v] == i && wants_view(filter, &devices->views.list[v]))
			return true;
	}
	return false;
}

const struct report_device *devices_next(const struct report_devices *devices,
					 const struct report_filter *filter, uint32_t *next)
{
	while (*next < devices->count) {
		const uint32_t i = (*next)++;

		if (wants(devices, filter, i))
			return &devices->list[i];
	}
	return NULL;
}

const struct report_view *devices_next_view(const struct report_devices *devices,
					    const struct report_filter *filter, uint32_t *next)
{
	while (*next < devices->views.count) {
		const uint32_t v = (*next)++;
		const struct report_view *view = &devices->views.list[v];

		if (wants_device(filter, devices_of(devices, v)) && wants_view(filter, view))
			return view;
	}
	return NULL;
}
