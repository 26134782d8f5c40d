/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the cases of interop_peer share: the connection, and the steps of both sides. */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#define BUFFER_BYTES 16384

/* A message from one side to the other. */
struct card {
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey;
	union ibv_gid gid;
	uint64_t addr;
};

struct run {
	const char *device, *port, *name, *server;
	uint8_t gid_index;
	unsigned int access; /* access rights in addition to the usual ones */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buffer;
	int sock;
	struct card own, peer;
};

extern struct run run;

#define REQUIRE(what)                                                                \
	do {                                                                         \
		if (!(what)) {                                                       \
			printf("%s: line %d: %s (%m)\n", run.name, __LINE__, #what); \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

void tell(const void *data, size_t len);
void hear(void *data, size_t len);

/** Wait until the other side has called this, too. */
void meet(void);

/** Wait for the next completion; end the program if none comes for long. */
struct ibv_wc completion(void);

/** Wait for the next completion, and check that it is of that kind. */
void expect(enum ibv_wc_status status, enum ibv_wc_opcode opcode);

/** Run the case of huge_regions.c. */
void huge(void);

/** Run the case of absent_pages.c. */
void absent(void);

#endif
