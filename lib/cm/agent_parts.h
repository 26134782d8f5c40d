/* SPDX-License-Identifier: BSD-3-Clause */
/* The struct and the functions that the files of an agent share. */
#ifndef CM_AGENT_PARTS_H
#define CM_AGENT_PARTS_H

#include "cm/agent.h"
#include "outbox.h"

LIST_HEAD(agent_queries, agent_query);

/* Engine's thread or lock. */
struct agent {
	struct device *device;
	struct cm *cm;
	struct agent_notify notify;
	struct cm_sink sink;
	struct agent_queries queries;
	uint64_t look_ns; /* time of the next look at the queries; UINT64_MAX: there are none */
	uint64_t look_pause_ns; /* time from that look to the one after it */
	struct outbox outbox;
};

/** Look at all queries if it is time. Return how many ended. */
unsigned int queries_run(struct agent *agent, uint64_t now_ns);

/** Return when queries_run is due; UINT64_MAX: never. */
uint64_t queries_deadline_ns(const struct agent *agent);

#endif
