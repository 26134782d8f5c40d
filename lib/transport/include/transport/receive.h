/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive request from the time when a message takes it from the queue until its completion. */
#ifndef TRANSPORT_RECEIVE_H
#define TRANSPORT_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/mr.h"
#include "queue/comp_cntr.h"
#include "queue/cq.h"
#include "queue/rq.h"
#include "queue/srq.h"
#include "transport/sgl.h"

struct packet;
struct pd;

/* The request is a copy, because a shared queue continues. */
struct receive {
	uint64_t wr_id;
	uint64_t length; /* bytes that its list holds */
	uint64_t filled; /* bytes of the message so far */
	uint32_t num_sge;
	bool taken;
	struct sgl sgl;			/* position of the next byte */
	struct ibv_sge *sge;		/* set once: room for the queue's longest list */
	const struct comp_cntrs *cntrs; /* NULL: nothing is counted */
};

/**
 * Take the oldest posted request. A request that is already taken, by a message that was dropped,
 * starts over.
 *
 * @param srq
 *   The shared queue that contains `rq`, or NULL.
 * @return
 *   False if none is posted.
 */
bool receive_take(struct receive *receive, struct rq *rq, struct srq *srq);

/**
 * Store the message's next bytes.
 *
 * @return
 *   MR_OK. Otherwise no byte was stored: MR_OUT_OF_RANGE if the list is too short, MR_ABSENT if a
 *   page is not in memory.
 */
enum mr_status receive_store(struct receive *receive, const struct pd *pd, const void *data,
			     uint32_t len);

/**
 * Complete the request: fill in wr_id, byte_len, status and the fields from the packet.
 *
 * @param wc
 *   Queue pair and sender, set by the caller.
 * @param packet
 *   The last one of the message, or NULL on an error.
 * @return
 *   Returns 0, or -ENOSPC from cq_push.
 */
int receive_complete(struct receive *receive, struct cq *cq, struct ibv_wc *wc,
		     enum ibv_wc_status status, const struct packet *packet);

#endif
