/* SPDX-License-Identifier: BSD-3-Clause */
/* The target of a fuzzer: one device with queue pairs of every kind and state, and memory between
 * canaries that only some of them may access. */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "mem/mw.h"
#include "queue/channel.h"
#include "transport/sink.h"

#define WORLD_QPS     12
#define WORLD_REGIONS 5

/* The regions, by who may change their bytes. */
enum world_region {
	REGION_OPEN,	 /* peers may do everything */
	REGION_READABLE, /* peers may read: never changes */
	REGION_INBOX,	 /* the target of receive requests, READs and atomics */
	REGION_SOURCE,	 /* the source of sends: never changes */
	REGION_FOREIGN,	 /* in another protection domain, with all rights there: never changes */
};

struct world_qp {
	struct qp *qp;
	uint32_t qpn;
	enum ibv_qp_type type;
	enum ibv_qp_state state; /* values after set-up, and again after RESET */
	struct cq *cq;
	bool ready;
	struct mw_list bound; /* windows that world_bind bound for it */
};

struct world {
	struct device *device;
	struct pd *pd;
	struct pd *foreign_pd;
	struct srq *srq;
	uint64_t now_ns;
	uint8_t *block; /* the regions with canaries between them */
	struct mr *mr[WORLD_REGIONS];
	struct mw *windows[WORLD_QPS]; /* windows of REGION_OPEN, bound for the queue pair of this
					  number */
	size_t offset[WORLD_REGIONS];
	struct world_qp qps[WORLD_QPS];
	struct packet_sink sink;
	struct packet_out out;
	bool out_taken;
	unsigned int room; /* packets that the sink still takes in this engine poll */
	uint64_t *posted;  /* for each wr_id, how often it may still complete, as bits */
	uint32_t next_wr;
};

void world_set_up(struct world *world);
void world_tear_down(struct world *world);

/** Post a send or receive request that is made of a few random numbers. */
void world_post_send(struct world *world, struct world_qp *qp, uint8_t what, uint16_t length);
void world_post_recv(struct world *world, struct world_qp *qp, uint16_t length);

/** Bind a queue pair's window, as its owner would. */
void world_bind(struct world *world, unsigned int qp);

/** Move a queue pair from RESET to the state that it has for the fuzzer. */
void world_connect(struct world *world, struct world_qp *qp);

/** Call ibv_modify_qp with a state and nothing else; it may be refused. */
void world_modify(struct world *world, struct world_qp *qp, enum ibv_qp_state state);

/** Give a frame to the device. */
void world_receive(struct world *world, const uint8_t *frame, size_t len);

/** Let time pass, and fire every timer that is due. */
void world_wait(struct world *world, uint64_t ns);

/** Run every queue pair that is ready, poll all completions, and check all promises. */
void world_poll(struct world *world, unsigned int budget);

/** Return the path of packets from the peer. */
void world_peer_path(bool ipv6, struct path *path);

/** Abort, which the fuzzer counts as a finding. */
void world_broken(const char *what) __attribute__((noreturn));

#endif
