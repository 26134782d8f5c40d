/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the next packet of a message. */
#ifndef TRANSPORT_REQUEST_H
#define TRANSPORT_REQUEST_H

#include "transport/requester.h"

/** The place is found again before the next packet. */
static inline void request_unlocate(struct requester *requester)
{
	requester->place_psn = psn_none();
}

/** Send what is in this slot next; the caller sets sgl to where flight->next is in it. */
void request_stand_at(struct requester *requester, uint32_t index);

/** Send the request behind this one next. */
void request_pass(struct requester *requester);

/** The request to be sent next cannot be sent; it fails when all before it are complete. */
void request_stop_at(struct requester *requester, enum fault fault);

/* What became of a packet that was to be sent. */
enum put {
	PUT_DONE,
	PUT_NO_ROOM, /* ask again in a later turn */
	PUT_FAULTY,  /* request_stop_at was called */
	PUT_ABSENT,  /* a page of its payload is not in memory: ask again when it is */
};

/** Make the packet of this message that flight->next stands for, send it, and move on. With
 * `repairs` it is sent again alone. */
enum put request_put(struct requester *requester, struct packet_sink *sink,
		     const struct send_wqe *wqe, bool repairs);

#endif
