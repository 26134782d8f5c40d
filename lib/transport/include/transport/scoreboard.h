/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Knowledge about packets in flight, beyond that they were sent: which are missing, were sent
 * again, or have come. It is kept as bitmaps, a bit for each PSN. So the work for a packet that
 * reports thousands of others depends on the length of the bitmaps in words, whatever their
 * bits are. A response that has come may have been dropped since. A packet with no bit was sent
 * once, and nothing more is known about it.
 *
 * Packets that are sent again have an order: a packet is lost again if one has come that was sent
 * after it (scoreboard_lose_again).
 */
#ifndef TRANSPORT_SCOREBOARD_H
#define TRANSPORT_SCOREBOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

struct packet;

/* Packets from the oldest on that need no memory of their own: more than a READ's segment. */
#define SCOREBOARD_FEW 128
/* Most packets: the longest window, and a READ's segment (transport/loss.h). */
#define SCOREBOARD_LIMIT 16384

enum range_state {
	RANGE_SENT,	  /* has no bit */
	RANGE_MISSING,	  /* must be sent again */
	RANGE_SENT_AGAIN, /* was sent again, and has not come as far as known */
	RANGE_CAME,	  /* has come, although something before it is missing */
	RANGE_STATES,
};

/*
 * What a packet that was sent again shall show. A responder takes requests in the order in which
 * they come, and says so at once. But it answers what is requested for the second time before what
 * it has not answered yet. So what has come says nothing about those of the other kind.
 */
enum again_kind {
	AGAIN_REQUEST,	/* the responder does not have it */
	AGAIN_RESPONSE, /* a request for a response that is missing: the responder has executed it
			   before */
	AGAIN_KINDS,
};

/* A packet that was sent again. */
struct scoreboard_again {
	uint16_t psn;  /* the last 16 bits of its PSN */
	uint16_t next; /* and of that of the next new packet at that time */
	uint8_t kind;  /* enum again_kind */
};

struct scoreboard {
	/*
	 * The bit of a PSN is at that PSN, modulo `packets`. Only bits of PSNs in [base, end) are
	 * set. Both are between una and top of the connection in other states than LOSS_NONE
	 * (transport/loss.h), because each acknowledgement calls scoreboard_forget.
	 */
	struct psn base;
	struct psn end;
	uint32_t packets;	      /* SCOREBOARD_FEW to SCOREBOARD_LIMIT; a power of two */
	uint64_t *bits[RANGE_STATES]; /* of each state; `few`, or allocated. None of RANGE_SENT */
	uint32_t count[RANGE_STATES]; /* bits that are set */
	/*
	 * The order in which packets were sent again: a ring of `packets` entries, up to `order`;
	 * from first[kind] on are those of a kind of which it is not known if they are lost again.
	 * `place` of a PSN, modulo `packets`, is the place in this ring of the newest time when it
	 * was sent again. An entry whose packet has another place, or another state, counts no
	 * more. NULL until a packet is sent again towards a SACK-capable peer.
	 */
	struct scoreboard_again *again;
	uint16_t *place;
	uint32_t first[AGAIN_KINDS];
	uint32_t order; /* number of the next packet that is sent again */
	/* For SACK-capable peers (loss_sack.h); set by loss_begin. una <= `came`, `answered` and
	 * `scanned` <= top, as loss_advance advances them. */
	/* One past the newest packet known to have come when it was sent for the first time; or
	 * whose response has. */
	struct psn came[AGAIN_KINDS];
	struct psn answered; /* responses before it were sent, once at least */
	struct psn scanned;  /* those of them that are missing before this PSN have a bit */
	/* The greatest number of a packet that has come since it was sent again. */
	uint32_t newest[AGAIN_KINDS];
	uint32_t serial; /* of the newest selective acknowledgement; 0: none came */
	/*
	 * Towards a SACK-capable peer, loss.window_max limits only the packets that may still be in
	 * the network. Those that are known to have come or to be lost are not. With them, at most
	 * `advertised_window` packets are unacknowledged: the peer keeps no others (loss_widen).
	 */
	uint32_t advertised_window;
	uint32_t far;	      /* packets that the peer's responder may keep */
	struct psn announced; /* valid while `widening`: packets from here on announce a longer
				 window. loss_widen is called before una is 2^23 ahead of it. */
	bool widening;
	uint8_t rounds;	  /* full windows until window_max may grow, after a refusal */
	uint8_t shortest; /* full windows in a row of the least length, with a queue */
	/* The packets that came in a round trip, the greatest number of the last measurements, and
	 * of those before; and when, and at what una and count, the present one began (loss_rate).
	 * `rated_psn` is only used if that was a few round trips ago. */
	uint32_t rate;
	uint32_t rate_before;
	uint64_t rated_ns;
	struct psn rated_psn;
	uint32_t rated_came;
	uint8_t ratings;
	/* Responses were requested by the newest probe (completer_sack.c) up to here. It is only
	 * compared with una for equality, so nobody has to advance it. */
	struct psn probed;
	uint32_t probe_run; /* so many */
	struct psn
		tail; /* una when the newest packet was last sent as a probe; compared likewise */
	/* Within a report (loss_sack.h). */
	bool missed;	     /* it shows packets to be missing */
	bool drops;	     /* a packet that was kept, and is not any more, is missing */
	bool dropped;	     /* there is such a packet */
	uint64_t dropped_ns; /* when there was the last one */
	uint64_t steps;	     /* words and packets that were looked at; tests limit them */
	uint64_t few[RANGE_STATES - 1][SCOREBOARD_FEW / 64];
};

/* Begin with nothing known. A scoreboard must not be moved in memory. */
void scoreboard_init(struct scoreboard *board);
/* Free what the board has allocated, and leave it as scoreboard_init does. */
void scoreboard_fini(struct scoreboard *board);

/** Forget everything. */
void scoreboard_clear(struct scoreboard *board);

/** Let `una` be the oldest PSN. Nothing is known. */
void scoreboard_begin(struct scoreboard *board, struct psn una);

/** Forget everything before `psn`, which is the oldest one now. */
void scoreboard_forget(struct scoreboard *board, struct psn psn);

/** Return true if nothing is known. */
static inline bool scoreboard_is_empty(const struct scoreboard *board)
{
	return (board->count[RANGE_MISSING] | board->count[RANGE_SENT_AGAIN] |
		board->count[RANGE_CAME]) == 0;
}

/**
 * Note that the packets [from, to) are in this state now, whatever was known about them before.
 *
 * @return
 *   False if there is no memory for some: nothing is known about those.
 */
bool scoreboard_mark(struct scoreboard *board, struct psn from, struct psn to,
		     enum range_state state);

/** Note that these packets were sent again now, one after the other, when the next new packet was
 * `next`. As scoreboard_mark. */
bool scoreboard_mark_again(struct scoreboard *board, struct psn from, struct psn to,
			   struct psn next, enum again_kind kind);

/** Note that these requests or responses have come: it may show others of the kind to be lost
 * (scoreboard_lose_again). */
void scoreboard_note_came(struct scoreboard *board, struct psn from, struct psn to,
			  enum again_kind kind);

/**
 * Process what a selective acknowledgement says about packets [from, to) that it covers.
 *
 * @param drops
 *   A packet that has come, and that it does not contain, is missing. Else it still counts as come.
 */
void scoreboard_tell(struct scoreboard *board, const struct packet *sack, struct psn from,
		     struct psn to, bool drops);

/** Note that these packets are missing, unless they were sent again already, or, unless `drops`,
 * have come. */
void scoreboard_miss(struct scoreboard *board, struct psn from, struct psn to, bool drops);

/** Find the packets that were sent again and are lost again: a packet that was sent later has come.
 * They are missing now. */
void scoreboard_lose_again(struct scoreboard *board);

/** Return what is known about the packet `psn`, and set *end to the end of all packets of which the
 * same is known, but at most `to`. */
enum range_state scoreboard_look(struct scoreboard *board, struct psn psn, struct psn to,
				 struct psn *end);

/** Return how many packets are known to have come, or are missing: they are not in the network. */
static inline uint32_t scoreboard_settled(const struct scoreboard *board)
{
	return board->count[RANGE_MISSING] + board->count[RANGE_CAME];
}

/** Find the newest packet that is missing or was sent again. Return false if there is none. */
bool scoreboard_last_open(struct scoreboard *board, struct psn *psn);

/** Let each packet of the first state have the second, from `from` on. */
void scoreboard_replace(struct scoreboard *board, struct psn from, enum range_state state,
			enum range_state by);

/** Find the first packets in this state: [from, to). Return false if there are none. */
bool scoreboard_first(struct scoreboard *board, enum range_state state, struct psn *from,
		      struct psn *to);

/** Return what is known about a packet. */
enum range_state scoreboard_at(const struct scoreboard *board, struct psn psn);

/** Assert the invariants; for builds with assertions. */
void scoreboard_check(const struct scoreboard *board, struct psn una, struct psn top);

#endif
