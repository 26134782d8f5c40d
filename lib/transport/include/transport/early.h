/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that came before their turn, kept until it comes. Each role of a queue pair that takes in
 * packets has a list of them, in the order of their PSNs; their memory is a pool of the device.
 * Nothing that stands in a list is checked, executed or told of: that happens at a packet's turn,
 * as if it came then.
 */
#ifndef TRANSPORT_EARLY_H
#define TRANSPORT_EARLY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/psn.h"
#include "transport/flight.h"
#include "wire/headers.h"

struct early_pool;
struct packet;

/* The longest payload that is kept: a datagram's has its sender's addresses before it. */
#define EARLY_BYTES_MAX (WIRE_MTU_MAX + 40)
/* Packets that a device keeps at a time: what the windows of sixteen queue pairs hold. */
#define EARLY_POOL_PKTS 4096
/* Of them, for one role of a queue pair: a window of our own requester (transport/flight.h). */
#define EARLY_LIST_PKTS 256
/* How far ahead a packet may be, in PSNs: as far as a requester with our own window has packets in
 * the air, the newest of which may ask for a segment of a READ. What is farther may be forged, or
 * of an earlier connection; a peer with a longer window sends it again. */
#define EARLY_REACH (FLIGHT_WINDOW_MAX + 64)

struct early_order;

/* Zeros are an empty list that keeps nothing. It stays where it is while it holds something.
 * Engine's thread. */
struct early {
	struct early_pool *pool; /* NULL: nothing is kept */
	uint32_t count;
	TAILQ_ENTRY(early) link;   /* in the pool, while count > 0 */
	struct early_order *order; /* of the packets, while count > 0 */
};

/**
 * Make a pool. Its memory is the system's until packets are kept in it. MT-safe.
 *
 * @return
 *   0 or -ENOMEM.
 */
int early_pool_create(uint32_t packets, struct early_pool **pool);

/** All lists are empty. NULL is none. */
void early_pool_destroy(struct early_pool *pool);

/* What becomes of a packet. */
enum early_verdict {
	EARLY_TAKEN,   /* it can be kept */
	EARLY_THERE,   /* one with its PSN is kept */
	EARLY_REFUSED, /* it is not ahead, or out of reach; or there is no room */
};

/**
 * Tell whether a packet can be kept. There is room also where a list that has not moved on for
 * longer gives its own.
 *
 * @param expected
 *   The PSN of the packet whose turn it is.
 * @param place
 *   Set to the packet's place in the list, but for EARLY_REFUSED.
 */
enum early_verdict early_look(const struct early *early, const struct packet *packet,
			      struct psn expected, uint32_t *place);

/**
 * Keep a packet. Only where early_look said EARLY_TAKEN, with nothing in between.
 *
 * @param place
 *   Which that told.
 * @param placed
 *   NULL, or the address where the caller has put the payload. It is not copied then, and at the
 *   packet's turn `payload` is NULL; payload_len stays.
 */
void early_keep(struct early *early, const struct packet *packet, uint32_t place,
		const void *placed);

/** The packet at a place that early_look told, until the list changes. */
const struct packet *early_at(const struct early *early, uint32_t place);

/** Where its payload was placed, as early_keep was told. */
const void *early_placed_at(const struct early *early, uint32_t place);

/** Return true if its payload is the same as that of `packet`. One that was placed is read where it
 * is, which the caller knows to be memory that it may read. */
bool early_same_payload(const struct early *early, uint32_t place, const struct packet *packet);

/** Drop the packet at a place. */
void early_remove(struct early *early, uint32_t place);

/** The packet that is the next in turn, or NULL. It is the list's until early_drop. */
const struct packet *early_first(const struct early *early);

/** Where the payload of the first packet was placed, as early_keep was told. */
const void *early_placed(const struct early *early);

/** Drop the first packet. */
void early_drop(struct early *early);

/** Drop all that are before `psn`. Whether there were any. */
bool early_drop_before(struct early *early, struct psn psn);

/** Drop everything. */
void early_clear(struct early *early);

/** Assert what holds between two calls; for builds with assertions. */
void early_check(const struct early *early);

#endif
