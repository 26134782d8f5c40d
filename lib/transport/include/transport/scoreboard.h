/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Knowledge about packets in flight, beyond that they were sent: ranges of PSNs that are missing,
 * were sent again, or have come. A response in a range that has come may have been dropped since.
 * Ranges are disjoint and in the order of their PSNs. Packets in no range were sent once, and
 * nothing more is known about them.
 */
#ifndef TRANSPORT_SCOREBOARD_H
#define TRANSPORT_SCOREBOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

#define SCOREBOARD_FEW 4 /* ranges that need no memory of their own */
/* Most ranges. Only kept responses make many, and less than half as many are kept (OOO_LIST_PKTS).
 */
#define SCOREBOARD_LIMIT 1024
/* Packets that have come leave this many ranges free, for what is missing and was sent again. */
#define SCOREBOARD_SPARE 3

enum range_state {
	RANGE_SENT,	  /* in no range */
	RANGE_MISSING,	  /* must be sent again */
	RANGE_SENT_AGAIN, /* was sent again, and has not come as far as known */
	RANGE_CAME,	  /* has come, although something before it is missing */
};

/* The PSNs are between una and top of the connection (transport/loss.h), because each
 * acknowledgement calls scoreboard_forget. So nobody has to advance them. */
struct scoreboard_range {
	struct psn from;
	struct psn to; /* one past the last */
	enum range_state state;
};

struct scoreboard {
	struct scoreboard_range *ranges; /* `few`, or allocated */
	uint32_t first;
	uint32_t count; /* valid ones, from `first` on */
	uint32_t room;
	struct scoreboard_range few[SCOREBOARD_FEW];
};

/* Begin with nothing known. A scoreboard must not be moved in memory. */
void scoreboard_init(struct scoreboard *board);
void scoreboard_fini(struct scoreboard *board);

/** Forget everything. */
static inline void scoreboard_clear(struct scoreboard *board)
{
	board->first = 0;
	board->count = 0;
}

/** Forget everything before `psn`. */
void scoreboard_forget(struct scoreboard *board, struct psn psn);

/**
 * Note that the packets [from, to) are in this state now, whatever was known about them before.
 *
 * @return
 *   False if there is no memory: then nothing has changed.
 */
bool scoreboard_mark(struct scoreboard *board, struct psn from, struct psn to,
		     enum range_state state);

/** Make each range of the first state one of the second. */
void scoreboard_replace(struct scoreboard *board, enum range_state state, enum range_state by);

/** Return the first range in this state, or NULL. Valid until the scoreboard changes. */
const struct scoreboard_range *scoreboard_first(const struct scoreboard *board,
						enum range_state state);

/** Return what is known about a packet. */
enum range_state scoreboard_at(const struct scoreboard *board, struct psn psn);

/** Assert the invariants; for builds with assertions. */
void scoreboard_check(const struct scoreboard *board, struct psn una, struct psn top);

#endif
