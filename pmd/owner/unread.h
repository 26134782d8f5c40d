/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets from one process to another that lie unread in memory of this host, because the other
 * process has no CPU, or is stopped. They are not lost: who has sent them uses up no retry
 * meanwhile (transport/backlog.h). The owner looks from time to time what each process has taken,
 * because that index is in a cache line of the process. It tells each sender which receivers are
 * late, by the blocks of their queue pairs (wire_block_bit).
 */
#ifndef OWNER_UNREAD_H
#define OWNER_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "owner/serve.h"

struct server;

/* At least the time between two looks. A process that takes nothing between them is late. */
#define UNREAD_LOOK_NS UINT64_C(2000000)

#define UNREAD_WORDS (SERVE_SLOTS_MAX / 64)

/* The processes that have sent packets, a bit for each slot. */
struct unread_senders {
	uint64_t words[UNREAD_WORDS];
};

/* Packets in the ring of a process; all zero when it comes. */
struct unread {
	struct unread_senders older; /* of packets before `mark`, which are not all taken */
	struct unread_senders newer; /* of packets since */
	/* Packets at the last look. Only differences count, here and in `mark`. */
	uint32_t given, taken;
	uint32_t mark;
};

struct unread_looks {
	uint64_t due_ns;  /* of the next look */
	uint64_t wake_ns; /* the owner sleeps no longer; UINT64_MAX: nothing is unread */
};

/** Note a packet that a process was given by another one. */
static inline void unread_note(struct unread_looks *looks, struct unread *unread, uint16_t from)
{
	unread->newer.words[from / 64] |= UINT64_C(1) << from % 64;
	if (looks->wake_ns > looks->due_ns)
		looks->wake_ns = looks->due_ns;
}

/** Forget the packets of a process that the owner stops serving. */
void unread_forget(struct server *server, uint16_t number);

/** Look, if that is due, which processes are late, and tell those that have sent to them. */
void unread_look(struct server *server);

#endif
