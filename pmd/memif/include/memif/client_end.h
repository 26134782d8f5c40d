/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's end of a memif connection: the memory that it makes, and what it tells its server of
 * it over their socket.
 */
#ifndef MEMIF_CLIENT_END_H
#define MEMIF_CLIENT_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memif/end.h"
#include "memif/protocol.h"

struct memif_client_config {
	uint32_t id; /* of the interface that is wanted */
	char secret[MEMIF_SECRET_LEN];
	uint8_t log2_size; /* of the rings; the server may want shorter ones */
	uint16_t buffer_bytes;
};

/* What is told the server, and answered by it, one after the other. */
enum memif_client_step {
	MEMIF_CLIENT_HELLO, /* it has to greet us */
	MEMIF_CLIENT_INIT,
	MEMIF_CLIENT_REGION,
	MEMIF_CLIENT_RING_TO_SERVER,
	MEMIF_CLIENT_RING_TO_CLIENT,
	MEMIF_CLIENT_CONNECT,
	MEMIF_CLIENT_ACKNOWLEDGED, /* CONNECT was, which not all servers do */
	MEMIF_CLIENT_DONE,
};

struct memif_client {
	struct memif_end end;
	struct memif_client_config config;
	enum memif_client_step step; /* what was told last */
	int memory_fd;
	uint8_t *memory;
	size_t bytes;
};

/** Before a connection. */
void memif_client_init(struct memif_client *client, const struct memif_client_config *config);

/**
 * Take a message of the server's.
 *
 * @param answer
 *   What is to be sent where 1 is returned, with `answer_fd` where that is not -1, which stays
 * ours.
 * @return
 *   0: nothing is to be sent; 1; -ECONNRESET: the server leaves, or does not want us; another
 * -errno: it broke a rule, or there is no memory.
 */
int memif_client_take(struct memif_client *client, const struct memif_message *message,
		      struct memif_message *answer, int *answer_fd);

/** After the server's end: it may keep the file for as long as it likes, but not our pages in it.
 * Where we end a connection it may still take what it was sent, and keeps them. */
void memif_client_take_back(struct memif_client *client);
void memif_client_fini(struct memif_client *client);

#endif
