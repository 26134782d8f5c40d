/* SPDX-License-Identifier: BSD-3-Clause */
/* Connect two example programs on one machine. Over a Unix socket each program sends the data of
 * its queue pair and its region. A call that fails ends the program with one line. */
#ifndef EXAMPLES_MEET_H
#define EXAMPLES_MEET_H

#include <stdint.h>

#include <infiniband/verbs.h>

#define MEET_BYTES 1048576

/* What each side sends to the other over the socket. */
struct meet_card {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
};

struct meet {
	int device; /* set by the program before it connects: which one of the list */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* ready to send */
	struct ibv_mr *mr; /* MEET_BYTES */
	uint8_t *memory;   /* the memory of mr */
	uint64_t peer_addr;
	uint32_t peer_rkey;
};

/** Wait at `path` for the other program, and connect. A receive request of 0 bytes is posted. */
void meet_serve(struct meet *meet, const char *path);

/** Connect to the program that waits at `path`; retry for a minute until it is there. */
void meet_call(struct meet *meet, const char *path);

/** Post a WRITE or READ of the whole region, or a SEND of 0 bytes. */
void meet_post(struct meet *meet, enum ibv_wr_opcode opcode);

/** Wait until a request has completed successfully. */
void meet_wait(struct meet *meet);

/** End the program with one line if `bad` is not 0: `what` failed, with the text of errno. */
void meet_check(int bad, const char *what);

/** Wait for the other program at `path`, or look for it there for a minute. Return a connected
 * socket. */
int meet_accept(const char *path);
int meet_connect(const char *path);

/** Return the expected byte at an offset of the region in a round. */
static inline uint8_t meet_byte(uint32_t at, uint32_t round)
{
	return (uint8_t)((at * 2654435761u >> 13) + round);
}

#endif
