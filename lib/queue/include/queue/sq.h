/* SPDX-License-Identifier: BSD-3-Clause */
/* Send queues: posted work in a ring that the requester walks, sends from and, on loss, walks
 * again. */
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

/* A posted send work request. What the poster writes is constant until the slot is freed. */
struct send_wqe {
	/* the poster's */
	uint64_t wr_id;
	uint64_t remote_addr; /* of a window's binding: in the region */
	union {
		uint64_t compare_add;
		uint8_t atomic_write[8];     /* with IBV_SEND_INLINE: the data of an ATOMIC WRITE */
		struct {		     /* of a datagram; its path is at sq_path */
			uint32_t remote_qpn; /* of more than 24 bits: nobody's */
			uint32_t remote_qkey;
		};
		uint64_t bind_length;
	};
	union {
		uint64_t swap;
		struct {		      /* of a FLUSH */
			uint8_t flush_place;  /* FETH_PLACE_* */
			uint8_t flush_select; /* FETH_SELECT_* */
		};
		struct {		      /* of a window's binding */
			uint32_t bind_lkey;   /* of the region */
			uint32_t bind_access; /* enum ibv_access_flags */
		};
	};
	uint32_t rkey; /* remote key; to invalidate; or that the window gets */
	union {
		uint32_t imm_be;      /* network order */
		uint32_t bind_window; /* a key of the window */
	};
	uint32_t remote_srqn; /* XRC */
	uint32_t length; /* bytes of all entries of the gather list, or of the inline data, or of
			    a FLUSH's range */
	uint16_t num_sge;
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags;	/* enum ibv_send_flags; IBV_SEND_SIGNALED also for sq_sig_all */

	/*
	 * The requester's. The PSNs are kept until the request is complete: flight.una is in the
	 * oldest request, and the others follow it without a gap. A request has at most 2^23 PSNs
	 * (2^31 bytes by the smallest MTU): each of its own has a distance from first_psn, and what
	 * lies behind it is compared with last_psn.
	 */
	struct psn first_psn; /* of the request; a READ's responses use the PSNs up to last_psn */
	struct psn last_psn;  /* local work has none: first_psn - 1 */
	bool started;	      /* the PSNs are assigned */

	/* gather list, or data with IBV_SEND_INLINE */
	union {
		struct ibv_sge sge[0];
		uint8_t data[0];
	};
};

struct sq_attr {
	uint32_t max_wr; /* work requests; rounded up to a power of two */
	uint32_t max_sge;
	uint32_t max_inline; /* bytes */
	uint8_t type; /* enum ibv_qp_type; a UD one's slots hold the path of an address handle */
	bool sig_all;
};

/* A list of work requests that is being built (queue/sq_build.h); under the queue's lock. */
struct sq_build {
	uint32_t opcodes;     /* bits of enum ibv_wr_opcode that may be built */
	uint32_t prod;	      /* one past the newest request of the list */
	struct send_wqe *wqe; /* that request, while it can still be described; else NULL */
	bool addressed;	      /* it has what its type of queue pair needs to find the peer */
	int error;	      /* why the list will not be posted: a positive errno */
};

struct sq {
	/*
	 * A line that the requester reads for `prod` anyway: with all that ibv_post_send(3) needs.
	 * Whoever has a queue puts it at the beginning of one.
	 */
	uint8_t *ring;	     /* slots of `stride` bytes */
	struct sq_attr attr; /* as granted, at least what was asked for */
	uint32_t stride;
	uint32_t prod; /* poster's, under lock; release-stored */
	struct queue_lock lock;
	struct sq_build build;

	/* The requester's line, whose rest is free for what the engine writes. */
	uint32_t cons; /* oldest slot in use; release-stored */
	/*
	 * The slot whose request is sent next: cons <= next <= prod, always. The requester moves
	 * it, back as well, when packets are sent again. sq_pop moves it along: a slot that is free
	 * may hold another request at once, and nobody may send that in place of the one that has
	 * left.
	 */
	uint32_t next;
	struct ring_memory memory;
};

static_assert(offsetof(struct sq, cons) == RTE_CACHE_LINE_MIN_SIZE, "the poster's line ends there");

/** Allocate; `domain` may be NULL. 0, -EINVAL, -ENOMEM. */
int sq_init_in(const struct queue_domain *domain, struct sq *sq, const struct sq_attr *attr);

void sq_fini(struct sq *sq);

/** What a queue pair of a type may send: bits of enum ibv_wr_opcode. MT-safe. */
uint32_t sq_opcodes(enum ibv_qp_type type);

static inline bool sq_is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* What no packet is made of: it is executed in this host, in its turn. */
static inline bool sq_is_local(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW;
}

/* Whether data goes out with a request; else it asks for some, or has none at all. */
static inline bool sq_has_payload(enum ibv_wr_opcode opcode)
{
	return opcode != IBV_WR_RDMA_READ && !sq_is_atomic(opcode) && !sq_is_local(opcode) &&
	       (int)opcode != LATER_WR_FLUSH;
}

/**
 * Describe the binding of a window.
 *
 * @param rkey
 *   Its lowest byte is that of the window's next key; the others are not looked at, as by adapters.
 * @return
 *   0, or EINVAL (positive) without a window, or a region where one is needed.
 */
int sq_fill_bind(struct send_wqe *wqe, const struct ibv_mw *mw, uint32_t rkey,
		 const struct ibv_mw_bind_info *info);

/**
 * Post a list of work requests. MT-safe.
 *
 * A window that is bound is told its next key at once, in its `rkey`.
 *
 * @param qp_type
 *   Which opcodes are allowed. Of UC and UD also READs, WRITEs and atomics that the type does not
 *   have: who takes them from the queue fails them.
 * @param bad
 *   The first request that was not posted, on failure; those before it are.
 * @return
 *   0; ENOMEM (positive, as ibv_post_send(3) returns it) when the queue is full; EINVAL for a bad
 * opcode, too many entries, inline data too long or with READ and atomics, atomics whose list is
 * not one entry of at least 8 bytes, an ATOMIC WRITE not of 8 bytes, a message over 2^31 bytes, a
 * FLUSH (which only a list that is built can describe).
 */
int sq_post(struct sq *sq, enum ibv_qp_type qp_type, struct ibv_send_wr *wr,
	    struct ibv_send_wr **bad);

static inline struct send_wqe *sq_at(const struct sq *sq, uint32_t index)
{
	return (struct send_wqe *)(sq->ring +
				   (uint64_t)(index & (sq->attr.max_wr - 1)) * sq->stride);
}

/* Where a datagram goes: a copy at the end of its slot, so that the handle may be destroyed at any
 * time. */
static inline struct path *sq_path(const struct sq *sq, const struct send_wqe *wqe)
{
	return (struct path *)((uintptr_t)wqe + sq->stride - sizeof(struct path));
}

/* One past the newest posted request. Pairs with sq_post's release store. */
static inline uint32_t sq_prod(const struct sq *sq)
{
	return __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE);
}

/* A request is posted to this slot and not complete, or the next one will be posted to it. */
static inline bool sq_has(const struct sq *sq, uint32_t index)
{
	return index - sq->cons <= sq_prod(sq) - sq->cons;
}

/* Send what is in this slot next. Requester only. */
static inline void sq_seek(struct sq *sq, uint32_t index)
{
	assert(sq_has(sq, index));
	sq->next = index;
}

/* Free the oldest slot. Requester only. */
static inline void sq_pop(struct sq *sq)
{
	assert(sq->cons != sq_prod(sq));
	if (sq->next == sq->cons)
		sq->next++;
	__atomic_store_n(&sq->cons, sq->cons + 1, __ATOMIC_RELEASE);
}

/* Assert what always holds. Requester only: others post meanwhile. */
static inline void sq_check(const struct sq *sq)
{
	assert(sq_has(sq, sq->next));
	assert(sq_prod(sq) - sq->cons <= sq->attr.max_wr);
	(void)sq;
}

/** Drop everything (queue pair to RESET). The engine is stopped. */
void sq_clear(struct sq *sq);

#endif
