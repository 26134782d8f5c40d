/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the owner of a port shares with attached processes: the arena with all packet
 * buffers, and one page for each slot, which only the owner and that process share.
 *
 * A buffer is named by its number, because each process may map the arena at another address. Each
 * process has its own mbufs, which describe packets.
 */
#ifndef SHARE_LAYOUT_H
#define SHARE_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "share/ring.h"

#define SHARE_TX_WORDS	   512	/* packets of a process that wait for the owner */
#define SHARE_RX_WORDS	   1024 /* packets that wait for a process */
#define SHARE_RETURN_WORDS 2048 /* more than a process may hold: always has room */
#define SHARE_HELD_MAX	   1536 /* buffers that a process may hold, full or empty */
#define SHARE_HELD_MIN	   256	/* the same, where many processes are attached */
#define SHARE_PEERS_MAX	   256	/* processes on a port */
/* Empty buffers that wait for a process: the most that it can send between two polls of the owner.
 */
#define SHARE_FREE_WORDS  512
#define SHARE_DIRECTS_MAX 8 /* direct channels of a process or engine (share/direct.h) */

#define SHARE_ENGINES_MAX 16 /* of a process's device */

/* The start of a slot's page; its rings follow. Each member names its writer; writes are atomic. */
struct share_page {
	uint32_t owner_sleeps __rte_cache_aligned; /* owner: the process must wake it for packets */
	uint32_t process_sleeps
		__rte_cache_aligned; /* process: 1 before it sleeps; owner: 0 when it wakes it */
	uint32_t link_up __rte_cache_aligned; /* owner */
	uint32_t connected;		      /* owner: packets reach somebody */
	/* owner: by slot: the number of the direct channel with its process; 0: none now */
	uint32_t directs[SHARE_PEERS_MAX];
	uint32_t dropped; /* owner: packets of the process that others on this host did not take */
	/* owner: which others on this host have left some of them unread (wire_block_bit) */
	uint64_t unread;
};

enum share_ring_kind {
	SHARE_RING_TX,	   /* process to owner: packets to send */
	SHARE_RING_RX,	   /* owner to process: packets received */
	SHARE_RING_FREE,   /* owner to process: empty buffers */
	SHARE_RING_RETURN, /* process to owner: buffers that it releases */
	SHARE_RINGS,
};

static inline uint32_t share_ring_words(enum share_ring_kind kind)
{
	static const uint32_t words[SHARE_RINGS] = {
		[SHARE_RING_TX] = SHARE_TX_WORDS,
		[SHARE_RING_RX] = SHARE_RX_WORDS,
		[SHARE_RING_FREE] = SHARE_FREE_WORDS,
		[SHARE_RING_RETURN] = SHARE_RETURN_WORDS,
	};

	return words[kind];
}

/** Return the offset of a ring in a page; for SHARE_RINGS: the page's length. */
static inline size_t share_ring_offset(enum share_ring_kind kind)
{
	size_t offset = sizeof(struct share_page);

	for (int k = 0; k < (int)kind; k++)
		offset += share_ring_bytes(share_ring_words((enum share_ring_kind)k));
	return offset;
}

/* A word of a ring describes a packet in a buffer. For an empty buffer only the number counts. */
#define SHARE_FLAG_LOCAL 0x1 /* handed over: from a trusted process of this host */
#define SHARE_FLAG_SUMS	 0x2 /* the port has verified IPv4 and UDP checksums */
#define SHARE_FLAG_ALONE 0x4 /* sent: PSOCK_ALONE */
/* To the owner: not sent, but received by the process's packet socket, for another one
 * (PSOCK_STRAY) */
#define SHARE_FLAG_STRAY 0x8
/* In a direct channel (share/direct.h): the packet is beside the word; the word is valid in this
 * round. */
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
