/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's end of a memif connection to a client that is not trusted.
 *
 * The client has all memory that is shared, and may write what it likes there at any time. So what
 * is read of it is read once, into a local, and checked there; where the server is in a ring, how
 * large a ring and a region are, is in the server's own memory and never read back; and packets are
 * copied before anybody looks into them. The memory cannot be made shorter: it must be sealed.
 *
 * One thread at a time has a peer.
 */
#ifndef MEMIF_SERVER_END_H
#define MEMIF_SERVER_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memif/wire.h"

#define MEMIF_REGIONS_MAX   4
#define MEMIF_BYTES_MAX	    (UINT64_C(16) << 20) /* of all its regions */
#define MEMIF_LOG2_RING_MAX 10
#define MEMIF_CHAIN_MAX	    8 /* buffers that a packet is spread over */
#define MEMIF_WIRE_LOG2_MAX \
	14 /* of a wire that the user has set up; the protocol's own limit of old */
#define MEMIF_WIRE_CHAIN_MAX 64
#define MEMIF_WIRE_BYTES_MAX (UINT64_C(4) << 30)

struct memif_region {
	uint8_t *at;
	size_t bytes;
};

struct memif_ring {
	struct memif_ring_memory *memory; /* NULL: not there yet */
	uint32_t size;			  /* a power of two */
	uint16_t own;			  /* the index that we write */
	uint16_t seen;	 /* the other's, when it was looked at last: not each time, for its line is
			    the other's */
	bool unfinished; /* what was seen is the begin of a packet, whose rest is still to come */
};

/**
 * How a packet is copied out of shared memory.
 *
 * @return
 *   Whether what has been copied was found to be right on the way, so that nobody need look at it
 * again.
 */
typedef bool memif_copy(uint8_t *to, const uint8_t *from, size_t len);

enum memif_state {
	MEMIF_STATE_GREETED,
	MEMIF_STATE_SETTING_UP, /* after INIT */
	MEMIF_STATE_CONNECTED,
	MEMIF_STATE_BROKEN, /* it broke a rule: nothing goes in or out any more */
};

struct memif_peer {
	enum memif_state state;
	struct memif_region regions[MEMIF_REGIONS_MAX];
	uint32_t region_count;
	uint64_t region_bytes; /* of all */
	struct memif_ring to_server, to_client;
	bool is_wire; /* as memif_peer_init_wire has it */
	int wake_fd;  /* eventfd: it has sent something, when we had asked for that; -1: none yet */
	int bell_fd;  /* eventfd: tells it of packets, where it asks for that; -1: it cannot */
};

/** To a client that sends what an isolated program sends, in few and short buffers. */
void memif_peer_init(struct memif_peer *peer);

/** To whatever the user has put at the other end of a wire: rings and packets of any size, and the
 * client is told of what was sent where it sleeps. */
void memif_peer_init_wire(struct memif_peer *peer);

/** The first message of a connection. */
void memif_peer_greet(struct memif_message *message, const char *name);

/**
 * Take a message that came after the greeting.
 *
 * @param fd
 *   The descriptor that came with it, or -1. It is the peer's from here on.
 * @param answer
 *   What is to be sent, where 0 is returned.
 * @return
 *   0; -ECONNRESET: it leaves, and what it has sent may still be received; -errno: it broke a rule,
 * or there is no memory: let go of it.
 */
int memif_peer_take(struct memif_peer *peer, const struct memif_message *message, int fd,
		    struct memif_message *answer);

/**
 * Copy a packet that it has sent.
 *
 * @return
 *   The packet's length; 0: there is none; -EPROTO: it broke a rule.
 */
int memif_peer_receive(struct memif_peer *peer, uint8_t *room, size_t room_bytes);

/**
 * The same, by a copy of the caller's where the packet is in one piece.
 *
 * @param right
 *   Set to what `copy` says, else false.
 * @return
 *   As above; -EMSGSIZE: there was one, which did not fit and is gone.
 */
int memif_peer_receive_by(struct memif_peer *peer, uint8_t *room, size_t room_bytes,
			  memif_copy *copy, bool *right);

/** Give back the buffers of what was received. */
void memif_peer_release(struct memif_peer *peer);

/** Ask to be told over `wake_fd` of what it sends from here on, or no more. */
void memif_peer_listen(struct memif_peer *peer, bool on);

/** Whether packets wait. */
bool memif_peer_waits(const struct memif_peer *peer);

/**
 * Send a packet.
 *
 * @return
 *   0; -EAGAIN: it has no buffer ready; -EMSGSIZE: the next one is too short for it, and stays;
 * -EPROTO: it broke a rule.
 */
int memif_peer_send(struct memif_peer *peer, const uint8_t *packet, size_t len);

/** Whether it has a buffer ready. */
bool memif_peer_has_room(struct memif_peer *peer);

/** The buffer that the next packet is to be built in, where it has `len` bytes; else NULL. Whoever
 * builds there keeps in mind that the client reads and writes it meanwhile. */
uint8_t *memif_peer_place(struct memif_peer *peer, size_t len);

/** A packet of `len` bytes will be sent after `ahead` others: have the lines fetched that it is
 * written to, which may be in the client's CPU's cache. */
void memif_peer_expect(const struct memif_peer *peer, uint32_t ahead, size_t len);

/** A packet of so many bytes is there; it is seen after memif_peer_push. */
void memif_peer_placed(struct memif_peer *peer, size_t len);

/** Show what was placed, or sent. Whether the client sleeps, and is to be told over `bell_fd`. */
bool memif_peer_push(struct memif_peer *peer);

void memif_peer_fini(struct memif_peer *peer);

#endif
