/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an owner of a port and an attached process share: the arena, where all packet buffers are,
 * and a slot's page, which is between the two alone.
 *
 * Buffers go by their number, so each process may have the arena at another address; and what
 * describes a packet (its mbuf) is each one's own.
 */
#ifndef SHARE_LAYOUT_H
#define SHARE_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "share/ring.h"

#define SHARE_TX_WORDS	   512	/* packets of a process that wait for the owner */
#define SHARE_RX_WORDS	   1024 /* packets that wait for a process */
#define SHARE_RETURN_WORDS 2048 /* at least as many as a process may hold: it always has room */
#define SHARE_HELD_MAX	   1536 /* buffers that a process holds at most, full or empty */
#define SHARE_PEERS_MAX	   32	/* processes on a port */
/* Empty buffers that wait for a process: it sends so many between two turns of the owner. */
#define SHARE_STOCK_WORDS 512
/* Lanes to other processes (share/lane.h): what those hold that take nothing is less than all that
 * it may hold. */
#define SHARE_LANES_MAX 5

/* The begin of a slot's page; its rings follow. Each side writes what it says, atomically. */
struct share_page {
	uint32_t owner_sleeps __rte_cache_aligned; /* owner: whoever puts must wake it */
	uint32_t process_sleeps
		__rte_cache_aligned; /* process: 1 before it sleeps; owner: 0 when it wakes it */
	uint32_t link_up __rte_cache_aligned; /* owner */
	uint32_t connected;		      /* owner: packets reach somebody */
	/* owner: the number of the lane with the process in each slot; 0 where there is none, or
	 * none any more */
	uint32_t lanes[SHARE_PEERS_MAX];
};

enum share_ring_kind {
	SHARE_RING_TX,	   /* process to owner: packets to send */
	SHARE_RING_RX,	   /* owner to process: packets received */
	SHARE_RING_STOCK,  /* owner to process: empty buffers */
	SHARE_RING_RETURN, /* process to owner: buffers it needs no more */
	SHARE_RINGS,
};

static inline uint32_t share_ring_words(enum share_ring_kind kind)
{
	static const uint32_t words[SHARE_RINGS] = {
		[SHARE_RING_TX] = SHARE_TX_WORDS,
		[SHARE_RING_RX] = SHARE_RX_WORDS,
		[SHARE_RING_STOCK] = SHARE_STOCK_WORDS,
		[SHARE_RING_RETURN] = SHARE_RETURN_WORDS,
	};

	return words[kind];
}

/** Where a ring begins in a page; of SHARE_RINGS: the page's length. */
static inline size_t share_ring_offset(enum share_ring_kind kind)
{
	size_t offset = sizeof(struct share_page);

	for (int k = 0; k < (int)kind; k++)
		offset += share_ring_bytes(share_ring_words((enum share_ring_kind)k));
	return offset;
}

/* A word of a ring: a packet in a buffer. Of an empty buffer the number alone counts. */
#define SHARE_FLAG_LOCAL \
	0x1 /* handed over: it comes from a process of this host, which is trusted */
#define SHARE_FLAG_SUMS	 0x2 /* the port has verified IPv4 and UDP checksums */
#define SHARE_FLAG_ALONE 0x4 /* sent: PSOCK_ALONE */
/* Of a lane's (share/lane.h): the packet is beside the word; there is one, in every other round. */
#define SHARE_FLAG_SHORT 0x40
#define SHARE_FLAG_ROUND 0x80

struct share_packet {
	uint32_t buffer; /* 24 bits */
	uint8_t flags;
	uint16_t offset; /* where the frame begins in the buffer */
	uint16_t len;
};

static inline uint64_t share_pack(const struct share_packet *packet)
{
	return (uint64_t)packet->buffer << 40 | (uint64_t)packet->flags << 32 |
	       (uint64_t)packet->offset << 16 | packet->len;
}

static inline struct share_packet share_unpack(uint64_t word)
{
	return (struct share_packet){
		.buffer = (uint32_t)(word >> 40),
		.flags = (uint8_t)(word >> 32),
		.offset = (uint16_t)(word >> 16),
		.len = (uint16_t)word,
	};
}

#endif
