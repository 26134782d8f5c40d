/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engines of a host, run by engine polls in virtual time. Each of them sends by the port. The
 * first one receives all frames from the port, as from a NIC whose queues do not tell queue pairs
 * apart, and passes them on to the engines of their queue pairs. Frames between queue pairs of one
 * host cross directly.
 */
#ifndef SIM_SIM_ENGINE_H
#define SIM_SIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "sim_link.h"
#include "transport/sink.h"

struct device_engine;
struct end;
struct host;

TAILQ_HEAD(frame_list, frame);
TAILQ_HEAD(end_list, end);

struct sim_engine {
	struct host *host;
	struct device_engine *home;
	struct packet_sink sink;
	struct packet_out out;
	bool out_failed; /* its payload could not be read: it may be put again */
	bool out_taken;	 /* between get and put */
	struct end *running;
	uint32_t tx_room; /* frames that this engine poll may still send */
	bool locked;
	bool poll_due;
	struct frame_list arrived;
	struct end_list ready;
};

/** Give each engine of a host's device its driver, before it has queue pairs. */
void engines_start(struct host *host);

/** Drop the frames that the engines still have. */
void engines_stop(struct host *host);

/** Free what engines keep from program to program. */
void engines_fini(struct host *host);

/** Pages have come: give the queue pairs that waited for them an engine poll. */
void engines_pages_came(struct host *host);

/** A queue pair needs an engine poll. */
void engine_kick(struct end *end);

/** Send a frame of a queue pair to its peer. */
void engine_send(struct end *end, const uint8_t *bytes, uint32_t len);

/** A host receives a frame now, without the links. */
void engines_inject(struct host *host, const uint8_t *bytes, uint32_t len);

/** A host receives a frame, and owns it. */
void engines_deliver(struct host *host, struct frame *frame);

/* sim_send.c */

/** Prepare an engine for sending. */
void send_start(struct sim_engine *engine);

#endif
