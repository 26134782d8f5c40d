/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a process leaves packets in its ring: it has no CPU, or is stopped. Its peers on this
 * host use up no retry meanwhile (transport/backlog.h).
 */
#ifndef OWNER_UNREAD_H
#define OWNER_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

/* At least the time between two looks at the process's index, whose cache line is the process's. */
#define UNREAD_LOOK_NS UINT64_C(2000000)

/* All zero: nothing is known. */
struct unread {
	uint64_t due_ns;       /* of the next look */
	uint32_t given, taken; /* packets at the last look, of which only differences count */
	bool is_late;	       /* it has left a packet in its ring since the last look */
};

static inline bool unread_is_due(const struct unread *unread, uint64_t now_ns)
{
	return now_ns >= unread->due_ns;
}

/** Note how many packets the process was given and has taken. It is late if it has taken none since
 * the last look, and had one then. */
static inline void unread_look(struct unread *unread, uint32_t given, uint32_t taken,
			       uint64_t now_ns)
{
	unread->is_late = taken == unread->taken && taken != unread->given;
	unread->given = given;
	unread->taken = taken;
	unread->due_ns = now_ns + UNREAD_LOOK_NS;
}

#endif
