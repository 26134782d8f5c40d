/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices, a queue pair each, and a link between them on virtual time: what measurements and
 * observers of single packets need, without a random program. */
#ifndef SIM_PAIR_H
#define SIM_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "clock.h"
#include "link.h"
#include "telemetry/counters.h"
#include "transport/sink.h"

struct pair;

struct pair_attr {
	uint64_t seed;
	struct link_attr link;
	uint16_t window_max; /* packets in flight at most; 0: as usual */
	uint8_t resources;   /* READs and atomics in flight at most; 0: 16 */
	bool keeps;	     /* packets that come out of order; else both are go-back-N peers */
	unsigned int access; /* of both memories, beside all rights */
	enum ibv_mtu mtu;
	size_t bytes; /* of each memory */
	/* A packet was taken in by the node with this number. */
	void (*took)(struct pair *pair, int node);
	void *user;
};

/* One end. */
struct node {
	struct pair *pair;
	int number;
	struct device *device;
	struct pd *pd;
	struct cq *cq;
	struct qp *qp;
	uint32_t qpn;
	uint8_t *memory;
	struct mr *mr;
	struct link link; /* to the other one */
	struct packet_sink sink;
	struct packet_out out;
	bool turn_due;
	uint64_t timer_ns;
	uint64_t packets; /* sent */
};

struct pair {
	struct pair_attr attr;
	struct clock clock;
	struct node node[2];
};

/** Connect two queue pairs. Their memories are random, and differ. Exits on any failure. */
void pair_set_up(struct pair *pair, const struct pair_attr *attr);
void pair_tear_down(struct pair *pair);

/** Post a signaled request of the first node: `len` bytes at `local` in its memory, at `remote` in
 * the other's. An atomic adds 1. */
void pair_post(struct pair *pair, enum ibv_wr_opcode opcode, size_t local, uint32_t len,
	       size_t remote);

/** Post a receive request of the second node: `len` bytes at `place` in its memory. */
void pair_receive(struct pair *pair, size_t place, uint32_t len);

/** Let the next thing happen; exits when nothing is left. */
void pair_step(struct pair *pair);

/** Successful completions of the first node that are there now. Exits on an error completion. */
unsigned int pair_poll(struct pair *pair);

/** The same of the second node's receive requests. */
unsigned int pair_poll_received(struct pair *pair);

uint64_t pair_counted(const struct pair *pair, int node, enum counter counter);

#endif
