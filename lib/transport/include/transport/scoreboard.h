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
/* Most ranges: enough for a window of LOSS_WINDOW_LIMIT packets, of which every fourth is lost. */
#define SCOREBOARD_LIMIT 2048
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
	/* RANGE_SENT_AGAIN: when it was. `order` counts the packets that are sent again; it is that
	 * of `from`, and each later packet has the next number. 0: not known. */
	uint32_t order;
	struct psn next; /* the next new packet at that time: from < next <= top */
};

struct scoreboard {
	struct scoreboard_range *ranges; /* `few`, or allocated */
	uint32_t first;
	uint32_t count; /* valid ones, from `first` on */
	uint32_t room;
	/* For peers that tell (loss_sack.h); set by loss_begin. una <= `came` and `scanned` <= top,
	 * as loss_advance advances both. */
	struct psn came; /* one past the newest packet known to have come when it was sent for the
			    first time */
	struct psn scanned; /* missing responses before it are in a range */
	uint32_t order;	    /* number of the next packet that is sent again */
	uint32_t newest;    /* the greatest number of one that has come since */
	uint32_t serial;    /* of the newest selective acknowledgement; 0: none came */
	/*
	 * Towards a peer that tells, loss.window_max limits only the packets that may still be in
	 * the network. Those that are known to have come or to be lost are not. With them, at most
	 * `span` packets are unacknowledged: the peer keeps no others (loss_widen).
	 */
	uint32_t span;
	uint32_t far;	      /* packets that the peer's responder may keep */
	struct psn announced; /* valid while `widening`: packets from here on announce a longer
				 span. loss_widen is called before una is 2^23 ahead of it. */
	bool widening;
	uint8_t rounds; /* full windows until window_max may grow, after a refusal */
	bool missed;	/* within a report (loss_sack.h): it shows packets to be missing */
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

/** Note that these packets were sent again; the first of them as number `order`, when the next new
 * packet was `next`. As scoreboard_mark. */
bool scoreboard_mark_again(struct scoreboard *board, struct psn from, struct psn to, uint32_t order,
			   struct psn next);

/**
 * Find the packets that were sent again and are lost again: a packet that was sent later has come.
 * They are missing now.
 *
 * @param came
 *   One past the newest packet that came when it was sent for the first time.
 * @param order
 *   The number of the newest packet that came after it was sent again.
 */
void scoreboard_lose_again(struct scoreboard *board, struct psn came, uint32_t order);

/** Return what is known about the packet `psn`, and set *end to the end of all packets of which the
 * same is known, but at most `to`. */
const struct scoreboard_range *scoreboard_look(const struct scoreboard *board, struct psn psn,
					       struct psn to, struct psn *end);

/** Return how many packets are known to have come, or are missing: they are not in the network. */
uint32_t scoreboard_settled(const struct scoreboard *board);

/** Return the last range that is missing or was sent again, or NULL. */
const struct scoreboard_range *scoreboard_last_open(const struct scoreboard *board);

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
