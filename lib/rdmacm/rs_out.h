/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending half of a stream: the windows and credits that the peer has granted, and the send
 * buffer. It does not call verbs: its input is grants and completions, its output the addresses to
 * write.
 *
 * Send requests complete in the order of their posting, so the buffer is a ring.
 */
#ifndef RDMACM_RS_OUT_H
#define RDMACM_RS_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rs_wire.h"

#define RS_CONTROL_SLOTS 4    /* send requests reserved for grants and control messages */
#define RS_OUT_LOW	 2048 /* bytes of the buffer that must be free for a write */

struct rs_out {
	uint8_t *buffer;
	uint32_t size; /* bytes */
	uint32_t tail; /* offset of the first free byte */
	uint32_t used; /* bytes before it whose send has not completed */
	struct rs_window windows[RS_TARGET_SLOTS]; /* oldest first; each has a length above 0 */
	uint8_t window_count;
	uint8_t slot;	   /* slot of the target list that the peer writes next */
	uint16_t sent;	   /* messages that took a credit */
	uint16_t allowed;  /* value of `sent` at which all credits are used */
	uint16_t credits;  /* the peer's receive requests */
	uint16_t slots;	   /* free send requests for data */
	uint16_t requests; /* the same when none is in use */
	uint16_t control;  /* free send requests for grants and control messages */
};

/** Start with the window of the peer's hello. `requests` is the size of the send queue. */
void rs_out_init(struct rs_out *out, uint8_t *buffer, uint32_t size, uint16_t requests,
		 const struct rs_hello *peer);

/** Set the peer's credits. Return 0, or -EPROTO for more credits than the peer's hello had. */
int rs_out_allow(struct rs_out *out, uint16_t value);

/** Add a window that the peer has granted. Return 0, or -EPROTO if all slots are in use. */
int rs_out_add_window(struct rs_out *out, const struct rs_window *window);

/** Return true if all send requests have completed: the peer has acknowledged everything. */
bool rs_out_is_idle(const struct rs_out *out);

/** Return true when a send request and room in the buffer are free. */
bool rs_out_has_room(const struct rs_out *out);

/** Return true when a message that takes a credit may be sent. */
bool rs_out_may_message(const struct rs_out *out);

/** Return true when data may be sent. */
bool rs_out_may_send(const struct rs_out *out);

/** Return how many of len bytes fit contiguously into the buffer at out->buffer + out->tail. */
uint32_t rs_out_fit(const struct rs_out *out, size_t len);

/**
 * Choose how many of len bytes the next write sends. If len is at most max_inline, the bytes are
 * sent inline and need no buffer. Otherwise the write sends as many bytes as fit, even if few are
 * left before the end of the buffer. Such a short rest is not sent inline: the tail would stay
 * there, and all later writes would be as short.
 */
uint32_t rs_out_choose(const struct rs_out *out, size_t len, uint16_t max_inline, bool *is_inline);

/** Take len bytes of the buffer for the next send request. */
void rs_out_take_buffer(struct rs_out *out, uint32_t len);

/** Take a credit, a send request and len bytes of the oldest window. The window must have len
 * bytes. */
void rs_out_take_window(struct rs_out *out, uint32_t len, struct rs_window *at);

/** Take a send request for a message without data. rs_out_take_message also takes a credit. */
void rs_out_take_message(struct rs_out *out);
void rs_out_take_request(struct rs_out *out);

/** Complete a send request that held len bytes of the buffer. */
void rs_out_done(struct rs_out *out, uint32_t len);

#endif
