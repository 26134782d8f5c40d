/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's end of a memif connection: what its client says over their socket.
 *
 * The client has all memory that is shared. That cannot be made shorter: it must be sealed.
 */
#ifndef MEMIF_SERVER_END_H
#define MEMIF_SERVER_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memif/end.h"
#include "memif/protocol.h"

#define MEMIF_ISOLATED_LOG2_MAX 10 /* of an isolated program's ring */

/* What a client may have us take. */
struct memif_limits {
	uint64_t bytes;	   /* of all its regions */
	uint8_t log2_ring; /* of a ring's size */
	int chain;	   /* buffers that a packet is spread over */
	/* Anybody's: it shows whole packets and polls, and its pages are not had at once. */
	bool isolated;
};

/** Of what the user has put at the other end. */
extern const struct memif_limits memif_limits_user;

/** Of an isolated program. */
extern const struct memif_limits memif_limits_isolated;

struct memif_server {
	struct memif_end end;
	const struct memif_limits *limits;
	uint64_t region_bytes; /* of all */
};

void memif_server_init(struct memif_server *server, const struct memif_limits *limits);

/** Write the first message of a connection. */
void memif_server_greet(const struct memif_server *server, struct memif_message *message,
			const char *name);

/**
 * Take a message that came after the greeting.
 *
 * @param fd
 *   The descriptor that came with it, or -1. It is the server's from here on.
 * @param answer
 *   What is to be sent, where 0 is returned.
 * @return
 *   0; -ECONNRESET: the client leaves, and what it has sent may still be received; -errno: it broke
 * a rule, or there is no memory: let go of it.
 */
int memif_server_take(struct memif_server *server, const struct memif_message *message, int fd,
		      struct memif_message *answer);

/** Copy a packet of a client that sends none that do not fit: as memif_end_receive, but that one
 * which does breaks a rule. */
int memif_server_receive(struct memif_server *server, uint8_t *room, size_t room_bytes);

void memif_server_fini(struct memif_server *server);

#endif
