/* SPDX-License-Identifier: BSD-3-Clause */
/* The flows of an experiment: who sends how much to whom, when, and how long it took. */
#ifndef NET_TRAFFIC_H
#define NET_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "../sim/rng.h"
#include "host.h"
#include "topology.h"

enum traffic_kind {
	/* Flows begin at random times, between random hosts, with sizes of heavy tail. */
	TRAFFIC_POISSON,
	/* `senders` hosts send `bytes` together to one, `rounds` times. */
	TRAFFIC_INCAST,
	/* Each host sends `bytes` to another one, and receives as much from a third. */
	TRAFFIC_PERMUTATION,
	/* Two hosts: `bytes` from one to the other, `rounds` times one after the other. */
	TRAFFIC_STREAM,
};

struct traffic_attr {
	enum traffic_kind kind;
	uint32_t load_percent; /* of the hosts' links */
	uint32_t flows;	       /* how many */
	uint32_t senders;
	uint32_t rounds;
	uint64_t bytes;
	struct conn_attr conn;
	uint64_t seed;
};

struct flow {
	uint32_t from;
	uint32_t to;
	uint32_t bytes;
	uint64_t begin_ns;
	uint64_t end_ns; /* the receiver has all of it; 0: not yet */
};

struct traffic {
	struct traffic_attr attr;
	struct fabric *fabric;
	const struct topology *topology;
	struct host *host;
	struct rng rng;
	struct flow *flow; /* owned */
	uint32_t flows;
	uint32_t begun;
	uint32_t ended;	       /* the receiver has all of it */
	uint32_t acknowledged; /* the sender knows it */
	uint32_t round_ended;  /* flows of this round */
	struct duo **idle;     /* owned; connections that are not in use, by both hosts */
	struct duo **running;  /* owned; by flow */
	struct duo *duos;      /* all of them */
	uint32_t conns;	       /* connections that exist */
};

/** Plan the flows. Hosts must be linked. Exits if there is no memory. */
void traffic_init(struct traffic *traffic, struct fabric *fabric, const struct topology *topology,
		  struct host *host, const struct traffic_attr *attr);
void traffic_fini(struct traffic *traffic);

/** Run until each sender knows that its flow has arrived. Returns false if nothing happens any
 * more, or at `until_ns`. */
bool traffic_run(struct traffic *traffic, uint64_t until_ns);

/** Return the time that a flow takes in an empty network. */
uint64_t traffic_ideal_ns(const struct traffic *traffic, const struct flow *flow);

#endif
