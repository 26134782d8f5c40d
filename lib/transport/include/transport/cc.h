/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control of a queue pair: how many packets may be in flight, how fast they leave, and
 * when the next one may. The algorithm is a table of functions, chosen when the queue pair is
 * created, and again by cc_change. They write what they allow into the pacer, which the requester
 * asks before each packet. doc/operator/congestion.md describes the algorithms.
 *
 * A queue pair without congestion control has no struct cc, and pays nothing. The owner of loss
 * decides which packets are sent; congestion control decides when.
 */
#ifndef TRANSPORT_CC_H
#define TRANSPORT_CC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "transport/cc_params.h"
#include "transport/cc_path.h"
#include "transport/dcqcn.h"
#include "transport/swift.h"

struct cc;
struct loss;
struct pacer;
struct packet;

enum cc_kind {
	CC_NONE,
	CC_DCQCN, /* for networks that mark packets */
	CC_SWIFT, /* measures delay, for networks that mark no packets */
	CC_KINDS,
	CC_GIVEN = CC_KINDS, /* the functions of cc_attr.given; it has no name */
};

/* A function that an algorithm does not need is NULL. */
struct cc_ops {
	const char *name;
	/* Our packets say that switches may mark them, and a receiver of marked packets sends
	 * congestion notifications. */
	bool marks;
	bool times; /* it needs round trips: one packet at a time is timed */
	/* Begin a connection. */
	void (*start)(struct cc *cc);
	/* An engine poll begins: run the timers. */
	void (*poll)(struct cc *cc, uint64_t now_ns);
	/* A packet was sent, which stands for `psns` PSNs (a READ request: for its responses). */
	void (*sent)(struct cc *cc, uint32_t bytes, uint32_t psns, uint64_t now_ns);
	/* The timed packet was answered after rtt_ns. `psns` PSNs were sent between the timed
	 * packet before it and this one. */
	void (*answered)(struct cc *cc, uint64_t rtt_ns, uint32_t psns, uint64_t now_ns);
	/* Packets were lost, for the first time in this flight. */
	void (*lost)(struct cc *cc, uint64_t now_ns);
	/* The peer sent a congestion notification. Return false if it is ignored. */
	bool (*notified)(struct cc *cc, uint64_t now_ns);
};

/* The parameters that a device gives to its queue pairs. */
struct cc_attr {
	enum cc_kind kind;
	uint64_t link_mbps;		/* 0: unknown */
	struct cc_paths *paths;		/* CC_SWIFT */
	const struct cc_params *params; /* CC_DCQCN; NULL: the defaults */
	const struct cc_ops *given;	/* CC_GIVEN */
	void *given_state;		/* CC_GIVEN: the queue pair's; it lives as long as that */
};

struct cc {
	/* set once */
	enum cc_kind kind;
	const struct cc_ops *ops; /* of this kind */
	struct pacer *pacer;
	const struct loss *loss;
	uint32_t link_kbps;
	struct cc_paths *paths;
	const struct cc_params *params; /* the device's, changed between two engine polls */

	/* The application's limit (ibv_modify_qp_rate_limit(3)); 0 kbps: none. */
	uint32_t limit_kbps;
	uint64_t limit_burst_ns;

	/* The limits that the algorithm sets. Its window is in the pacer. */
	uint32_t rate_kbps; /* 0: the link's rate */
	uint64_t wait_ns;   /* the next packet may not leave before this time */
	uint64_t timer_ns;  /* when `poll` may change the rate; UINT64_MAX: not by itself */

	bool expired;	     /* cc_expired was called since the last engine poll */
	uint32_t losses;     /* the value of loss.losses that was processed last */
	uint32_t sent_psns;  /* counts up and wraps */
	uint32_t timed_sent; /* sent_psns when the timed packet was sent */
	uint32_t last_sent;  /* sent_psns when the timed packet before it was sent */
	/*
	 * A packet is being timed. timed_psn is valid only then. It is una or behind it: only an
	 * answer to it or to a later packet lets una pass it, and that answer ends the timing
	 * (cc_answered). So nobody has to advance it.
	 */
	bool timed;
	struct psn timed_psn;
	uint64_t timed_ns;
	bool timed_alone;     /* nothing else was in flight when it was sent */
	struct cc_path *path; /* the peer's, of `paths`; or NULL */
	struct cc_path alone; /* takes the place of `path` if that is NULL */

	/* The receiver sent its newest congestion notification at this time. */
	bool has_notified;
	uint64_t notified_ns;

	union {
		struct dcqcn dcqcn;
		struct swift swift;
		void *given; /* cc_attr.given_state */
	};
};

/* A rate that congestion control has set may be exceeded for this long: two slots of the engine's
 * wheel, because an engine poll may come that late. */
#define CC_BURST_NS UINT64_C(32768)

/** Return the functions of an algorithm that has a name. MT-safe. */
const struct cc_ops *cc_ops(enum cc_kind kind);

/** Return the functions of an algorithm. MT-safe. */
const struct cc_ops *cc_ops_of(const struct cc_attr *attr);

/** Return the algorithm of a name; CC_KINDS if there is none. MT-safe. */
enum cc_kind cc_find(const char *name);

/** Create the state of a queue pair. *cc is NULL for CC_NONE. 0 or -ENOMEM. */
int cc_create(const struct cc_attr *attr, struct pacer *pacer, const struct loss *loss,
	      struct cc **cc);
void cc_destroy(struct cc *cc);

/**
 * Give a queue pair another algorithm, or none. The application's limit stays; everything else
 * starts over, without a peer. The caller lets the queue pair run: packets that were held may be
 * allowed now. Engine's thread or lock, between two engine polls.
 *
 * @return
 *   0; -ENOMEM: nothing has changed.
 */
int cc_change(const struct cc_attr *attr, struct pacer *pacer, const struct loss *loss);

/** Start over, without a peer. */
void cc_reset(struct cc *cc);

/** Note the peer's address. Control. */
void cc_connect(struct cc *cc, const uint8_t gid[16]);

/** Let the pacer obey what the algorithm has decided, and the application's limit. */
void cc_apply(struct cc *cc);

/** Begin a poll of the requester, or of its answers. */
void cc_poll(struct cc *cc, uint64_t now_ns);

/** Let the next packet leave without waiting: an acknowledgement timeout was counted. So a peer
 * that does not answer is given up in the time of its retries, and not of the waits between them.
 * One packet for each timeout is slow enough. */
void cc_expired(struct cc *cc);

/** Note that a request was sent: from `psn` on, for `psns` PSNs. */
void cc_sent(struct cc *cc, struct psn psn, uint32_t psns, uint32_t bytes, bool again,
	     uint64_t now_ns);

/** Note that a response was sent, which the pacer held back before. */
void cc_responded(struct cc *cc, uint32_t bytes, uint64_t now_ns);

/** Note an answer of the peer, before the completer processes it. */
void cc_answered(struct cc *cc, const struct packet *packet, uint64_t now_ns);

/** Note a selective acknowledgement of the peer, before the completer processes it. */
void cc_told(struct cc *cc, const struct packet *sack, uint64_t now_ns);

/** Process a congestion notification of the peer. Return false if it is ignored. */
bool cc_notified(struct cc *cc, uint64_t now_ns);

/** Note that a marked packet came. Return true if a congestion notification is due. */
bool cc_marked(struct cc *cc, uint64_t now_ns);

/* Return true if the next packet will be timed: its acknowledgement is requested. */
static inline bool cc_times_next(const struct cc *cc)
{
	return cc->ops->times && !cc->timed;
}

#endif
