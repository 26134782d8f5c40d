/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads that measure. */
#include "team.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

static void member_work(struct team_member *member)
{
	struct team *team = member->team;

	member->round = team->round;
	if (member->number >= team->parts)
		return;
	pthread_mutex_unlock(&team->lock);
	team->job(member);
	pthread_mutex_lock(&team->lock);
	team->busy--;
	pthread_cond_broadcast(&team->changed);
}

static void member_run(void *arg)
{
	struct team_member *member = arg;
	struct team *team = member->team;

	pthread_mutex_lock(&team->lock);
	while (!team->stopped) {
		if (member->round != team->round)
			member_work(member);
		else
			pthread_cond_wait(&team->changed, &team->lock);
	}
	pthread_mutex_unlock(&team->lock);
}

static int team_add(struct team *team, struct nic *nic, struct control *control)
{
	struct team_member *member = calloc(1, sizeof(*member));
	int rc;

	if (!member)
		return -ENOMEM;
	member->team = team;
	member->number = team->count;
	member->nic = &member->thread.nic;
	member->round = team->round;
	if (member->number == 0) {
		member->control = control;
		nic_thread_pin(0);
		rc = nic_share(nic, member->nic);
	} else {
		member->control = &member->own_control;
		rc = nic_thread_start(&member->thread, member->number, nic, member_run, member);
	}
	if (rc != 0)
		free(member);
	else
		team->members[team->count++] = member;
	return rc;
}

static int team_connect(struct team_member *member, const struct control *control, char *error,
			size_t error_size)
{
	int rc;

	if (member->number == 0)
		return control_renew(member->control, error, error_size);
	if (member->connected)
		return 0;
	rc = control_connect_more(&member->own_control, control, member->nic, &member->passive,
				  error, error_size);
	member->connected = rc == 0;
	return rc;
}

/* Close the connections of all members from this number on. */
static void team_disconnect_from(struct team *team, uint32_t first)
{
	for (uint32_t i = RTE_MAX(first, 1u); i < team->count; i++) {
		struct team_member *member = team->members[i];

		if (!member->connected)
			continue;
		passive_close(&member->passive);
		control_close(&member->own_control);
		member->connected = false;
	}
}

int team_gather(struct team *team, uint32_t size, struct nic *nic, struct control *control,
		char *error, size_t error_size)
{
	int rc = 0;

	while (rc == 0 && team->count < size)
		rc = team_add(team, nic, control);
	if (rc != 0) {
		snprintf(error, error_size, THREAD_REFUSED, team->count, strerror(-rc));
		return rc;
	}
	team_disconnect_from(team, size);
	for (uint32_t i = 0; rc == 0 && i < size; i++)
		rc = team_connect(team->members[i], control, error, error_size);
	team->size = size;
	return rc;
}

int team_work(struct team *team, void (*job)(struct team_member *member), char *error,
	      size_t error_size)
{
	for (int i = 0; i < TEAM_PHASES; i++)
		team->arrived[i] = 0;
	team->failed = 0;
	pthread_mutex_lock(&team->lock);
	team->job = job;
	team->parts = team->size;
	team->busy = team->size - 1;
	team->round++;
	pthread_cond_broadcast(&team->changed);
	pthread_mutex_unlock(&team->lock);
	job(team->members[0]);
	pthread_mutex_lock(&team->lock);
	while (team->busy > 0)
		pthread_cond_wait(&team->changed, &team->lock);
	if (team->failed != 0)
		snprintf(error, error_size, "%s", team->error);
	pthread_mutex_unlock(&team->lock);
	return team->failed;
}

bool team_wait(struct team_member *member, enum team_phase phase,
	       void (*waits)(struct team_member *member))
{
	struct team *team = member->team;

	__atomic_fetch_add(&team->arrived[phase], 1, __ATOMIC_RELEASE);
	while (!team_has_failed(team) &&
	       __atomic_load_n(&team->arrived[phase], __ATOMIC_ACQUIRE) < team->size) {
		nic_poll(member->nic);
		if (waits)
			waits(member);
		/* An engine poll does not yield with dedicated progress. The others may need this
		 * CPU. */
		sched_yield();
	}
	return !team_has_failed(team);
}

void team_fail(struct team *team, int rc, const char *error)
{
	pthread_mutex_lock(&team->lock);
	if (team->failed == 0) {
		snprintf(team->error, sizeof(team->error), "%s", error);
		__atomic_store_n(&team->failed, rc, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&team->lock);
}

void team_disconnect(struct team *team)
{
	team_disconnect_from(team, 1);
}

void team_stop(struct team *team)
{
	team_disconnect(team);
	pthread_mutex_lock(&team->lock);
	team->stopped = true;
	pthread_cond_broadcast(&team->changed);
	pthread_mutex_unlock(&team->lock);
	for (uint32_t i = 0; i < team->count; i++) {
		if (i > 0)
			nic_thread_join(&team->members[i]->thread);
		else
			nic_unshare(team->members[i]->nic);
		free(team->members[i]);
	}
	team->count = 0;
}
