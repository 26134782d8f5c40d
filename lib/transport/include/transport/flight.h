/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester has in the air: its PSNs, and how many packets and responses may be. Shared by
 * requester and completer. */
#ifndef TRANSPORT_FLIGHT_H
#define TRANSPORT_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

#define FLIGHT_WINDOW_MAX \
	256 /* packets; enough for 1 MiB at the largest MTU, and less than the ports' rings */
#define FLIGHT_WINDOW_MIN  4
#define FLIGHT_WINDOW_STEP 8

struct flight {
	struct psn una;	 /* oldest PSN not acknowledged */
	struct psn next; /* PSN of the packet to be sent next; una <= next <= top */
	struct psn top; /* one past the newest PSN ever sent: what is sent below it is sent again */
	uint32_t window;	/* packets that may be unacknowledged */
	uint32_t acked;		/* packets acknowledged since the window last grew */
	uint32_t responses;	/* READ segments and atomics sent and not answered */
	uint32_t max_responses; /* the peer's responder resources: max_rd_atomic */
};

static inline void flight_init(struct flight *flight, struct psn first)
{
	flight->una = first;
	flight->next = first;
	flight->top = first;
	flight->window = FLIGHT_WINDOW_MAX;
	flight->acked = 0;
	flight->responses = 0;
}

/* Packets sent and not acknowledged. */
static inline uint32_t flight_outstanding(const struct flight *flight)
{
	return (uint32_t)psn_diff(flight->next, flight->una);
}

static inline bool flight_full(const struct flight *flight)
{
	return flight_outstanding(flight) >= flight->window;
}

/* The packet `next` was sent, and stands for `count` PSNs (a READ segment stands for its
 * responses). */
static inline void flight_sent(struct flight *flight, uint32_t count)
{
	flight->next = psn_add(flight->next, (int32_t)count);
	if (psn_before(flight->top, flight->next))
		flight->top = flight->next;
}

/* Everything before `psn` is acknowledged. What was sent again and is now known to have come needs
 * no third sending. */
static inline void flight_acked(struct flight *flight, struct psn psn)
{
	flight->acked += (uint32_t)psn_diff(psn, flight->una);
	flight->una = psn;
	if (psn_before(flight->next, psn))
		flight->next = psn;
	if (flight->acked >= flight->window) {
		flight->acked = 0;
		flight->window += FLIGHT_WINDOW_STEP;
		if (flight->window > FLIGHT_WINDOW_MAX)
			flight->window = FLIGHT_WINDOW_MAX;
	}
}

/* Send everything unacknowledged again; half as fast if that was a loss. */
static inline void flight_rewind(struct flight *flight, bool lost)
{
	flight->next = flight->una;
	flight->responses = 0;
	flight->acked = 0;
	if (lost && flight->window > 2 * FLIGHT_WINDOW_MIN)
		flight->window /= 2;
}

#endif
