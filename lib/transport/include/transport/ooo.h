/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that came out of order, and are kept until their turn. Each role of a queue pair that
 * receives packets has a list of them, in the order of their PSNs. Their memory is a pool of the
 * device. Nothing in a list is checked, executed or acknowledged: that happens when a packet's turn
 * comes, as if the packet came then.
 */
#ifndef TRANSPORT_OOO_H
#define TRANSPORT_OOO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/psn.h"
#include "transport/loss.h"
#include "wire/headers.h"

struct ooo_pool;
struct packet;

/* The longest payload that is kept: a datagram's has its sender's addresses before it. */
#define OOO_BYTES_MAX (WIRE_MTU_MAX + 40)
/* Most packets that an engine keeps: the usual windows of 32 queue pairs, or
 * the longest of one. */
#define OOO_POOL_PKTS 8192
/* Most packets for one role of a queue pair: a usual window of our own requester
 * (transport/loss.h), or what its list's reach allows. */
#define OOO_LIST_PKTS 256
/* How far ahead a packet may be, in PSNs: as far as a requester with our usual window has packets
 * in flight, the newest of which may be a READ request for a segment. A packet that is farther
 * ahead may be forged, or of an earlier connection. A peer with a longer window retransmits it,
 * unless it has announced its window. */
#define OOO_REACH     (LOSS_WINDOW_MAX + 64)
#define OOO_REACH_MAX (LOSS_WINDOW_LIMIT + 64)

struct ooo_order;

/* A list of kept packets. All zeros is an empty list that keeps nothing. It must not be moved in
 * memory while it holds something. Engine's thread. */
struct ooo {
	struct ooo_pool *pool; /* NULL: nothing is kept */
	uint32_t count;
	uint32_t reach;		 /* OOO_REACH to OOO_REACH_MAX, or 0 for OOO_REACH */
	TAILQ_ENTRY(ooo) link;	 /* in the pool's list, while count > 0 */
	struct ooo_order *order; /* order of the packets, while count > 0 */
	uint64_t oldest_ns;	 /* no packet was kept before this time, or it is not worth a look
				    yet (ooo_drop_old) */
};

/**
 * Create a pool. It takes memory from the system only when packets are kept in it. MT-safe.
 *
 * @return
 *   Returns 0 or -ENOMEM.
 */
int ooo_pool_create(uint32_t packets, struct ooo_pool **pool);

/** Destroy a pool whose lists are empty. NULL is allowed. */
void ooo_pool_destroy(struct ooo_pool *pool);

/* The fate of a packet. */
enum ooo_verdict {
	OOO_TAKEN,   /* it can be kept */
	OOO_THERE,   /* one with this PSN is already kept */
	OOO_REFUSED, /* it is not ahead, or out of reach; or there is no room */
};

/**
 * Return whether a packet can be kept. There is also room if a list without progress for a longer
 * time can give up a packet.
 *
 * @param expected
 *   The PSN of the packet whose turn it is.
 * @param place
 *   Set to the packet's place in the list, except for OOO_REFUSED.
 */
enum ooo_verdict ooo_look(const struct ooo *ooo, const struct packet *packet, struct psn expected,
			  uint32_t *place);

/**
 * Keep a packet. Only directly after ooo_look has returned OOO_TAKEN.
 *
 * @param place
 *   From ooo_look.
 * @param placed
 *   NULL, or the address where the caller has placed the payload. Then the payload is not copied,
 *   and when the packet's turn comes `payload` is NULL; payload_len stays.
 */
void ooo_keep(struct ooo *ooo, const struct packet *packet, uint32_t place, const void *placed);

/** Return the packet at a place from ooo_look; valid until the list changes. */
const struct packet *ooo_at(const struct ooo *ooo, uint32_t place);

/** Return where its payload was placed, as given to ooo_keep. */
const void *ooo_placed_at(const struct ooo *ooo, uint32_t place);

/** Return true if its payload is the same as that of `packet`. A placed payload is read where it
 * is; the caller knows that this memory may be read. */
bool ooo_same_payload(const struct ooo *ooo, uint32_t place, const struct packet *packet);

/** Drop the packet at a place. */
void ooo_remove(struct ooo *ooo, uint32_t place);

/** Return the packet whose turn is next, or NULL. It stays in the list until ooo_drop. */
const struct packet *ooo_first(const struct ooo *ooo);

/** Return where the payload of the first packet was placed, as given to ooo_keep. */
const void *ooo_placed(const struct ooo *ooo);

/** Drop the first packet. */
void ooo_drop(struct ooo *ooo);

/** Drop all packets before `psn`. Return true if there were any. */
bool ooo_drop_before(struct ooo *ooo, struct psn psn);

/** Note the time at which the packet with this PSN was kept, unless it is not there, or its time
 * was noted. */
void ooo_stamp(struct ooo *ooo, struct psn psn, uint64_t now_ns);

/** Drop the packets that were kept more than `age_ns` ago, or an eighth of that later. All must
 * have been stamped. Return how many. */
uint32_t ooo_drop_old(struct ooo *ooo, uint64_t age_ns, uint64_t now_ns);

/**
 * Describe the packets that are kept as the bitmap of a selective acknowledgement does
 * (transport/sack.h).
 *
 * @return
 *   The bytes of the bitmap, at most `bytes`.
 */
uint32_t ooo_tell(const struct ooo *ooo, struct psn expected, uint8_t *bitmap, uint32_t bytes);

/** Return true if the packet at a place from ooo_look directly follows another one that is kept. */
bool ooo_follows(const struct ooo *ooo, uint32_t place, struct psn psn);

/** Drop everything. */
void ooo_clear(struct ooo *ooo);

/** Assert the invariants between two calls; for builds with assertions. */
void ooo_check(const struct ooo *ooo);

#endif
