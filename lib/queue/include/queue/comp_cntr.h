/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion counters (ibv_create_comp_cntr(3)): how many requests of some queue pairs have
 * completed, or how many bytes these had. A program reads them in place of completions. */
#ifndef QUEUE_COMP_CNTR_H
#define QUEUE_COMP_CNTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comp_cntr {
	uint64_t done;	 /* successful requests, or their bytes; atomic */
	uint64_t failed; /* requests that completed in error; atomic */
	bool bytes;	 /* set once */
};

/* What a queue pair counts. The bits of enum ibv_qp_attach_comp_cntr_op have this order. */
enum comp_cntr_op {
	COMP_CNTR_SEND,
	COMP_CNTR_RECV,
	COMP_CNTR_RDMA_READ,
	COMP_CNTR_REMOTE_RDMA_READ,
	COMP_CNTR_RDMA_WRITE,
	COMP_CNTR_REMOTE_RDMA_WRITE,
	COMP_CNTR_OPS,
};

/* The end of a READ that a peer has sent is not known: its last response may be sent again. */
#define COMP_CNTR_SUPPORTED ((1u << COMP_CNTR_OPS) - 1 - (1u << COMP_CNTR_REMOTE_RDMA_READ))

/* The counters of a queue pair. */
struct comp_cntrs {
	struct comp_cntr *of[COMP_CNTR_OPS]; /* NULL: not counted */
};

/* Count a request. A program that reads the new value finds what the request has stored. MT-safe.
 */
static inline void comp_cntr_add(const struct comp_cntrs *cntrs, enum comp_cntr_op op,
				 bool succeeded, uint64_t bytes)
{
	struct comp_cntr *cntr = cntrs->of[op];

	if (cntr == NULL)
		return;
	if (succeeded)
		__atomic_fetch_add(&cntr->done, cntr->bytes ? bytes : 1, __ATOMIC_RELEASE);
	else
		__atomic_fetch_add(&cntr->failed, 1, __ATOMIC_RELEASE);
}

#endif
