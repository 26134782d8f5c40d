/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of memif, for tests: right where it is not told otherwise. */
#ifndef TEST_MEMIF_CLIENT_H
#define TEST_MEMIF_CLIENT_H

#include "memif/server_end.h"

#define CLIENT_LOG2   3
#define CLIENT_RING   (1u << CLIENT_LOG2)
#define CLIENT_BUFFER 256
#define CLIENT_BYTES  16384

struct client {
	struct memif_server server;
	int memory_fd;
	int wake_fd; /* its end of the doorbells, or -1 */
	uint8_t *memory;
	struct memif_ring_memory *to_server, *to_client;
};

/** Memory with two rings; each descriptor has a buffer of its own. */
void client_init(struct client *client);
void client_fini(struct client *client);

/**
 * Return the answer of `memif_server_take` to a message; the descriptor, if any, is duplicated
 * first.
 */
int client_say(struct client *client, const struct memif_message *message, int fd);

/** A connection anew, up to INIT. */
void client_anew(struct client *client);

/** Messages as they should be. */
struct memif_message client_begin_message(void);
struct memif_message client_region(void);
struct memif_message client_ring(bool to_server);

/** Send all messages up to CONNECT. */
void client_connect(struct client *client);

/** A memory file of `bytes` with these seals. */
int client_file(size_t bytes, int seals);

/** Put a packet of `len` bytes into the next buffer to the server, its bytes counting up from
 * `first`. */
void client_send(struct client *client, uint8_t first, uint32_t len);

#endif
