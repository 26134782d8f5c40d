/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct channels between two attached processes, or two isolated ones (share/direct.h): the owner
 * makes and ends them. */
#ifndef OWNER_DIRECT_H
#define OWNER_DIRECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "owner/serve.h"

struct server;

/* Channels between attached processes, and between isolated ones, so that neither can take those of
 * the others. The owner has a descriptor of each channel of isolated processes. The memory of a
 * channel is counted as that of the processes that use it. */
#define DIRECTS_MAX	     128
#define DIRECTS_ISOLATED_MAX 64

struct directs {
	LIST_HEAD(, server_direct) list;
	uint32_t count;		 /* of them: between attached processes */
	uint32_t isolated_count; /* of them: between isolated processes */
	uint32_t number;	 /* the last number that a channel got */
	bool spares_icrc;	 /* packets between attached processes need no ICRC */
	bool passes_all;	 /* no channels: all packets pass through the owner */
	/* packets counted by directs_note, from process (first index) to process; wraps */
	uint16_t handed[SERVE_SLOTS_MAX][SERVE_SLOTS_MAX];
};

/** Note a packet from a process to another, and make a channel between them if they have none. */
void directs_note(struct server *server, uint16_t from, uint16_t to);

/** Forget the packets from and to a process that the owner stops serving. */
void directs_forget(struct server *server, uint16_t number);

/** End the channels of a process that the owner stops serving. */
void directs_close(struct server *server, uint16_t number);

/** Return the number of packets that went through the open channels of attached processes. It comes
 * from indices that processes write, and is not checked. */
uint64_t directs_packets(const struct server *server);

void directs_destroy(struct server *server);

#endif
