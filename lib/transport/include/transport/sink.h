/* SPDX-License-Identifier: BSD-3-Clause */
/* The destination of packets that a transport builds: the engine's transmit burst, a simulator's
 * link, or a fuzzer's sink. */
#ifndef TRANSPORT_SINK_H
#define TRANSPORT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/build.h"

/* The kinds of answers of a sink about the packets on the way to a queue pair. */
enum sink_knows {
	SINK_KNOWS_NOTHING, /* they may have been taken, or lost */
	SINK_KNOWS_FULL,    /* the port has not taken all packets yet, because it is full */
	SINK_KNOWS_TAKEN,   /* how many were taken: struct sink_taken */
};

/* Packets that were given to a path which takes them in order, those of them that its other end has
 * taken, and others that the port has dropped because its other end took none. All count from any
 * number, modulo 2^32. */
struct sink_taken {
	uint32_t given;
	uint32_t taken;
	uint32_t dropped;
	bool unread; /* what was taken may lie where the receiver reads nothing now */
};

struct packet_sink {
	/* Return an empty packet with `frame` set, or NULL if no more can be sent now: try again in
	 * a later engine poll. */
	struct packet_out *(*get)(struct packet_sink *sink);
	/*
	 * Seal and send the packet that get returned last. Its payload is read before put returns.
	 * 0, or -EFAULT if the payload cannot be read: nothing is sent, and the packet may be built
	 * again and put, or left.
	 */
	int (*put)(struct packet_sink *sink, struct packet_out *out);
	/* Tell what is known of the packets to a queue pair at the other end of `path`. It is asked
	 * when an acknowledgement timer has expired, and not for each packet. `taken` is set only
	 * for SINK_KNOWS_TAKEN. NULL: the sink knows nothing. */
	enum sink_knows (*ask)(struct packet_sink *sink, const struct path *path, uint32_t qpn,
			       struct sink_taken *taken);
};

#endif
