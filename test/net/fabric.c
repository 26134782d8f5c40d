/* SPDX-License-Identifier: BSD-3-Clause */
/* Links of a simulated network. */
#include "fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_FRAME_BYTES (FRAME_MIN_BYTES + FRAME_EXTRA_BYTES)
#define PS		  1000 /* picoseconds of a nanosecond */
#define BYTE_TIME_SHIFT	  10

void fabric_init(struct fabric *fabric)
{
	*fabric = (struct fabric){0};
	STAILQ_INIT(&fabric->free);
}

void fabric_fini(struct fabric *fabric)
{
	struct frame *frame;

	while ((frame = STAILQ_FIRST(&fabric->free)) != NULL) {
		STAILQ_REMOVE_HEAD(&fabric->free, link);
		free(frame);
	}
	clock_fini(&fabric->clock);
}

static void *must_malloc(size_t size)
{
	void *memory = malloc(size);

	if (memory == NULL) {
		perror("net: frame");
		exit(1);
	}
	return memory;
}

struct frame *fabric_frame(struct fabric *fabric, const uint8_t *bytes, uint16_t kept, uint32_t len)
{
	struct frame *frame = STAILQ_FIRST(&fabric->free);

	if (frame != NULL)
		STAILQ_REMOVE_HEAD(&fabric->free, link);
	else
		frame = must_malloc(sizeof(*frame));
	fabric->frames++;
	frame->from = NULL;
	frame->len = len;
	frame->wire_bytes = (len < FRAME_MIN_BYTES ? FRAME_MIN_BYTES : len) + FRAME_EXTRA_BYTES;
	frame->kept = kept;
	frame->bytes = kept <= FRAME_HEADERS_MAX ? frame->headers : must_malloc(kept);
	memcpy(frame->bytes, bytes, kept);
	return frame;
}

void fabric_frame_free(struct fabric *fabric, struct frame *frame)
{
	fabric->frames--;
	if (frame->bytes != frame->headers)
		free(frame->bytes);
	STAILQ_INSERT_HEAD(&fabric->free, frame, link);
}

static void link_end(struct fabric *fabric, struct port *port, struct port *peer, uint64_t mbps,
		     uint64_t latency_ns)
{
	*port = (struct port){.fabric = fabric,
			      .peer = peer,
			      .byte_time = (UINT64_C(8000000) << BYTE_TIME_SHIFT) / mbps,
			      .latency_ns = latency_ns};
	STAILQ_INIT(&port->queue);
}

void fabric_link(struct fabric *fabric, struct port *a, struct port *b, uint64_t mbps,
		 uint64_t latency_ns)
{
	link_end(fabric, a, b, mbps, latency_ns);
	link_end(fabric, b, a, mbps, latency_ns);
}

uint64_t port_time_ps(const struct port *port, uint64_t wire_bytes)
{
	return wire_bytes * port->byte_time >> BYTE_TIME_SHIFT;
}

static void port_arrive(void *context, void *argument)
{
	struct port *port = context;

	port->ops->receive(port->node, port, argument);
}

static void port_wake(void *context, void *argument);

/* Send the oldest frame if the link is free, else at the time when it will be. */
static void port_start(struct port *port)
{
	struct clock *clock = &port->fabric->clock;
	struct frame *frame = STAILQ_FIRST(&port->queue);
	uint64_t now_ps = clock->now_ns * PS;

	if (frame == NULL || port->paused || port->wakes)
		return;
	/* An event comes at a whole nanosecond, before the picosecond at which the link is free. */
	if (port->free_ps >= now_ps + PS) {
		port->wakes = true;
		clock_at(clock, port->free_ps / PS, port_wake, port, NULL);
		return;
	}
	STAILQ_REMOVE_HEAD(&port->queue, link);
	port->queued_bytes -= frame->wire_bytes;
	port->packets++;
	port->bytes += frame->wire_bytes;
	if (port->free_ps < now_ps)
		port->free_ps = now_ps;
	port->free_ps += port_time_ps(port, frame->wire_bytes);
	clock_at(clock, port->free_ps / PS + port->latency_ns, port_arrive, port->peer, frame);
	port->ops->sent(port->node, port, frame);
	port_start(port);
}

static void port_wake(void *context, void *argument)
{
	struct port *port = context;

	(void)argument;
	port->wakes = false;
	port_start(port);
}

void port_send(struct port *port, struct frame *frame)
{
	STAILQ_INSERT_TAIL(&port->queue, frame, link);
	port->queued_bytes += frame->wire_bytes;
	if (port->queued_bytes > port->queued_max)
		port->queued_max = port->queued_bytes;
	port_start(port);
}

static void port_hold(void *context, void *argument)
{
	struct port *port = context;

	port->paused = argument != NULL;
	port_start(port);
}

void port_pause_peer(struct port *port, bool pause)
{
	struct clock *clock = &port->fabric->clock;
	const uint64_t time_ps = port_time_ps(port, PAUSE_FRAME_BYTES);

	port->pauses = pause;
	port->stops += pause;
	/* A pause frame overtakes what is queued, but not the frame that is being sent; that delay
	 * is neglected. */
	clock_at(clock, clock->now_ns + time_ps / PS + port->latency_ns, port_hold, port->peer,
		 pause ? port : NULL);
}
