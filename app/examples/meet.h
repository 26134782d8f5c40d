/* SPDX-License-Identifier: BSD-3-Clause */
/* How two example programs of one machine meet: over a Unix socket they tell each other of a queue
 * pair and a region each, and connect. A call that fails ends the program with one line. */
#ifndef EXAMPLES_MEET_H
#define EXAMPLES_MEET_H

#include <stdint.h>

#include <infiniband/verbs.h>

#define MEET_BYTES 1048576

struct meet {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* ready to send */
	struct ibv_mr *mr; /* MEET_BYTES */
	uint8_t *memory;   /* of it */
	uint64_t peer_addr;
	uint32_t peer_rkey;
};

/** Wait at `path` for who comes, with a receive request of no bytes posted. */
void meet_serve(struct meet *meet, const char *path);

/** Go to who waits there, or will soon. */
void meet_call(struct meet *meet, const char *path);

/** Post a request about the whole region. */
void meet_post(struct meet *meet, enum ibv_wr_opcode opcode);

/** Wait until a request has completed, with success. */
void meet_wait(struct meet *meet);

/** The byte that belongs at a place of a region, by its round. */
static inline uint8_t meet_byte(uint32_t at, uint32_t round)
{
	return (uint8_t)((at * 2654435761u >> 13) + round);
}

#endif
