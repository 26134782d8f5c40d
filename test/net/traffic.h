/* SPDX-License-Identifier: BSD-3-Clause */
/* The flows of an experiment: who sends how much to whom, when, and how long it took. */
#ifndef NET_TRAFFIC_H
#define NET_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "../sim/rng.h"
#include "net_host.h"
#include "net_topology.h"

enum traffic_kind {
	/* Flows begin at random times, between random hosts, with sizes of heavy tail. */
	TRAFFIC_POISSON,
	/* `senders` hosts send `bytes` together to one, `rounds` times. With `stagger_ns`, once:
	 * the second sender begins so much after the first one, and all others as much after it. */
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
	uint64_t stagger_ns;
	/* An incast of one round: before, each sender sends one byte into the empty network. So the
	 * hosts know how far it is. */
	bool greets;
	uint64_t sample_ns; /* look at the running flows so often; 0: never */
	struct conn_attr conn;
	uint64_t seed;
};

struct flow {
	uint32_t from;
	uint32_t to;
	uint32_t bytes;
	uint64_t begin_ns;
	uint64_t end_ns;   /* the receiver has all of it; 0: not yet */
	uint32_t seen_psn; /* what the receiver expected at the last sample */
	bool seen;	   /* it was running then */
};

/* A sample of the flows and of the network at one time. */
struct sample {
	uint64_t at_ns;
	double gbps;	      /* of flows that ran during the whole interval before it, together */
	double fairness;      /* Jain's index of them; 1: all had the same */
	uint32_t flows;	      /* those flows */
	uint32_t queue_bytes; /* the longest queue of a switch now */
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
	struct sample *sample; /* owned */
	uint32_t samples;
	uint32_t samples_room;
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
