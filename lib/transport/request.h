/* SPDX-License-Identifier: BSD-3-Clause */
/* Building of the next packet of a message. */
#ifndef TRANSPORT_REQUEST_H
#define TRANSPORT_REQUEST_H

#include "transport/requester.h"

/** Forget the place; it is located again before the next packet. */
static inline void request_unlocate(struct requester *requester)
{
	requester->place_psn = psn_none();
}

/** Send the request in this slot next; the caller sets sgl to the byte of loss->next in it. */
void request_stand_at(struct requester *requester, uint32_t index);

/** Send the next request after this one. */
void request_pass(struct requester *requester);

/** Stop at a request that cannot be sent; it fails when all before it are complete. */
void request_stop_at(struct requester *requester, uint32_t index, enum fault fault);

/* The result of request_put. */
enum put {
	PUT_DONE,
	PUT_NO_ROOM, /* try again in a later engine poll */
	PUT_FAULTY,  /* the request cannot be sent: requester->fault says why */
	PUT_ABSENT,  /* a page of its payload is not in memory: try again when it is */
};

/** Return true if a request is a SEND or WRITE from one piece of memory, without anything that
 * few requests have. */
static inline bool request_is_plain(const struct send_wqe *wqe)
{
	return sq_is_in(SQ_OPCODE(IBV_WR_RDMA_WRITE) | SQ_OPCODE(IBV_WR_SEND), wqe->opcode) &&
	       !(wqe->flags & (IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_INLINE)) &&
	       wqe->num_sge == 1 && wqe->length > 0;
}

/** Do what request_put does, for the next packet of a plain request of RC, while nothing was lost,
 * nothing limits the rate, and no page is absent. */
enum put request_put_plain(struct requester *requester, struct packet_sink *sink,
			   const struct send_wqe *wqe);

/**
 * Build a packet of this message and send it.
 *
 * @param psn
 *   The packet: loss->next, which then advances.
 * @param again
 *   If not NULL, `psn` is the first of these packets. It is sent again, alone, and loss->next does
 *   not move. A READ request is for the missing responses of the range.
 * @param copy
 *   `psn` is a READ request that was sent just now. It is sent once more, and nothing advances.
 *   `again` is as it was then.
 */
enum put request_put(struct requester *requester, struct packet_sink *sink,
		     const struct send_wqe *wqe, struct psn psn, const struct loss_range *again,
		     bool copy);

#endif
