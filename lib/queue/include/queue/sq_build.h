/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building of work requests by several calls (ibv_wr_start(3)).
 *
 * From sq_build_start to sq_build_complete or sq_build_abort the calling thread holds the send
 * queue's lock, and other posting threads wait. The requester does not see the list before
 * sq_build_complete. If a call finds an error, the list is never posted, and sq_build_complete
 * returns the first error.
 */
#ifndef QUEUE_SQ_BUILD_H
#define QUEUE_SQ_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "queue/sq.h"

/** Begin a list. MT-safe; takes the queue's lock. */
void sq_build_start(struct sq *sq, uint32_t opcodes);

/**
 * Begin the next work request of the list. The functions below describe this request.
 *
 * @param flags
 *   enum ibv_send_flags. IBV_SEND_INLINE is ignored: the function that gives the data decides.
 * @return
 *   The request, for the fields of its operation; NULL if the list will not be posted.
 */
struct send_wqe *sq_build_next(struct sq *sq, enum ibv_wr_opcode opcode, uint64_t wr_id,
			       unsigned int flags);

/** Return a request of the list, from 0, or NULL behind the last one. It may still be changed. */
static inline struct send_wqe *sq_build_at(const struct sq *sq, uint32_t index)
{
	return sq->build.error == 0 && index < sq->build.prod - sq->prod
		       ? sq_at(sq, sq->prod + index)
		       : NULL;
}

/** Set the request's gather or scatter list. */
void sq_build_sge_list(struct sq *sq, size_t num_sge, const struct ibv_sge *list);

/** Copy inline data into the request. */
void sq_build_inline(struct sq *sq, size_t num_buf, const struct ibv_data_buf *list);

/** Set the eight bytes of an ATOMIC WRITE, copied now, and their destination. It takes no other
 * data. */
void sq_build_atomic_write(struct sq *sq, uint64_t remote_addr, uint32_t rkey, const void *data);

/* The range of a FLUSH and its placement type. */
struct sq_flush {
	uint64_t remote_addr;
	uint64_t length; /* bytes */
	uint32_t rkey;
	uint8_t place;	/* FETH_PLACE_* */
	uint8_t select; /* FETH_SELECT_* */
};

/** Make the request a FLUSH. It takes no data. */
void sq_build_flush(struct sq *sq, const struct sq_flush *flush);

/** Set the destination on a queue pair for datagrams. */
void sq_build_datagram(struct sq *sq, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);

/** Set the destination on an XRC queue pair. */
void sq_build_srqn(struct sq *sq, uint32_t srqn);

/** Note an error: the list will not be posted. */
void sq_build_fail(struct sq *sq, int error);

/** Post the list and unlock the queue. 0, or a positive errno: nothing was posted. */
int sq_build_complete(struct sq *sq);

/** Drop the list and unlock the queue. */
void sq_build_abort(struct sq *sq);

#endif
