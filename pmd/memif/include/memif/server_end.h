/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's end of a memif connection: it handles the client's messages.
 *
 * The client provides all shared memory. The memory must be sealed, so that it cannot shrink.
 */
#ifndef MEMIF_SERVER_END_H
#define MEMIF_SERVER_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memif/end.h"
#include "memif/doorbell.h"
#include "memif/protocol.h"

#define MEMIF_ISOLATED_LOG2_MAX 10 /* of an isolated program's ring */

/* Limits of what a client may ask for. */
struct memif_limits {
	uint64_t bytes;	   /* of all its regions */
	uint8_t log2_ring; /* of a ring's size */
	int chain;	   /* buffers of one packet */
	/* An untrusted client: it must publish whole packets. The doorbell of the ring to it is a
	 * socket (memif/doorbell.h), and no message brings it (memif_end_take_doorbell); that of
	 * other clients is an eventfd. Its memory is not populated. */
	bool isolated;
};

/** Limits of a client that the user has chosen. */
extern const struct memif_limits memif_limits_user;

/** Limits of an isolated program. */
extern const struct memif_limits memif_limits_isolated;

struct memif_server {
	struct memif_end end;	/* of the first pair of rings; it has the regions until CONNECT */
	struct memif_end *more; /* of the others; NULL: there are none */
	uint32_t pairs;		/* the higher number of rings of the two directions */
	const struct memif_limits *limits;
	uint64_t region_bytes; /* of all regions */
	/* of our engines, to each of which pairs of rings lead (memif/doorbell.h); 0: one pair in
	 * all. Set after memif_server_init. */
	uint32_t queues;
	bool client_tells;  /* how many engines it has, so it may make all pairs */
	bool client_steers; /* the client sends each packet to the right engine of ours */
};

/** Return the end of a pair of rings. One ring of it may be missing (NULL memory), if the client is
 * not uroce and makes more rings of one direction. */
static inline struct memif_end *memif_server_end(struct memif_server *server, uint32_t pair)
{
	return pair == 0 ? &server->end : &server->more[pair - 1];
}

void memif_server_init(struct memif_server *server, const struct memif_limits *limits);

/** Write the first message of a connection. `name` is displayed by the other end, unless our
 * name tells the number of our engines (memif/doorbell.h). */
void memif_server_hello(const struct memif_server *server, struct memif_message *message,
			const char *name);

/**
 * Handle a message that came after the hello.
 *
 * @param fd
 *   The descriptor that came with it, or -1. The server takes it over.
 * @param answer
 *   To be sent, if 0 is returned.
 * @return
 *   0; -ECONNRESET: the client disconnects, and its packets may still be received; -errno: it broke
 * a rule, or there is no memory: end the connection.
 */
int memif_server_take(struct memif_server *server, const struct memif_message *message, int fd,
		      struct memif_message *answer);

/** Copy a packet as memif_end_receive does. A packet that does not fit breaks a rule. */
int memif_server_receive(struct memif_server *server, uint8_t *room, size_t room_bytes);

void memif_server_fini(struct memif_server *server);

#endif
