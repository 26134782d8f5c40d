/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a memif connection, server or client: it sends and receives packets through shared
 * memory. The other end is not trusted.
 *
 * The other end may write anything there at any time. So each word is read once, into a local
 * variable, and checked there. Our indices and the sizes of rings, regions and buffers are in
 * private memory and never read back. A packet is copied before it is parsed.
 *
 * One thread at a time uses an end.
 */
#ifndef MEMIF_END_H
#define MEMIF_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/meter.h"
#include "memif/protocol.h"

#define MEMIF_REGIONS_MAX 4
#define MEMIF_LOG2_MAX	  14 /* of a ring's size; the protocol's own limit of old */
#define MEMIF_CHAIN_MAX	  64 /* buffers of one packet */

enum memif_side {
	MEMIF_SERVER, /* the memory is the client's; descriptors tell where its buffers are */
	MEMIF_CLIENT, /* the memory is ours; we know the buffers from private memory */
};

enum memif_state {
	MEMIF_STATE_HELLO,	/* a client: no HELLO has come yet */
	MEMIF_STATE_SETTING_UP, /* after INIT */
	MEMIF_STATE_CONNECTED,
	MEMIF_STATE_BROKEN, /* the other end broke a rule: no packet is sent or received */
};

struct memif_region {
	uint8_t *at;
	size_t bytes;
};

struct memif_ring {
	struct memif_ring_memory *memory; /* NULL: not made yet */
	const uint16_t *theirs;		  /* in `memory`: the index that the other end writes */
	uint16_t *ours;
	uint32_t size;	 /* a power of two */
	uint16_t own;	 /* index of the next descriptor that we use */
	uint16_t seen;	 /* the other end's index when we read it last; not read each time, because
			    the other end's CPU has the cache line */
	bool unfinished; /* `seen` ends inside a packet, whose rest has not come */
};

/*
 * A client's buffers. A receive buffer always has the same index in the ring. Transmit buffers are
 * used last in, first out, so that the few in use stay in the cache. For long packets the buffer
 * that has been free for longest may be better: see base/meter.h.
 */
struct memif_buffers {
	uint8_t *first;	    /* transmit buffers, then receive buffers */
	uint32_t offset;    /* of the first buffer in the region */
	uint32_t stride;    /* from buffer to buffer */
	uint32_t bytes;	    /* of each */
	uint16_t posted;    /* rx: buffers before it are ready for the server */
	uint16_t shown;	    /* tx: packets before it were shown to the server */
	uint16_t collected; /* tx: buffers before it are free again */
	uint16_t looked;    /* tx: our index when `collected` was last updated */
	/* Free transmit buffers, in a ring of as many places as the ring to the server has. The one
	 * that has been free for longest is at cache_first, the last used before cache_first +
	 * cache_count. */
	uint32_t *cache;
	uint32_t cache_first;
	uint32_t cache_count;
	uint32_t *placed; /* by index in tx: the buffer there */
};

struct memif_end {
	enum memif_side side;
	enum memif_state state;
	/* The other end may spread a packet over buffers of any length and publish it in parts.
	 * Else it publishes whole packets, and receives each packet in one buffer. */
	bool spreads;
	int chain_max;					/* buffers of a packet */
	struct memif_region regions[MEMIF_REGIONS_MAX]; /* a server: the client's memory */
	uint32_t region_count;
	struct memif_ring rx, tx;
	struct memif_buffers buffers; /* of a client */
	struct meter meter;	      /* of packets to the other end */
	struct taker taker;
	bool expects_long;	/* the last packet was long */
	enum store_way placing; /* of the packet for which memif_end_place was called last */
	/* Eventfds, or our end of a pair of sockets (memif/doorbell.h). Both may be the same
	 * descriptor. They have our mark (base/own.h). -1: none yet. */
	int wake_fd;	 /* the other end writes to it when it has sent packets and we listen */
	int doorbell_fd; /* we write to it when we have sent packets and the other end listens */
	bool wakes_by_socket; /* constant: wake_fd is a socket */
	bool rings_by_socket; /* constant: doorbell_fd is a socket */
};

/** Take over our end of the doorbells that are sockets, which the owner has made, and which has our
 * mark. One of the doorbells must be a socket. Before the first message of a connection. */
void memif_end_take_doorbell(struct memif_end *end, int doorbell_fd);

/** Close the doorbells in another thread. An eventfd may be in an epoll set of the other process,
 * and a socket may hold what that has sent, so close(2) may take any time. */
void memif_end_drop_doorbells(struct memif_end *end);

/** Initialise what measures packets. The end's side is set. */
void memif_end_init_meters(struct memif_end *end);

/**
 * A function that copies a packet out of shared memory.
 *
 * @return
 *   True if it has also verified the packet, so that no further check is needed.
 */
typedef bool memif_copy(uint8_t *to, const uint8_t *from, size_t len);

/**
 * Copy a packet that the other end has sent.
 *
 * @param copy
 *   Copies a packet that is in one buffer.
 * @param right
 *   Set to the result of `copy`; false if `copy` was not called.
 * @return
 *   The packet's length; 0: there is none; -EMSGSIZE: an empty or too long packet was dropped;
 * -EPROTO: the other end broke a rule.
 */
int memif_end_receive(struct memif_end *end, uint8_t *room, size_t room_bytes, memif_copy *copy,
		      bool *right);

/** Give back the buffers of received packets. */
void memif_end_release(struct memif_end *end);

/** Switch notifications of sent packets through `wake_fd` on or off. */
void memif_end_listen(struct memif_end *end, bool on);

/** Return true if packets wait. */
bool memif_end_waits(const struct memif_end *end);

/** Return the index in the ring behind the packets that have arrived. */
uint16_t memif_end_arrived(const struct memif_end *end);

/** Return true if the packets before an index have been received. The index is at most 2^15 packets
 * old. */
bool memif_end_has_received(const struct memif_end *end, uint16_t index);

/** Return the index in the ring behind the packets that were sent. */
uint16_t memif_end_sent(const struct memif_end *end);

/** Return true if the server has taken the packets before an index, or all packets. Of a client's
 * end. */
bool memif_end_has_taken(const struct memif_end *end, uint16_t index);

/**
 * Tell how many packets were put into the ring, and how many the other end has taken.
 *
 * @param given, taken
 *   Both count from any number, modulo 2^32, in steps of 2^16 for a buffer.
 * @param dropped
 *   Packets that the other end has taken, and then dropped, as far as it tells
 *   (memif_end_tell_dropped). Counts from any number, modulo 2^32.
 * @return
 *   False: there is no connection, or the other end's index is impossible.
 */
bool memif_end_tell_taken(const struct memif_end *end, uint32_t *given, uint32_t *taken,
			  uint32_t *dropped);

/** Tell the client how many of its packets were dropped. Before memif_end_release, if the client
 * shall know as soon as it sees that they were taken. Of a server's end. */
void memif_end_tell_dropped(const struct memif_end *end, uint32_t dropped);

/** Tell the client which receivers have left packets unread that were taken from it, a bit for some
 * of them each (wire_block_bit). Of a server's end. */
void memif_end_tell_unread(const struct memif_end *end, uint64_t unread);

/** Return what memif_end_tell_unread has told. Of a client's end. */
uint64_t memif_end_unread(const struct memif_end *end);

/**
 * Put a packet into the ring. memif_end_push publishes it.
 *
 * @return
 *   0; -EAGAIN: there is no buffer; -EMSGSIZE: it is too long for the buffers;
 * -EPROTO: the other end broke a rule.
 */
int memif_end_send(struct memif_end *end, const uint8_t *packet, size_t len);

/** Return true if there is a buffer for a packet. */
bool memif_end_has_room(struct memif_end *end);

/** Return the buffer for the next packet if it has `len` bytes; else NULL. The other end may read
 * and write the buffer while the caller builds the packet in it. `placing` tells how to store the
 * packet's payload. */
uint8_t *memif_end_place(struct memif_end *end, size_t len);

/** Prefetch the buffer of a packet of `len` bytes that will be sent after `ahead` others. The cache
 * lines may be in the cache of the other end's CPU. */
void memif_end_expect(const struct memif_end *end, uint32_t ahead, size_t len);

/** Put the packet of `len` bytes that was built at memif_end_place into the ring. memif_end_push
 * publishes it. */
void memif_end_placed(struct memif_end *end, size_t len);

/** Publish all packets that were put into the ring. */
void memif_end_publish(struct memif_end *end);

/** Return true if the other end sleeps, or is about to: it must be woken through `doorbell_fd`.
 * Call this after memif_end_publish, and after a full fence. */
bool memif_end_is_asleep(const struct memif_end *end);

/** Publish packets, and return true if the other end must be woken. Contains the fence. */
bool memif_end_push(struct memif_end *end);

#endif
