/* SPDX-License-Identifier: BSD-3-Clause */
/* Send queues: posted work requests in a ring. The requester sends them in order, and goes back in
 * the ring to retransmit. */
#ifndef QUEUE_SQ_H
#define QUEUE_SQ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_common.h>

#include "base/psn.h"
#include "base/verbs_later.h"
#include "queue/lock.h"
#include "queue/ring.h"
#include "wire/build.h"

#define SQ_ATOMIC_BYTES 8u /* IBTA 9.4.5: operand, result and alignment */

/* The operands of an atomic: behind its gather list, which has one entry. */
struct sq_operands {
	struct ibv_sge sge;
	uint64_t compare_add;
	uint64_t swap;
};

/* The bind of a window, which has no gather list. */
struct sq_bind {
	uint64_t length;
	uint32_t lkey;	 /* the region's key */
	uint32_t access; /* enum ibv_access_flags */
};

/*
 * A posted send work request. The fields of the poster are constant until the slot is freed. A
 * request with one entry in its gather list is in one cache line; an atomic needs a second one.
 */
struct send_wqe {
	/* the poster's */
	uint64_t wr_id;
	union {
		uint64_t remote_addr;	     /* a bind: address in the region */
		struct {		     /* a datagram; its path is at sq_path */
			uint32_t remote_qpn; /* above 24 bits: no queue pair has this number */
			uint32_t remote_qkey;
		};
	};
	uint32_t rkey; /* the remote key, the key to invalidate, or the window's new key */
	union {
		uint32_t imm_be;	      /* network order */
		uint32_t bind_window;	      /* a key of the window */
		uint8_t failing_opcode;	      /* SQ_WR_FAILS: what it was */
		struct {		      /* a FLUSH */
			uint8_t flush_place;  /* FETH_PLACE_* */
			uint8_t flush_select; /* FETH_SELECT_* */
		};
	};
	uint32_t remote_srqn; /* XRC */
	uint32_t length; /* bytes of the gather list, of the inline data, or of a FLUSH's range */
	uint16_t num_sge;
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags;	/* enum ibv_send_flags; IBV_SEND_SIGNALED also for sq_sig_all */

	/*
	 * The requester's fields. It keeps the PSNs until the request is complete: loss.una is in
	 * the oldest request, and the other requests follow without a gap. A request has at most
	 * 2^23 PSNs (2^31 bytes with the smallest MTU). So a distance from first_psn is defined for
	 * each of its own PSNs, and later PSNs are compared with last_psn.
	 */
	struct psn first_psn; /* first PSN of the request; responses of a READ use the PSNs up to
				 last_psn */
	struct psn last_psn;  /* local work has no PSN: first_psn - 1 */
	bool started;	      /* the PSNs are assigned */

	/* the poster's: gather list, or data with IBV_SEND_INLINE. Each slot has room for any. */
	union {
		struct ibv_sge sge[0];
		uint8_t data[0];
		struct sq_operands atomic[0];
		struct sq_bind bind[0];
	};
};

static_assert(sizeof(struct send_wqe) + sizeof(struct ibv_sge) <= RTE_CACHE_LINE_MIN_SIZE,
	      "a request with one entry is in one cache line");

struct sq_attr {
	uint32_t max_wr; /* work requests; rounded up to a power of two */
	uint32_t max_sge;
	uint32_t max_inline; /* bytes */
	uint8_t type; /* enum ibv_qp_type; a slot of type UD also holds the path of the address
			 handle */
	bool sig_all;
};

/* State of a list of work requests that is being built (queue/sq_build.h); under the queue's
 * lock. */
struct sq_build {
	uint32_t opcodes;     /* bits of enum ibv_wr_opcode that may be built */
	uint32_t prod;	      /* one past the newest request of the list */
	struct send_wqe *wqe; /* that request, while its description may still change; else NULL */
	bool addressed;	      /* it has the address that this type of queue pair needs */
	int error;	      /* the reason why the list will not be posted: a positive errno */
};

struct sq {
	/*
	 * The cache line that the requester reads for `prod` anyway, with all that ibv_post_send(3)
	 * needs. A struct that embeds a queue aligns it to a cache line.
	 */
	uint8_t *ring;	     /* slots of `stride` bytes */
	struct sq_attr attr; /* as granted, at least as much as asked for */
	uint32_t stride;
	uint32_t prod; /* written by posting threads, under lock; release-stored */
	struct queue_lock lock;
	struct sq_build build;

	/* The requester's cache line. The remaining bytes of the line are free for other data that
	 * the engine writes. */
	uint32_t cons; /* oldest slot in use; release-stored */
	/*
	 * The slot whose request is sent next: always cons <= next <= prod. The requester advances
	 * it, and moves it back to retransmit. sq_pop advances it if it points to the freed slot,
	 * because a free slot may hold another request at once, which must not be sent in place of
	 * the old one.
	 */
	uint32_t next;
	struct ring_memory memory;
};

static_assert(offsetof(struct sq, cons) == RTE_CACHE_LINE_MIN_SIZE, "the poster's line ends there");

/** Initialise a queue; `domain` may be NULL. 0, -EINVAL, -ENOMEM. */
int sq_init_in(const struct queue_domain *domain, struct sq *sq, const struct sq_attr *attr);

void sq_fini(struct sq *sq);

/** Return what a queue pair of this type may send: bits of enum ibv_wr_opcode. MT-safe. */
uint32_t sq_opcodes(enum ibv_qp_type type);

/* A set of opcodes. Every opcode in a queue is below 32 (sq_opcodes). */
#define SQ_OPCODE(opcode) (UINT32_C(1) << (opcode))
#define SQ_ATOMICS	  (SQ_OPCODE(IBV_WR_ATOMIC_CMP_AND_SWP) | SQ_OPCODE(IBV_WR_ATOMIC_FETCH_AND_ADD))
/* Our own: a request that fails when its turn comes, as a user asked for (inject/inject.h). `rkey`
 * is the enum fault, and `failing_opcode` what it was. Programs cannot post it. */
#define SQ_WR_FAILS IBV_WR_DRIVER1
#define SQ_LOCAL    (SQ_OPCODE(IBV_WR_LOCAL_INV) | SQ_OPCODE(IBV_WR_BIND_MW) | SQ_OPCODE(SQ_WR_FAILS))

static inline bool sq_is_in(uint32_t opcodes, uint32_t opcode)
{
	return opcodes >> opcode & 1;
}

static inline bool sq_is_atomic(enum ibv_wr_opcode opcode)
{
	return sq_is_in(SQ_ATOMICS, opcode);
}

/* Return true for work that this host executes itself, in order, without a packet. */
static inline bool sq_is_local(enum ibv_wr_opcode opcode)
{
	return sq_is_in(SQ_LOCAL, opcode);
}

/* Return true if the request carries data; others ask for data, or have none. */
static inline bool sq_has_payload(enum ibv_wr_opcode opcode)
{
	return !sq_is_in(SQ_OPCODE(IBV_WR_RDMA_READ) | SQ_ATOMICS | SQ_LOCAL |
				 SQ_OPCODE(LATER_WR_FLUSH),
			 opcode);
}

/**
 * Describe the binding of a window.
 *
 * @param rkey
 *   The lowest byte is that of the window's next key; the others are ignored, as by adapters.
 * @return
 *   0, or EINVAL (positive) if there is no window, or no region where one is needed.
 */
int sq_fill_bind(struct send_wqe *wqe, const struct ibv_mw *mw, uint32_t rkey,
		 const struct ibv_mw_bind_info *info);

/**
 * Post a list of work requests. MT-safe.
 *
 * A window that is bound gets its next key in its `rkey` at once.
 *
 * @param qp_type
 *   Decides which opcodes are allowed. UC and UD also accept READs, WRITEs and atomics that they do
 *   not have: the requester fails them when their turn comes.
 * @param bad
 *   On failure, the first request that was not posted; those before it were.
 * @return
 *   0; ENOMEM (positive, as ibv_post_send(3) returns it) if the queue is full; EINVAL for a bad
 *   opcode, too many entries, inline data that is too long or with READ and atomics, atomics whose
 *   list is not one entry of at least 8 bytes, an ATOMIC WRITE not of 8 bytes, a message over 2^31
 *   bytes, or a FLUSH (which only sq_build can describe).
 */
int sq_post(struct sq *sq, enum ibv_qp_type qp_type, struct ibv_send_wr *wr,
	    struct ibv_send_wr **bad);

/** Post a request that fails when its turn comes. MT-safe. 0, or a positive errno: ENOMEM if the
 * queue is full, EINVAL if no request can have this opcode. */
int sq_post_failure(struct sq *sq, const struct ibv_send_wr *wr, uint32_t fault);

/** Make a request that is not posted yet one that fails when its turn comes. */
static inline void sq_fail(struct send_wqe *wqe, uint32_t fault)
{
	wqe->failing_opcode = wqe->opcode;
	wqe->opcode = SQ_WR_FAILS;
	wqe->rkey = fault;
	wqe->num_sge = 0;
	wqe->flags &= (uint8_t)~IBV_SEND_INLINE;
}

/** Return the opcode that the program has posted. */
static inline uint8_t sq_posted_opcode(const struct send_wqe *wqe)
{
	return wqe->opcode == SQ_WR_FAILS ? wqe->failing_opcode : wqe->opcode;
}

static inline struct send_wqe *sq_at(const struct sq *sq, uint32_t index)
{
	return (struct send_wqe *)(sq->ring +
				   (uint64_t)(index & (sq->attr.max_wr - 1)) * sq->stride);
}

/* Return the path of a datagram: a copy at the end of its slot, so that the handle may be destroyed
 * at any time. */
static inline struct path *sq_path(const struct sq *sq, const struct send_wqe *wqe)
{
	return (struct path *)((uintptr_t)wqe + sq->stride - sizeof(struct path));
}

/* Return the index behind the newest posted request. Pairs with sq_post's release store. */
static inline uint32_t sq_prod(const struct sq *sq)
{
	return __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE);
}

/* Return true if a request in this slot is posted and not complete, or if the next one will be
 * posted to it. */
static inline bool sq_has(const struct sq *sq, uint32_t index)
{
	return index - sq->cons <= sq_prod(sq) - sq->cons;
}

/* Send the request in this slot next. Requester only. */
static inline void sq_seek(struct sq *sq, uint32_t index)
{
	assert(sq_has(sq, index));
	sq->next = index;
}

/**
 * Return the index of the request in flight that contains a PSN, or of the first one behind those
 * that were started. Requester only. Its time is logarithmic: a peer decides which PSNs are looked
 * for, and how often.
 */
uint32_t sq_find(const struct sq *sq, struct psn psn);

/* Free the oldest slot. Requester only. */
static inline void sq_pop(struct sq *sq)
{
	assert(sq->cons != sq_prod(sq));
	if (sq->next == sq->cons)
		sq->next++;
	__atomic_store_n(&sq->cons, sq->cons + 1, __ATOMIC_RELEASE);
}

/* Assert the queue's invariants. Requester only; other threads may post meanwhile. */
static inline void sq_check(const struct sq *sq)
{
	assert(sq_has(sq, sq->next));
	assert(sq_prod(sq) - sq->cons <= sq->attr.max_wr);
	(void)sq;
}

/** Drop all requests (the queue pair goes to RESET). The engine is stopped. */
void sq_clear(struct sq *sq);

#endif
