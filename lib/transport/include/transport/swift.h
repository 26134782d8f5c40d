/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Swift (Kumar et al., SIGCOMM 2020): a window that keeps the round trip near a target. Below the
 * target the window grows by one packet in a round trip. Above it the window shrinks, at most once
 * in a round trip, and the more the longer the round trip is. With many flows the window is less
 * than one packet: then the time between packets is longer than a round trip.
 *
 * The target is the shortest round trip to the peer, and on top of it the delay that queues may
 * have. The paper derives the first part from the number of switches, which we do not know. The
 * smaller the window, the higher the target: more flows share the link, and make the queue vary
 * more.
 *
 * A host that begins in a full network has not seen a short round trip. Its target is too high, and
 * it gets more than its share. So all queue pairs to a host slow down together from time to time:
 * they keep two packets in flight until their part of the queue is gone, and one round trip is
 * measured (as LEDBAT++ does). The first slowdown comes when slow start ends, the others seldom, so
 * that they cost less than 1 %. There is none after a short round trip was measured anyway.
 *
 * A host may answer late for other reasons than queues. No window helps against that: a queue pair
 * would become slower and slower. The paper measures the hosts' part by timestamps of both NICs,
 * and has a window of its own for it. We have no timestamps of the peer. But with less than a
 * packet in flight, a round trip of twice the target is not due to our packets, and queues of
 * others become shorter, because they see them too. If such round trips go on, the host is late
 * (transport/cc_path.h). Its target is higher by what its single packets need, and its window is at
 * least one packet.
 */
#ifndef TRANSPORT_SWIFT_H
#define TRANSPORT_SWIFT_H

#include <stdbool.h>
#include <stdint.h>

#define SWIFT_QUEUE_NS	 25000	  /* of the target: what queues may add */
#define SWIFT_RANGE_NS	 100000.0 /* most that flow scaling adds to the target */
#define SWIFT_RANGE_MIN	 0.1	  /* the window at which it adds all of that */
#define SWIFT_RANGE_MAX	 100.0	  /* the window from which on it adds nothing */
#define SWIFT_AI	 1.0	  /* packets in a round trip */
#define SWIFT_BETA	 0.8	  /* of the excess, by which the window shrinks */
#define SWIFT_MAX_MDF	 0.5	  /* most that it shrinks at a time */
#define SWIFT_CWND_MIN	 0.01	  /* packets; ten times less than flow scaling considers */
#define SWIFT_CWND_FIRST 8.0	  /* the window of a new connection */
#define SWIFT_RETRIES	 5 /* losses without an answer, after which the window is the least */
/* Most time between two packets: what the window asks for may be long after a long round trip. */
#define SWIFT_WAIT_MAX_NS UINT64_C(100000000)
#define SWIFT_LONG	  2.0 /* a round trip of so many targets is not due to queues alone */
#define SWIFT_SLOW_CWND	  2   /* the window of a slowdown */
/* Least time between two slowdowns: this, and so many round trips. */
#define SWIFT_SLOW_NS	UINT64_C(10000000)
#define SWIFT_SLOW_RTTS 300
/* A slowdown ends after so many round trips, if nothing was measured. */
#define SWIFT_SLOW_MAX_RTTS 4

struct swift {
	double cwnd;	    /* packets */
	bool starts;	    /* no round trip has been too long: the window doubles in each */
	uint32_t losses;    /* since the last answer */
	uint64_t rtt_ns;    /* the last one; 0: not measured */
	uint64_t shrank_ns; /* when the window last shrank */
	uint8_t doubts;	    /* of cc_path_note_single */
	uint64_t sent_ns;   /* when the newest packet was sent */
	uint32_t sent_psns; /* PSNs that it stands for; 0: none was sent since the connection began.
			       Until then the window is not obeyed: packets may be in flight that
			       nobody asked to acknowledge, if the algorithm was changed. */
	bool slows;	    /* a slowdown is in progress */
	/* A packet was sent since the slowdown began. It is timed, so the peer acknowledges it and
	 * all packets before it. Only then the window becomes small: otherwise no packet might be
	 * left whose acknowledgement opens it. */
	bool asked;
	uint64_t slow_ns;  /* slow_ns of the path in its newest slowdown */
	uint64_t empty_ns; /* packets sent from then on find no queue of ours; while slows */
};

struct cc_ops;
extern const struct cc_ops swift_ops;

#endif
