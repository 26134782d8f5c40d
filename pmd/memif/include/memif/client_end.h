/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's end of a memif connection to a server that is not trusted.
 *
 * The memory is ours, and the server may write what it likes there at any time. So which buffer
 * lies where in a ring, and how far either has come, is in memory of our own; of what is shared two
 * indices and a packet's length are read, once each, and checked.
 *
 * Buffers to the server are used last in, first out: few are in use at once, and stay in the cache.
 *
 * One thread at a time has a client.
 */
#ifndef MEMIF_CLIENT_END_H
#define MEMIF_CLIENT_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memif/server_end.h"
#include "memif/wire.h"

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
	MEMIF_CLIENT_CONNECTED,
	MEMIF_CLIENT_BROKEN, /* it broke a rule: nothing goes in or out any more */
};

struct memif_client {
	struct memif_client_config config;
	enum memif_client_step step; /* what was told last */
	int memory_fd;
	uint8_t *memory;
	size_t bytes;
	uint32_t stride;	     /* from buffer to buffer */
	size_t buffers_at;	     /* in the memory: those to the server, then those from it */
	struct memif_ring to_server; /* own: head */
	struct memif_ring to_client; /* own: the next to be received */
	uint16_t collected;	     /* to_server: buffers before it are free again */
	uint16_t looked;	     /* to_server: our index when that was found out last */
	uint16_t posted;	     /* to_client: our head */
	uint32_t *stock;	     /* free buffers to the server, the one used last on top */
	uint32_t stock_count;
	uint32_t *placed; /* by index in the ring to the server: its buffer */
	int wake_fd;	  /* eventfd: the server has sent something */
	int bell_fd;	  /* eventfd: tells the server */
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

/** These are as those of a memif_peer. */
int memif_client_receive_by(struct memif_client *client, uint8_t *room, size_t room_bytes,
			    memif_copy *copy, bool *right);
void memif_client_release(struct memif_client *client);
void memif_client_listen(struct memif_client *client, bool on);
bool memif_client_waits(const struct memif_client *client);
bool memif_client_has_room(struct memif_client *client);
int memif_client_send(struct memif_client *client, const uint8_t *packet, size_t len);
uint8_t *memif_client_place(struct memif_client *client, size_t len);
void memif_client_expect(const struct memif_client *client, uint32_t ahead, size_t len);
void memif_client_placed(struct memif_client *client, size_t len);
bool memif_client_push(struct memif_client *client);

/** After the server's end: it may keep the file for as long as it likes, but not our pages in it.
 * Where we end a connection it may still take what it was sent, and keeps them. */
void memif_client_take_back(struct memif_client *client);
void memif_client_fini(struct memif_client *client);

#endif
