/* SPDX-License-Identifier: BSD-3-Clause */
/* Links of a simulated network: frames, and ports that send them to each other on virtual time. */
#ifndef NET_FABRIC_H
#define NET_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../sim/clock.h"

/* Preamble, FCS and the gap between frames occupy the link too. */
#define FRAME_EXTRA_BYTES 24
#define FRAME_MIN_BYTES	  60
/* The headers of most frames fit. Payloads are zeros, but for bitmaps of selective
 * acknowledgements, and are not kept. */
#define FRAME_HEADERS_MAX 128

struct port;

struct frame {
	STAILQ_ENTRY(frame) link; /* in a port's queue, or in the list of free frames */
	struct port *from;	  /* the port by which it entered the node that holds it */
	uint32_t len;		  /* bytes of the frame */
	uint32_t wire_bytes;	  /* bytes that it occupies on a link */
	uint32_t flow_hash;	  /* of addresses and UDP ports; chooses among equal paths */
	uint16_t to;		  /* number of the destination host */
	uint16_t kept;		  /* bytes of the frame that are kept; the others are zero */
	uint8_t *bytes;		  /* `headers`, or allocated if more are kept */
	uint8_t headers[FRAME_HEADERS_MAX];
};

STAILQ_HEAD(frame_queue, frame);

struct fabric {
	struct clock clock;
	struct frame_queue free;
	uint64_t frames; /* allocated and not freed */
};

struct node_ops {
	/* A frame arrived. The node owns it now. */
	void (*receive)(void *node, struct port *port, struct frame *frame);
	/* The port has begun to send a frame, which is no longer in its queue. */
	void (*sent)(void *node, struct port *port, const struct frame *frame);
};

/* A port is one end of a link: it has the queue of frames that its node sends, and counts the bytes
 * that the node has received from it and still holds. */
struct port {
	struct fabric *fabric;
	struct port *peer;
	const struct node_ops *ops;
	void *node;
	uint32_t number;
	uint64_t byte_time;  /* of the link: in 1/1024 of a picosecond */
	uint64_t latency_ns; /* of propagation */

	struct frame_queue queue;
	uint32_t queued_bytes; /* wire bytes in the queue */
	uint64_t free_ps;      /* when the newest frame will have left */
	bool wakes;	       /* an event is scheduled for that time */
	bool paused;	       /* by the peer (priority flow control) */

	uint32_t held_bytes; /* wire bytes that entered here and are still in the node */
	bool pauses;	     /* the node has paused the peer */

	/* counted */
	uint64_t packets;
	uint64_t bytes;
	uint64_t drops;
	uint64_t marks; /* frames marked with congestion experienced */
	uint64_t stops; /* pause frames that the node has sent to the peer */
	uint32_t queued_max;
};

void fabric_init(struct fabric *fabric);
void fabric_fini(struct fabric *fabric);

/** Return a frame of `len` bytes. Its first `kept` bytes are `bytes`; the others are zero, and
 * are not stored. */
struct frame *fabric_frame(struct fabric *fabric, const uint8_t *bytes, uint16_t kept,
			   uint32_t len);
void fabric_frame_free(struct fabric *fabric, struct frame *frame);

/** Set up both ends of a link. Nodes fill in ops, node and number. */
void fabric_link(struct fabric *fabric, struct port *a, struct port *b, uint64_t mbps,
		 uint64_t latency_ns);

/** Queue a frame for sending. */
void port_send(struct port *port, struct frame *frame);

/** Pause the peer of a port, or let it resume (IEEE 802.1Qbb). */
void port_pause_peer(struct port *port, bool pause);

/** Return the time that this number of bytes takes on the link. */
uint64_t port_time_ps(const struct port *port, uint64_t wire_bytes);

#endif
