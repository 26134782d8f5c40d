/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices, each with a queue pair, and a link between them, in virtual time. For measurements,
 * and for tests that watch single packets and need no random program. */
#ifndef SIM_PAIR_H
#define SIM_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "clock.h"
#include "sim_link.h"
#include "telemetry/counters.h"
#include "transport/sack.h"
#include "transport/sink.h"

struct pair;

struct pair_attr {
	uint64_t seed;
	struct link_attr link;
	uint16_t window_max; /* limit of packets in flight; 0: the usual one */
	uint8_t resources;   /* limit of READs and atomics in flight; 0: 16 */
	enum sack_use sack;  /* of both */
	bool keeps;	     /* both keep out of order packets; else both are go-back-N peers */
	unsigned int access; /* access flags of both memories, in addition to all rights */
	enum ibv_mtu mtu;
	size_t bytes; /* bytes of each memory */
	/* Called when the node with this number has received a packet. */
	void (*took)(struct pair *pair, int node);
	void *user;
};

/* A node of the pair. */
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
	struct link link; /* the link to the other one */
	struct packet_sink sink;
	struct packet_out out;
	bool poll_due;
	uint64_t timer_ns;
	uint64_t packets; /* packets sent */
};

struct pair {
	struct pair_attr attr;
	struct clock clock;
	struct node node[2];
};

/** Connect two queue pairs. Their memories hold different random bytes. Exit on any failure. */
void pair_set_up(struct pair *pair, const struct pair_attr *attr);
void pair_tear_down(struct pair *pair);

/** Post a signaled request of the first node: `len` bytes at `local` in its memory, at `remote` in
 * the other's. An atomic adds 1. */
void pair_post(struct pair *pair, enum ibv_wr_opcode opcode, size_t local, uint32_t len,
	       size_t remote);

/** Post a receive request of the second node: `len` bytes at `place` in its memory. */
void pair_receive(struct pair *pair, size_t place, uint32_t len);

/** Fire the next event; exit if there is none. */
void pair_step(struct pair *pair);

/**
 * Take the first node's successful completions. Return how many there were. Exit on an error
 * completion.
 */
unsigned int pair_poll(struct pair *pair);

/** Do the same for the second node's receive requests. */
unsigned int pair_poll_received(struct pair *pair);

uint64_t pair_counted(const struct pair *pair, int node, enum counter counter);

#endif
