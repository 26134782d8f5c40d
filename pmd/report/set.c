/* SPDX-License-Identifier: BSD-3-Clause */
/* One question to many processes; who is stopped is not waited for any longer than the others. */
#include "report/set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/write.h"

void report_set_init(struct report_set *set)
{
	pthread_mutex_init(&set->lock, NULL);
	set->count = 0;
}

int report_set_add(struct report_set *set, pid_t pid, struct report *report)
{
	int rc = 0;

	pthread_mutex_lock(&set->lock);
	if (set->count == REPORT_SET_MAX)
		rc = -ENOSPC;
	else
		set->sources[set->count++] = (struct report_source){.pid = pid, .report = report};
	pthread_mutex_unlock(&set->lock);
	return rc;
}

void report_set_remove(struct report_set *set, struct report *report)
{
	pthread_mutex_lock(&set->lock);
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->sources[i].report != report)
			continue;
		set->sources[i] = set->sources[--set->count];
		report_unmap(report);
		break;
	}
	pthread_mutex_unlock(&set->lock);
}

void report_set_fini(struct report_set *set)
{
	while (set->count > 0)
		report_set_remove(set, set->sources[0].report);
	pthread_mutex_destroy(&set->lock);
}

static void ask_all(struct report_set *set)
{
	pthread_mutex_lock(&set->lock);
	for (uint32_t i = 0; i < set->count; i++)
		set->sources[i].asked = report_ask(set->sources[i].report);
	pthread_mutex_unlock(&set->lock);
}

static bool is_answered(const struct report_source *source)
{
	return report_answered(source->report, source->asked);
}

static bool all_answered(struct report_set *set)
{
	bool all = true;

	pthread_mutex_lock(&set->lock);
	for (uint32_t i = 0; i < set->count; i++)
		all &= is_answered(&set->sources[i]);
	pthread_mutex_unlock(&set->lock);
	return all;
}

static int compare_views(const void *left, const void *right)
{
	const struct report_view *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return strcmp(a->facts.device, b->facts.device);
}

static int read_all_locked(struct report_set *set, struct report_views *views)
{
	views->list = calloc(set->count + 1, sizeof(views->list[0]));
	if (!views->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->count; i++) {
		const struct report_source *source = &set->sources[i];
		struct report_view *view = &views->list[views->count];

		if (report_read(source->report, view) != 0)
			continue;
		view->pid = source->pid;
		view->fresh = is_answered(source);
		report_comm(source->pid, view->comm);
		views->count++;
	}
	qsort(views->list, views->count, sizeof(views->list[0]), compare_views);
	return 0;
}

int report_set_collect(struct report_set *set, unsigned int ms, struct report_views *views)
{
	int rc;

	views->count = 0;
	ask_all(set);
	for (unsigned int waited = 0; waited < ms && !all_answered(set); waited++)
		usleep(1000);
	pthread_mutex_lock(&set->lock);
	rc = read_all_locked(set, views);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

void report_views_release(struct report_views *views)
{
	for (uint32_t i = 0; i < views->count; i++)
		report_release(&views->list[i]);
	free(views->list);
	views->list = NULL;
	views->count = 0;
}
