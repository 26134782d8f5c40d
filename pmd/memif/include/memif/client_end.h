/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's end of a memif connection: it makes the shared memory, and describes that to the
 * server over their socket.
 */
#ifndef MEMIF_CLIENT_END_H
#define MEMIF_CLIENT_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memif/end.h"
#include "memif/doorbell.h"
#include "memif/protocol.h"

struct memif_client_config {
	uint32_t id; /* of the wanted interface */
	char secret[MEMIF_SECRET_LEN];
	uint8_t log2_size; /* of the rings; the server may limit it */
	uint16_t buffer_bytes;
	bool socket_to_client; /* the server rings by a socket: it does not trust this client */
	uint8_t queues;	       /* of our engines, to each of which a pair of rings leads
				  (memif/doorbell.h);        0: one pair in all */
};

/* Messages to the server, in order. The server answers each. */
enum memif_client_step {
	MEMIF_CLIENT_HELLO, /* none yet: the server must send HELLO first */
	MEMIF_CLIENT_INIT,
	MEMIF_CLIENT_REGION,
	MEMIF_CLIENT_RING_TO_SERVER,
	MEMIF_CLIENT_RING_TO_CLIENT,
	MEMIF_CLIENT_CONNECT,
	MEMIF_CLIENT_ACKNOWLEDGED, /* the server has acknowledged CONNECT; not all servers do */
	MEMIF_CLIENT_DONE,
};

struct memif_client {
	struct memif_end end;	/* of the first pair of rings */
	struct memif_end *more; /* of the others; NULL: there are none */
	uint32_t pairs;
	uint32_t server_queues; /* the server's engines; 1 also if it does not tell */
	bool server_steers;	/* the server sends each packet to the right engine of ours */
	uint32_t told;		/* rings of one direction that were described to the server */
	struct memif_client_config config;
	enum memif_client_step step; /* the last message sent */
	int memory_fd;
	uint8_t *memory;
	size_t bytes;
};

/** Return the end of a pair of rings. */
static inline struct memif_end *memif_client_end(struct memif_client *client, uint32_t pair)
{
	return pair == 0 ? &client->end : &client->more[pair - 1];
}

/** Initialise, before a connection. */
void memif_client_init(struct memif_client *client, const struct memif_client_config *config);

/**
 * Handle a message of the server.
 *
 * @param answer
 *   If 1 is returned: to be sent, with `answer_fd` unless that is -1. The client keeps the
 *   descriptor.
 * @return
 *   0: send nothing; 1: send the answer; -ECONNRESET: the server disconnects or refuses us; another
 *   -errno: it broke a rule, or there is no memory.
 */
int memif_client_take(struct memif_client *client, const struct memif_message *message,
		      struct memif_message *answer, int *answer_fd);

/** Free the pages of our memory, after the server has ended the connection or broken a rule: it may
 * keep the file open, but not our pages. Do not call this if we end the connection, because the
 * server may still receive from the pages. */
void memif_client_take_back(struct memif_client *client);

/** Release what the connection had, and prepare for the next one. */
void memif_client_fini(struct memif_client *client);

#endif
