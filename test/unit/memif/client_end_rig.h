/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of a memif connection, with our own server at the other end. */
#ifndef CLIENT_END_RIG_H
#define CLIENT_END_RIG_H

#include <stddef.h>
#include <stdint.h>

#include "memif/client_end.h"
#include "memif/server_end.h"

#define LOG2   4
#define SIZE   (1u << LOG2)
#define BUFFER 256
#define ROOM   8192

struct ends {
	struct memif_client client;
	struct memif_server server;
	/* The memory as the server has it, which may write what it likes there. */
	struct memif_ring_memory *to_server, *to_client;
};

/** The client's configuration, unless a test has its own. */
extern const struct memif_client_config ends_config;

/** Functions for cmocka: the state is a struct ends whose two ends are connected. */
int ends_set_up(void **state);
int ends_set_up_with(void **state, const struct memif_client_config *with);
int ends_tear_down(void **state);

/** Make a new connection in the same memory: cmocka remembers what a fixture has allocated. */
void ends_connect_again(struct ends *ends);

/** Return a server's hello. */
struct memif_message ends_hello(void);

/** A copy function for memif_end_receive. */
bool ends_copy(uint8_t *to, const uint8_t *from, size_t len);

/** Fill memory with bytes that count from `first`, or check that it has them. */
void fill(uint8_t *bytes, uint8_t first, size_t len);
void expect_bytes(const uint8_t *bytes, uint8_t first, size_t len);

/** Receive a packet into ROOM bytes. Return its length, 0 if there is none, or -errno. */
int client_receives(struct ends *ends, uint8_t *room);
int peer_receives(struct ends *ends, uint8_t *room);

#endif
