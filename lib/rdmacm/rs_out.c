/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of a stream: windows, credits and the buffer. */
#include "rs_out.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>

void rs_out_init(struct rs_out *out, uint8_t *buffer, uint32_t size, uint16_t requests,
		 const struct rs_hello *peer)
{
	*out = (struct rs_out){
		.buffer = buffer,
		.size = size,
		/* Start at slot 1: for the peer, the window of its hello occupies slot 0. */
		.slot = 1,
		.allowed = peer->credits,
		.credits = peer->credits,
		.slots = (uint16_t)(requests - RS_CONTROL_SLOTS),
		.requests = (uint16_t)(requests - RS_CONTROL_SLOTS),
		.control = RS_CONTROL_SLOTS,
	};
	if (peer->data.length > 0)
		out->windows[out->window_count++] = peer->data;
}

int rs_out_allow(struct rs_out *out, uint16_t value)
{
	if ((uint16_t)(value - out->sent) > out->credits)
		return -EPROTO;
	out->allowed = value;
	return 0;
}

int rs_out_add_window(struct rs_out *out, const struct rs_window *window)
{
	if (out->window_count == RS_TARGET_SLOTS)
		return -EPROTO;
	out->windows[out->window_count++] = *window;
	out->slot = (uint8_t)((out->slot + 1) % RS_TARGET_SLOTS);
	return 0;
}

bool rs_out_is_idle(const struct rs_out *out)
{
	return out->control == RS_CONTROL_SLOTS && out->slots == out->requests;
}

bool rs_out_has_room(const struct rs_out *out)
{
	return out->slots > 0 && out->size - out->used >= RS_OUT_LOW;
}

bool rs_out_may_message(const struct rs_out *out)
{
	return rs_out_has_room(out) && out->sent != out->allowed;
}

bool rs_out_may_send(const struct rs_out *out)
{
	return rs_out_may_message(out) && out->window_count > 0;
}

uint32_t rs_out_fit(const struct rs_out *out, size_t len)
{
	const uint32_t free_bytes = out->size - out->used;
	const uint32_t piece = RTE_MIN(free_bytes, out->size - out->tail);

	return len < piece ? (uint32_t)len : piece;
}

uint32_t rs_out_choose(const struct rs_out *out, size_t len, uint16_t max_inline, bool *is_inline)
{
	*is_inline = len <= max_inline;
	return *is_inline ? (uint32_t)len : rs_out_fit(out, len);
}

void rs_out_take_buffer(struct rs_out *out, uint32_t len)
{
	out->tail = (out->tail + len) % out->size;
	out->used += len;
}

void rs_out_take_request(struct rs_out *out)
{
	out->slots--;
}

void rs_out_take_message(struct rs_out *out)
{
	out->sent++;
	rs_out_take_request(out);
}

void rs_out_take_window(struct rs_out *out, uint32_t len, struct rs_window *at)
{
	struct rs_window *window = &out->windows[0];

	rs_out_take_message(out);
	*at = *window;
	at->length = len;
	window->addr += len;
	window->length -= len;
	if (window->length > 0)
		return;
	out->window_count--;
	memmove(&out->windows[0], &out->windows[1], out->window_count * sizeof(*window));
}

void rs_out_done(struct rs_out *out, uint32_t len)
{
	out->slots++;
	out->used -= len;
}
