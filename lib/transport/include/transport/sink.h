/* SPDX-License-Identifier: BSD-3-Clause */
/* The destination of packets that a transport builds: the engine's transmit burst, a simulator's
 * link, or a fuzzer's sink. */
#ifndef TRANSPORT_SINK_H
#define TRANSPORT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

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

/* The longest packet that a sink offers a place for. */
#define SINK_OFFER_BYTES 120

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
	/*
	 * Return a place for a short packet to a queue pair at the other end of `path`, if the
	 * receiver trusts us and checks no ICRC; NULL: there is none now, so use get. The packet is
	 * sealed there, without an ICRC, and then `placed` sends it; if it cannot be sealed, the
	 * place is left. Both may be NULL: the sink offers no places.
	 */
	uint8_t *(*offer)(struct packet_sink *sink, const struct path *path, uint32_t qpn);
	void (*placed)(struct packet_sink *sink, uint32_t len);
	/* Tell what is known of the packets to a queue pair at the other end of `path`. It is asked
	 * when an acknowledgement timer has expired, and not for each packet. `taken` is set only
	 * for SINK_KNOWS_TAKEN. NULL: the sink knows nothing. */
	enum sink_knows (*ask)(struct packet_sink *sink, const struct path *path, uint32_t qpn,
			       struct sink_taken *taken);
	struct packet_out offered; /* of sink_begin and sink_send */
};

/** Return a place for a packet of `len` bytes, if the sink offers one, or NULL. */
static inline uint8_t *sink_offer(struct packet_sink *sink, const struct path *path, uint32_t qpn,
				  uint32_t len)
{
	return len <= SINK_OFFER_BYTES && sink->offer ? sink->offer(sink, path, qpn) : NULL;
}

/** Return an empty packet to a queue pair, for at most `len` bytes: one in a place that the sink
 * offers, or else as get. sink_send sends it. */
static inline struct packet_out *sink_begin(struct packet_sink *sink, const struct path *path,
					    uint32_t qpn, uint32_t len)
{
	sink->offered.frame = sink_offer(sink, path, qpn, len);
	return sink->offered.frame ? &sink->offered : sink->get(sink);
}

/** Seal and send the packet that sink_begin returned last, as put does. */
static inline int sink_send(struct packet_sink *sink, struct packet_out *out)
{
	int len;

	if (out != &sink->offered)
		return sink->put(sink, out);
	out->unsealed = true;
	len = packet_seal(out);
	if (unlikely(len < 0))
		return len;
	sink->placed(sink, (uint32_t)len);
	return 0;
}

#endif
