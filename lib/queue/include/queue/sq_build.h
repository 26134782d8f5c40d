/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests described call by call (ibv_wr_start(3)).
 *
 * From sq_build_start to sq_build_complete or sq_build_abort the send queue is the calling
 * thread's: others that post wait. Nothing is seen of the list before sq_build_complete, and
 * nothing ever if a call found something wrong: the first such error is what sq_build_complete
 * returns.
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
 * The next work request of the list; what the functions below do is about it.
 *
 * @param flags
 *   enum ibv_send_flags; whether data is inline is said by how it is given.
 * @return
 *   It, for the fields of its operation; NULL where the list will not be posted.
 */
struct send_wqe *sq_build_next(struct sq *sq, enum ibv_wr_opcode opcode, uint64_t wr_id,
			       unsigned int flags);

/** Its gather or scatter list. */
void sq_build_sge_list(struct sq *sq, size_t num_sge, const struct ibv_sge *list);

/** Its data, copied now. */
void sq_build_inline(struct sq *sq, size_t num_buf, const struct ibv_data_buf *list);

/** An ATOMIC WRITE's eight bytes, copied now, and where they go. It takes no other data. */
void sq_build_atomic_write(struct sq *sq, uint64_t remote_addr, uint32_t rkey, const void *data);

/* What is to be flushed, and how far. */
struct sq_flush {
	uint64_t remote_addr;
	uint64_t length; /* bytes */
	uint32_t rkey;
	uint8_t place;	/* FETH_PLACE_* */
	uint8_t select; /* FETH_SELECT_* */
};

/** A FLUSH. It takes no data. */
void sq_build_flush(struct sq *sq, const struct sq_flush *flush);

/** Where it goes, on a queue pair for datagrams. */
void sq_build_datagram(struct sq *sq, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);

/** Where it goes, on an XRC queue pair. */
void sq_build_srqn(struct sq *sq, uint32_t srqn);

/** Something about the list is wrong: it will not be posted. */
void sq_build_fail(struct sq *sq, int error);

/** Post the list. Gives the lock back. 0, or a positive errno: nothing was posted. */
int sq_build_complete(struct sq *sq);

/** Forget the list. Gives the lock back. */
void sq_build_abort(struct sq *sq);

#endif
