/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random program of work requests: what each application posts, into which memory, and what must
 * become of it. It is made up before it runs, so that every request's memory is its own: where
 * verbs promise no order, requests do not share bytes, or a fence stands between them.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/verbs_later.h"
#include "host.h"
#include "memory.h"
#include "mishap.h"
#include "rng.h"
#include "window.h"

#define SIM_PAIRS_MAX 6
#define SIM_WORDS_MAX 2
#define SIM_GRH_BYTES 40 /* that a datagram has in front of its message (IBTA 11.4.1.2) */

/* A word that several queue pairs change by atomics at once. */
struct word {
	struct span span;
	bool adds; /* by FETCH_ADD; else by CMP_SWP */
	uint64_t initial;
	uint64_t seen; /* the newest value that an application has seen */
};

/* Remote memory that requests of one flow write and read, in the order they are posted. */
struct root {
	struct span span;
	bool is_word;	/* eight aligned bytes for atomics */
	bool read;	/* a READ of it may be in flight */
	bool swapped;	/* an atomic on it may be in flight */
	int32_t newest; /* newest posted work that changes it, -1 for none */
};

/* A send work request. */
struct work {
	enum ibv_wr_opcode opcode;
	unsigned int flags; /* enum ibv_send_flags */
	uint32_t length;
	uint32_t imm;
	uint64_t operand;    /* FETCH_ADD: the addend; CMP_SWP: the value to swap in */
	uint64_t compare;    /* CMP_SWP, set when it is posted */
	bool guess_wrong;    /* CMP_SWP: compare with another value than is there */
	bool whole;	     /* FLUSH: of all the region; of a window: closes it */
	int32_t episode;     /* of the window that it uses, binds or closes; -1 for none */
	uint32_t first_span; /* its gather (or scatter) list in flow->spans */
	uint32_t spans;
	struct span remote;
	int32_t root;	   /* of `remote`, -1 for none */
	int32_t receive;   /* the receive request that it consumes, -1 for none */
	struct word *word; /* a shared word, or NULL */
	enum mishap mishap;
	/* once it is posted; owned */
	uint8_t *bytes; /* its message, where it is not known before into which memory that goes */
	uint8_t *old;	/* unreliable WRITE: what was there before */

	enum ibv_wc_status status; /* valid once it is closed */
};

/* A receive work request. */
struct receive {
	uint32_t first_span; /* in flow->spans */
	uint32_t spans;
	uint32_t room;	/* bytes */
	int32_t work;	/* that consumes it, -1 for a surplus one */
	bool delivered; /* an unreliable flow's message is in it */
	bool solicited; /* that was */
	enum mishap mishap;
};

/* One direction of a pair: what `from` sends and `to` receives. */
struct flow {
	struct sim *sim;
	int number;
	struct end *from;
	struct end *to;
	struct rng rng;

	struct work *works;
	uint32_t work_count;
	struct receive *receives;
	uint32_t receive_count;
	uint32_t consumed_count; /* receives that works consume; surplus ones follow */
	struct span *spans;
	uint32_t span_count;
	struct root *roots;
	uint32_t root_count;

	/* memory: to send from, to land READs in, to be written by the peer, to receive in */
	struct span source[2];
	struct region *landing;
	struct region *target[2];
	struct region *inbox;

	struct window window; /* of who receives, used by who sends */
	struct pool *pool;    /* that the receives are taken from, or NULL */

	bool group; /* UD: to all queue pairs of the group, the peer among them */

	/* unreliable flows: what is promised of them */
	bool exact;	/* nothing can be lost: each message arrives, in order, and once */
	bool ordered;	/* nothing is repeated or overtaken */
	bool solicits;	/* all of its messages are solicited; else none */
	int32_t newest; /* work that arrived last, -1 for none */

	/* how it may end */
	bool loose;	   /* somebody else's mishap may end it anywhere */
	int32_t mishap_at; /* the work that fails, -1 for none */
	bool may_give_up;  /* the mishap's answer may be lost: retries may run out before it */

	/* what is to be done before the queue pairs are reset; then all */
	uint32_t limit;		/* works */
	uint32_t receive_limit; /* receives that those consume */

	/* progress */
	uint64_t posted_ns; /* of the newest work */
	uint32_t posted;
	uint32_t closed;     /* works before this are complete, with or without a completion */
	int64_t failed;	     /* the first work that failed, -1 for none */
	uint32_t unsignaled; /* works posted since the last signaled one */
	uint32_t receives_posted;
	uint32_t received;	 /* receives that are complete */
	int64_t receive_failed;	 /* the first that failed, -1 for none */
	uint64_t receive_gap_ns; /* receives are posted so late; 0: at once */
	uint64_t next_receive_ns;
};

/** Make up hosts, links, pairs and flows from the seed. */
void program_make(struct sim *sim);

/** Free what program_make has made. */
void program_free(struct sim *sim);

/** Make up the works and receives of a flow. */
void flow_make(struct flow *flow, uint32_t works, uint32_t bytes);

/** A message came whole to the receiver of an unreliable flow: find out which it was. Whether it
 * was solicited. */
bool deliver(struct flow *flow, const struct span *list, uint32_t spans, const struct ibv_wc *wc);

/** The program has ended: the memory that an unreliable flow wrote to, or not. */
void deliver_check(struct flow *flow);

/** Append a list of fresh or given spans that sum up to `len`, and return its first index. */
uint32_t flow_add_span(struct flow *flow, struct span span);

/** Cut a length into up to `max` pieces, some of them empty. Returns how many. */
uint32_t flow_cut(struct rng *rng, uint32_t len, uint32_t max, uint32_t *pieces);

/** Expect a message in the memory of a receive request. */
void model_scatter(const struct flow *flow, const struct receive *receive, const uint8_t *bytes,
		   uint32_t len);

/** The memory semantics: carry out a work as verbs promise it, on the expected images. */
void model_apply(struct flow *flow, struct work *work);

static inline bool work_is_atomic(const struct work *work)
{
	return work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* It is acknowledged, and so done when it is complete. */
static inline bool flow_reliable(const struct flow *flow)
{
	return flow->from->type != IBV_QPT_UC && flow->from->type != IBV_QPT_UD;
}

/* Its payload goes to remote memory. */
static inline bool work_writes(const struct work *work)
{
	return work->opcode == IBV_WR_RDMA_WRITE || work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	       work->opcode == IBV_WR_ATOMIC_WRITE;
}

static inline bool work_flushes(const struct work *work)
{
	return (int)work->opcode == LATER_WR_FLUSH;
}

/* Its gather list is written, not read. */
static inline bool work_lands(const struct work *work)
{
	return work->opcode == IBV_WR_RDMA_READ || work_is_atomic(work);
}

/* No packet is made of it. */
static inline bool work_is_local(const struct work *work)
{
	return work->opcode == IBV_WR_BIND_MW || work->opcode == IBV_WR_LOCAL_INV;
}

static inline bool work_sends(const struct work *work)
{
	return work->opcode == IBV_WR_SEND || work->opcode == IBV_WR_SEND_WITH_IMM ||
	       work->opcode == IBV_WR_SEND_WITH_INV;
}

static inline bool work_receives(const struct work *work)
{
	return work_sends(work) || work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Whether the program may carry out a work: not what fails, nor, mostly, what stands behind that.
 */
static inline bool flow_executes(const struct flow *flow, int32_t index)
{
	if (flow->mishap_at < 0 || index < flow->mishap_at)
		return true;
	return index > flow->mishap_at && mishap_info(flow->works[flow->mishap_at].mishap)->runs_on;
}

#endif
