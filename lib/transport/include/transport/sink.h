/* SPDX-License-Identifier: BSD-3-Clause */
/* The destination of packets that a transport builds: the engine's transmit burst, a simulator's
 * link, or a fuzzer's sink. */
#ifndef TRANSPORT_SINK_H
#define TRANSPORT_SINK_H

#include "wire/build.h"

struct packet_sink {
	/* Return an empty packet with `frame` set, or NULL if no more can be sent now: try again in
	 * a later turn. */
	struct packet_out *(*get)(struct packet_sink *sink);
	/*
	 * Seal and send the packet that get returned last. Its payload is read before put returns.
	 * 0, or -EFAULT if the payload cannot be read: nothing is sent, and the packet may be built
	 * again and put, or left.
	 */
	int (*put)(struct packet_sink *sink, struct packet_out *out);
};

#endif
