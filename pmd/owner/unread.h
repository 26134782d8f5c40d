/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets from one process to another that lie unread in memory of this host, because the other
 * process has no CPU, or is stopped. They are not lost: who has sent them uses up no retry
 * meanwhile (transport/backlog.h). The owner looks from time to time what each process has taken,
 * because that index is in a cache line of the process.
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

/* Of a process; all zero when it comes. */
struct unread {
	uint64_t senders[UNREAD_WORDS]; /* bits by slot: its packets may be in the process's ring */
	uint32_t given, taken; /* packets at the last look, of which only differences count */
};

struct unread_looks {
	uint64_t due_ns;  /* of the next look */
	uint64_t wake_ns; /* the owner sleeps no longer; UINT64_MAX: nothing is unread */
};

/** Note a packet that a process was given by another one. */
static inline void unread_note(struct unread *unread, uint16_t from)
{
	unread->senders[from / 64] |= UINT64_C(1) << from % 64;
}

/** Forget the packets of a process that the owner stops serving. */
void unread_forget(struct server *server, uint16_t number);

/** Look, if that is due, which processes are late, and tell those that have sent to them. */
void unread_look(struct server *server);

#endif
