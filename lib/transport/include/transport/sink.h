/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a transport puts the packets it makes: the poll loop's transmit burst, a simulator's link,
 * a fuzzer's pit. */
#ifndef TRANSPORT_SINK_H
#define TRANSPORT_SINK_H

#include "wire/build.h"

struct packet_sink {
	/* An empty packet with `frame` set, or NULL when no more can be sent now: ask again in a
	 * later turn. */
	struct packet_out *(*get)(struct packet_sink *sink);
	/*
	 * Seal and send the packet that get returned last. Its payload is read before put returns.
	 * 0, or -EFAULT where that cannot be read: nothing is sent, and the packet may be built
	 * anew and put, or left.
	 */
	int (*put)(struct packet_sink *sink, struct packet_out *out);
};

#endif
