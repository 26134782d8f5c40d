/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's part in lanes between processes. */
#ifndef OWNER_LANES_H
#define OWNER_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "owner/serve.h"

struct server;

struct lanes {
	LIST_HEAD(, server_lane) list;
	uint32_t number;  /* the last that was given */
	bool spares_icrc; /* between processes packets need none */
	bool passes_all;  /* no lanes: all packets pass here */
	/* packets from process to process, modulo */
	uint16_t handed[SERVE_SLOTS_MAX][SERVE_SLOTS_MAX];
};

/** A packet goes from a process to another: make a lane between them, where there is none. */
void lanes_note(struct server *server, uint16_t from, uint16_t to);

/** A process is not talked to any more: others shall not, either. */
void lanes_close(struct server *server, uint16_t number);

/** A process has ended. Before the ledger is told. */
void lanes_end(struct server *server, uint16_t number);

/** Take back what processes that have ended had lent, where it is done with. */
void lanes_look(struct server *server);

/** Packets that have gone through the lanes of now; what their processes write is believed. */
uint64_t lanes_packets(const struct server *server);

void lanes_destroy(struct server *server);

#endif
