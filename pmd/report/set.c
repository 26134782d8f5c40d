/* SPDX-License-Identifier: BSD-3-Clause */
/* Ask many processes for their reports at once. A stopped process costs no more time than the
 * others. */
#include "report/set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/write.h"

#define ROUNDS 1000 /* in which reports that are being written are tried again */
#define COPIES 3    /* that a write may spoil; a correct writer does not write that often */

void report_set_init(struct report_set *set)
{
	pthread_mutex_init(&set->lock, NULL);
	set->count = 0;
	set->left_out = 0;
}

int report_set_add(struct report_set *set, pid_t pid, pid_t owner, struct report *report)
{
	struct report_source *source = malloc(sizeof(*source));
	int rc = 0;

	if (!source)
		return -ENOMEM;
	*source =
		(struct report_source){.pid = pid, .owner = owner, .holders = 1, .report = report};
	pthread_mutex_lock(&set->lock);
	if (set->count == REPORT_SET_MAX)
		rc = -ENOSPC;
	else
		set->sources[set->count++] = source;
	pthread_mutex_unlock(&set->lock);
	if (rc != 0)
		free(source);
	return rc;
}

static void source_drop(struct report_set *set, struct report_source *source)
{
	bool last;

	pthread_mutex_lock(&set->lock);
	last = --source->holders == 0;
	pthread_mutex_unlock(&set->lock);
	if (!last)
		return;
	report_unmap(source->report);
	free(source);
}

void report_set_remove(struct report_set *set, struct report *report)
{
	struct report_source *source = NULL;

	pthread_mutex_lock(&set->lock);
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->sources[i]->report != report)
			continue;
		source = set->sources[i];
		set->sources[i] = set->sources[--set->count];
		break;
	}
	pthread_mutex_unlock(&set->lock);
	if (source)
		source_drop(set, source);
}

void report_set_fini(struct report_set *set)
{
	while (set->count > 0)
		report_set_remove(set, set->sources[0]->report);
	pthread_mutex_destroy(&set->lock);
}

/* The reports that one collection reads. The set is not locked meanwhile: reports are large, and
 * may be written all the time. */
struct look {
	uint32_t count;
	uint32_t asked[REPORT_SET_MAX];
	struct report_source *sources[REPORT_SET_MAX];
	bool is_done[REPORT_SET_MAX];
	uint8_t spoilt[REPORT_SET_MAX]; /* copies */
};

static void look_begin(struct look *look, struct report_set *set)
{
	pthread_mutex_lock(&set->lock);
	look->count = set->count;
	for (uint32_t i = 0; i < set->count; i++) {
		look->sources[i] = set->sources[i];
		look->sources[i]->holders++;
	}
	pthread_mutex_unlock(&set->lock);
	for (uint32_t i = 0; i < look->count; i++)
		look->asked[i] = report_ask(look->sources[i]->report);
}

static void look_end(struct look *look, struct report_set *set)
{
	for (uint32_t i = 0; i < look->count; i++)
		source_drop(set, look->sources[i]);
}

static bool is_answered(const struct look *look, uint32_t i)
{
	return report_answered(look->sources[i]->report, look->asked[i]);
}

static bool all_answered(const struct look *look)
{
	for (uint32_t i = 0; i < look->count; i++) {
		if (!is_answered(look, i))
			return false;
	}
	return true;
}

static int compare_views(const void *left, const void *right)
{
	const struct report_view *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return strcmp(a->facts.device, b->facts.device);
}

/* Copy a report, unless it is being written. Return true if it is to be tried again. */
static bool read_one(struct look *look, uint32_t i, struct report_views *views)
{
	const struct report_source *source = look->sources[i];
	struct report_view *view = &views->list[views->count];
	const int rc = report_read(source->report, view);

	if (rc == -EAGAIN || (rc == -ESTALE && ++look->spoilt[i] < COPIES))
		return true;
	look->is_done[i] = true;
	if (rc != 0)
		return false;
	view->pid = source->pid;
	if (source->owner != 0) {
		view->facts.role = REPORT_ATTACHED;
		view->facts.owner_pid = source->owner;
	}
	view->fresh = is_answered(look, i);
	report_comm(source->pid, view->comm);
	views->count++;
	return false;
}

/* Read all reports. Those that are being written are waited for together: their writers may say so
 * for ever. */
static int read_all(struct look *look, struct report_views *views)
{
	bool again = true;

	views->list = calloc(look->count + 1, sizeof(views->list[0]));
	if (!views->list)
		return -ENOMEM;
	for (int round = 0; round < ROUNDS && again; round++) {
		if (round > 0)
			usleep(10);
		again = false;
		for (uint32_t i = 0; i < look->count; i++)
			again |= !look->is_done[i] && read_one(look, i, views);
	}
	qsort(views->list, views->count, sizeof(views->list[0]), compare_views);
	return 0;
}

int report_set_collect(struct report_set *set, unsigned int ms, struct report_views *views)
{
	struct look *look = calloc(1, sizeof(*look));
	int rc;

	views->count = 0;
	views->list = NULL;
	if (!look)
		return -ENOMEM;
	look_begin(look, set);
	for (unsigned int waited = 0; waited < ms && !all_answered(look); waited++)
		usleep(1000);
	rc = read_all(look, views);
	look_end(look, set);
	free(look);
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
