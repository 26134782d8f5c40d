/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads that measure. The caller of team_work is number 0. The others live until team_stop
 * and sleep between jobs: only threads that stay have an engine each in every test (nic_thread.h).
 *
 * A job has phases. A member that has done its part of one waits for the others, and gives the
 * engine polls meanwhile. If a member fails, no member waits any longer.
 */
#ifndef TESTROCE_TEAM_H
#define TESTROCE_TEAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control_conn.h"
#include "nic_thread.h"
#include "passive.h"
#include "plan.h"
#include "run.h"

enum team_phase { TEAM_CONNECTED, TEAM_DRAINED, TEAM_PHASES };

struct team;

struct team_member {
	struct team *team;
	uint32_t number;
	struct nic_thread thread; /* of number 0: only its handle of the device */
	struct nic *nic;	  /* that handle */
	struct control *control;  /* of number 0: the caller's; of others: `own_control` */
	struct run run;

	/* unused by number 0 */
	struct control own_control;
	struct passive passive; /* of own_control, if both sides are in this process */
	bool connected;		/* own_control is open */
	uint64_t round;		/* of its last job; protected by the team's lock */
};

struct team {
	struct team_member *members[PLAN_THREADS_MAX];
	uint32_t count;		       /* of members */
	uint32_t size;		       /* members that team_gather was asked for */
	uint32_t arrived[TEAM_PHASES]; /* atomic: members that have ended a phase */
	int failed;		       /* atomic, -errno: a member has failed in this job */
	pthread_mutex_t lock;	       /* protects what follows */
	pthread_cond_t changed;
	uint64_t round; /* number of the job */
	uint32_t parts; /* members of the job. A thread may first look at a job in which it has no
			   part when a later team_gather has changed `size` already */
	uint32_t busy;	/* threads that have not ended it */
	bool stopped;
	void (*job)(struct team_member *member);
	char error[256]; /* of the first failure */
};

#define TEAM_INITIALIZER                                                               \
	{                                                                              \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

/**
 * Have `size` members, each with a thread and a connection to the passive side of `control`. Starts
 * and connects those that are missing, in the order of their numbers. Members beyond `size` keep
 * their threads, but not their connections. Not MT-safe.
 *
 * @return
 *   0, or -errno with `error`.
 */
int team_gather(struct team *team, uint32_t size, struct nic *nic, struct control *control,
		char *error, size_t error_size);

/**
 * Let all members do a job, the caller among them, and wait until all have ended. Not MT-safe.
 *
 * @return
 *   0, or -errno with `error`, those of the first failure.
 */
int team_work(struct team *team, void (*job)(struct team_member *member), char *error,
	      size_t error_size);

/** Wait until all members have ended a phase. Calls `waits` (may be NULL) meanwhile, repeatedly.
 * Returns false if a member has failed. Only for jobs. */
bool team_wait(struct team_member *member, enum team_phase phase,
	       void (*waits)(struct team_member *member));

/** Note that a member has failed. The first failure counts. MT-safe. */
void team_fail(struct team *team, int rc, const char *error);

/** Return true if a member has failed. MT-safe. */
static inline bool team_has_failed(const struct team *team)
{
	return __atomic_load_n(&team->failed, __ATOMIC_RELAXED) != 0;
}

/** Close the connections that team_gather has opened. Not MT-safe. */
void team_disconnect(struct team *team);

/** End the threads and the connections that team_gather has made. Not MT-safe. */
void team_stop(struct team *team);

#endif
