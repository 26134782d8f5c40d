/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random program of work requests: the requests that each application posts, their memory, and
 * their results. It is generated before it runs, so that every request has its own memory: requests
 * whose order verbs do not promise share no bytes, or a fence is between them.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/verbs_later.h"
#include "sim_host.h"
#include "sim_memory.h"
#include "mishap.h"
#include "rng.h"
#include "window.h"

#define SIM_PAIRS_MAX 6
#define SIM_WORDS_MAX 2
#define SIM_GRH_BYTES 40 /* bytes in front of a datagram's message (IBTA 11.4.1.2) */

/* A word that several queue pairs change by atomics at the same time. */
struct word {
	struct span span;
	bool adds; /* by FETCH_ADD; else by CMP_SWP */
	uint64_t initial;
	uint64_t seen; /* the newest value that an application has seen */
};

/* Remote memory that requests of one flow write and read, in the order of posting. */
struct root {
	struct span span;
	bool is_word;	/* eight aligned bytes for atomics */
	bool read;	/* a READ of it may be in flight */
	bool swapped;	/* an atomic on it may be in flight */
	int32_t newest; /* newest posted request that changes it; -1: none */
};

/* A send work request. */
struct work {
	enum ibv_wr_opcode opcode;
	unsigned int flags; /* enum ibv_send_flags */
	uint32_t length;
	uint32_t imm;
	uint64_t operand;    /* FETCH_ADD: the addend; CMP_SWP: the value to swap in */
	uint64_t compare;    /* CMP_SWP: set when it is posted */
	bool guess_wrong;    /* CMP_SWP: compare with a wrong value */
	bool whole;	     /* FLUSH: all of the region; with a window: closes it */
	int32_t episode;     /* window that it uses, binds or closes; -1: none */
	uint32_t first_span; /* its gather (or scatter) list in flow->spans */
	uint32_t spans;
	struct span remote;
	int32_t root;	   /* index of `remote`; -1: none */
	int32_t receive;   /* receive request that it consumes; -1: none */
	struct word *word; /* shared word, or NULL */
	enum mishap mishap;
	/* set when it is posted; owned */
	uint8_t *bytes; /* its message, if the receiving memory is not known before */
	uint8_t *old;	/* unreliable WRITE: the earlier contents */

	enum ibv_wc_status status; /* valid after it is closed */
};

/* A receive work request. */
struct receive {
	uint32_t first_span; /* in flow->spans */
	uint32_t spans;
	uint32_t room;	/* bytes */
	int32_t work;	/* work request that consumes it; -1: a surplus one */
	bool delivered; /* it holds a message of an unreliable flow */
	bool solicited; /* number of that message */
	enum mishap mishap;
};

/* One direction of a pair: `from` sends, and `to` receives. */
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
	uint32_t consumed_count; /* receives that work requests consume; surplus ones follow */
	struct span *spans;
	uint32_t span_count;
	struct root *roots;
	uint32_t root_count;

	/* memory: sources, targets of READs, targets of the peer's writes, receive buffers */
	struct span source[2];
	struct region *landing;
	struct region *target[2];
	struct region *inbox;

	struct window window; /* windows of the receiver, used by the sender */
	struct pool *pool;    /* the pool of its receives, or NULL */

	bool group; /* UD: to all queue pairs of the group, with the peer */

	/* promises for an unreliable flow */
	bool exact;	/* nothing is lost: each message arrives once, in order */
	bool ordered;	/* nothing is repeated or overtaken */
	bool solicits;	/* all of its messages are solicited; else none */
	int32_t newest; /* the request that arrived last; -1: none */

	/* its end */
	bool loose;	   /* another flow's mishap may end it at any point */
	int32_t mishap_at; /* the request that fails; -1: none */
	bool may_give_up;  /* the mishap's answer may be lost: retries may run out before */

	/* number of requests before the queue pairs are reset; afterwards all */
	uint32_t limit;		/* works */
	uint32_t receive_limit; /* number of receives that those consume */

	/* progress */
	uint64_t posted_ns; /* time of the newest request */
	uint32_t posted;
	uint32_t closed;     /* requests before this are complete, with or without a completion */
	int64_t failed;	     /* the first request that failed; -1: none */
	uint32_t unsignaled; /* requests posted since the last signaled one */
	uint32_t receives_posted;
	uint32_t received;	 /* receives that are complete */
	int64_t receive_failed;	 /* the first receive that failed; -1: none */
	uint64_t receive_gap_ns; /* delay of receives; 0: none */
	uint64_t next_receive_ns;
};

/** Generate hosts, links, pairs and flows from the seed. */
void program_make(struct sim *sim);

/** Free what program_make has made. */
void program_free(struct sim *sim);

/** Generate the requests and receives of a flow. */
void flow_make(struct flow *flow, uint32_t works, uint32_t bytes);

/** The receiver of an unreliable flow got a complete message: find out which. Return true if it was
 * solicited. */
bool deliver(struct flow *flow, const struct span *list, uint32_t spans, const struct ibv_wc *wc);

/** The program has ended: accept either contents of the memory that an unreliable flow wrote to. */
void deliver_check(struct flow *flow);

/** Append a list of fresh or given spans that sum up to `len`, and return its first index. */
uint32_t flow_add_span(struct flow *flow, struct span span);

/** Cut a length into up to `max` pieces, some of them empty. Returns how many. */
uint32_t flow_cut(struct rng *rng, uint32_t len, uint32_t max, uint32_t *pieces);

/** Expect a message in the memory of a receive request. */
void model_scatter(const struct flow *flow, const struct receive *receive, const uint8_t *bytes,
		   uint32_t len);

/** Execute a request on the expected images, as verbs promise. */
void model_apply(struct flow *flow, struct work *work);

static inline bool work_is_atomic(const struct work *work)
{
	return work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Return true if it is acknowledged: when it is complete, it was executed. */
static inline bool flow_reliable(const struct flow *flow)
{
	return flow->from->type != IBV_QPT_UC && flow->from->type != IBV_QPT_UD;
}

/* Return true if its payload goes to remote memory. */
static inline bool work_writes(const struct work *work)
{
	return work->opcode == IBV_WR_RDMA_WRITE || work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	       work->opcode == IBV_WR_ATOMIC_WRITE;
}

static inline bool work_flushes(const struct work *work)
{
	return (int)work->opcode == LATER_WR_FLUSH;
}

/* Return true if its gather list is written, not read. */
static inline bool work_lands(const struct work *work)
{
	return work->opcode == IBV_WR_RDMA_READ || work_is_atomic(work);
}

/* Return true if it is executed without a packet. */
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

/* Return true if the program may execute a request: not one that fails, nor, usually, one behind a
 * failure. */
static inline bool flow_executes(const struct flow *flow, int32_t index)
{
	if (flow->mishap_at < 0 || index < flow->mishap_at)
		return true;
	return index > flow->mishap_at && mishap_info(flow->works[flow->mishap_at].mishap)->runs_on;
}

#endif
