/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Either end of a memif connection whose other end is not trusted: packets out of and into the
 * memory that both share.
 *
 * The other end may write what it likes there at any time. So what is read of it is read once, into
 * a local, and checked there; how far we are in a ring, and how large a ring, a region and a buffer
 * of ours are, is in memory of our own and never read back; and packets are copied before anybody
 * looks into them.
 *
 * One thread at a time has an end.
 */
#ifndef MEMIF_END_H
#define MEMIF_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memif/protocol.h"

#define MEMIF_REGIONS_MAX 4
#define MEMIF_LOG2_MAX	  14 /* of a ring's size; the protocol's own limit of old */
#define MEMIF_CHAIN_MAX	  64 /* buffers that a packet is spread over */

enum memif_side {
	MEMIF_SERVER, /* the memory is the client's: its descriptors say where buffers are */
	MEMIF_CLIENT, /* the memory is ours, and so is what we know of buffers in it */
};

enum memif_state {
	MEMIF_STATE_GREETED,	/* a client: not greeted yet */
	MEMIF_STATE_SETTING_UP, /* after INIT */
	MEMIF_STATE_CONNECTED,
	MEMIF_STATE_BROKEN, /* the other end broke a rule: nothing goes in or out any more */
};

struct memif_region {
	uint8_t *at;
	size_t bytes;
};

struct memif_ring {
	struct memif_ring_memory *memory; /* NULL: not there yet */
	const uint16_t *theirs;		  /* in it: the index that the other end writes */
	uint16_t *ours;
	uint32_t size;	 /* a power of two */
	uint16_t own;	 /* the descriptor that we use next */
	uint16_t seen;	 /* the other's index, when it was looked at last: not each time, for its
			    line is the other's */
	bool unfinished; /* what was seen is the begin of a packet, whose rest is still to come */
};

/*
 * A client's buffers. Those that it receives by stay at their index of the ring. Those that it
 * sends are used last in, first out: few are in use at once, and stay in the cache.
 */
struct memif_buffers {
	uint8_t *first;	    /* those to the server, then those from it */
	uint32_t offset;    /* of the first in the region */
	uint32_t stride;    /* from buffer to buffer */
	uint32_t bytes;	    /* of each */
	uint16_t posted;    /* rx: buffers before it are ready for the server */
	uint16_t shown;	    /* tx: packets before it were shown to the server */
	uint16_t collected; /* tx: buffers before it are free again */
	uint16_t looked;    /* tx: our index when that was found out last */
	uint32_t *stock;    /* free buffers to the server, the one used last on top */
	uint32_t stock_count;
	uint32_t *placed; /* by index in tx: its buffer */
};

struct memif_end {
	enum memif_side side;
	enum memif_state state;
	/* A packet may be spread over buffers of any length, and shown in parts. Else the other
	 * end shows whole packets, and has a buffer for each that it receives. */
	bool spreads;
	int chain_max;					/* buffers of a packet */
	struct memif_region regions[MEMIF_REGIONS_MAX]; /* of a client's memory, at its server */
	uint32_t region_count;
	struct memif_ring rx, tx;
	struct memif_buffers buffers; /* of a client */
	int wake_fd; /* eventfd: the other end has sent something, when we had asked for that; -1:
			none yet */
	int bell_fd; /* eventfd: tells it of packets, where it asks for that; -1: it cannot */
};

/**
 * How a packet is copied out of shared memory.
 *
 * @return
 *   Whether what has been copied was found to be right on the way, so that nobody need look at it
 * again.
 */
typedef bool memif_copy(uint8_t *to, const uint8_t *from, size_t len);

/**
 * Copy a packet that the other end has sent.
 *
 * @param copy
 *   Copies a packet that is in one piece.
 * @param right
 *   Set to what `copy` says, else false.
 * @return
 *   The packet's length; 0: there is none; -EMSGSIZE: there was one, which is empty or did not fit,
 * and is gone; -EPROTO: the other end broke a rule.
 */
int memif_end_receive(struct memif_end *end, uint8_t *room, size_t room_bytes, memif_copy *copy,
		      bool *right);

/** Give back the buffers of what was received. */
void memif_end_release(struct memif_end *end);

/** Ask to be told over `wake_fd` of what is sent from here on, or no more. */
void memif_end_listen(struct memif_end *end, bool on);

/** Return true if packets wait. */
bool memif_end_waits(const struct memif_end *end);

/**
 * Send a packet; it is seen after memif_end_push.
 *
 * @return
 *   0; -EAGAIN: there is no buffer; -EMSGSIZE: it fits into no buffers that there ever are;
 * -EPROTO: the other end broke a rule.
 */
int memif_end_send(struct memif_end *end, const uint8_t *packet, size_t len);

/** Return true if there is a buffer for a packet. */
bool memif_end_has_room(struct memif_end *end);

/** Return the buffer that the next packet is to be built in, where it has `len` bytes; else NULL.
 * Whoever builds there keeps in mind that the other end reads and writes it meanwhile. */
uint8_t *memif_end_place(struct memif_end *end, size_t len);

/** A packet of `len` bytes will be sent after `ahead` others: have the lines fetched that it is
 * written to, which may be in the other end's CPU's cache. */
void memif_end_expect(const struct memif_end *end, uint32_t ahead, size_t len);

/** A packet of so many bytes is in the buffer of memif_end_place; it is seen after memif_end_push.
 */
void memif_end_placed(struct memif_end *end, size_t len);

/** Show what was placed, or sent. Return true if the other end sleeps, and is to be told over
 * `bell_fd`. */
bool memif_end_push(struct memif_end *end);

#endif
