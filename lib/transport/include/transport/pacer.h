/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits the rate at which a queue pair sends: the application's limit
 * (ibv_modify_qp_rate_limit(3)), and what congestion control allows (transport/cc.h).
 *
 * Each packet moves the time at which everything sent is paid for (`paid_ns`) by the time that it
 * takes at the rate. A packet may be sent while that time is less than a burst ahead. So bursts are
 * as long as allowed, and the rate over any longer time is not exceeded, however late an engine
 * poll comes.
 *
 * Only requests are paced: a peer that READs controls its own pace. But congestion control also
 * paces responses while it limits the rate (lib/qp/run.c).
 */
#ifndef TRANSPORT_PACER_H
#define TRANSPORT_PACER_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "transport/cc.h"

#define PACER_NEVER UINT64_MAX
/* The rate has no limit, but congestion control, which is there then, must see each packet. */
#define PACER_FREE_KBPS UINT32_MAX
/* Default burst, as time at the rate. Engine polls come late if nobody polls, or if CPUs are
 * shared, and the packets that were not sent meanwhile must still be allowed. */
#define PACER_BURST_NS 1000000

struct pacer {
	uint32_t rate_kbps; /* 0: no limit, and congestion control has nothing to do */
	uint32_t window;    /* congestion control: most packets in flight; if rate_kbps is not 0 */
	uint64_t burst_ns;
	uint64_t now_ns; /* time of the engine poll; if rate_kbps is not 0 */
	uint64_t paid_ns;
	uint64_t deadline_ns; /* when held packets may be sent; PACER_NEVER: none was held */
	struct cc *cc;	      /* changed between two engine polls; NULL: no congestion control */
};

/* Return the time that so many bytes take, rounded up, because the rate is a maximum. */
static inline uint64_t pacer_time_ns(uint32_t bytes, uint32_t rate_kbps)
{
	return ((uint64_t)bytes * 8 * 1000000 + rate_kbps - 1) / rate_kbps;
}

/*
 * Set the application's limit; 0 for none. A burst of 0 bytes means the default. pacer_holds does
 * not know the length of the next packet and counts only the packets already sent. So the limit is
 * reduced by one packet of typical_bytes: a burst stays within burst_bytes if its last packet is
 * not longer than that. At least one packet is allowed.
 */
static inline void pacer_set(struct pacer *pacer, uint32_t rate_kbps, uint32_t burst_bytes,
			     uint32_t typical_bytes)
{
	struct cc *cc = pacer->cc;
	uint64_t burst_ns, typical_ns;

	*pacer = (struct pacer){.rate_kbps = rate_kbps,
				.window = pacer->window,
				.deadline_ns = PACER_NEVER,
				.cc = cc};
	if (rate_kbps != 0) {
		burst_ns =
			burst_bytes == 0 ? PACER_BURST_NS : pacer_time_ns(burst_bytes, rate_kbps);
		typical_ns = pacer_time_ns(typical_bytes, rate_kbps);
		pacer->burst_ns = burst_ns > typical_ns ? burst_ns - typical_ns + 1 : 1;
	}
	if (cc == NULL)
		return;
	cc->limit_kbps = rate_kbps;
	cc->limit_burst_ns = pacer->burst_ns;
	cc_apply(cc);
}

/* Begin an engine poll. */
static inline void pacer_poll(struct pacer *pacer, uint64_t now_ns)
{
	if (likely(pacer->rate_kbps == 0))
		return;
	pacer->now_ns = now_ns;
	pacer->deadline_ns = PACER_NEVER;
	if (pacer->cc != NULL)
		cc_poll(pacer->cc, now_ns);
}

/* Forget a held packet: nothing is sent any more. */
static inline void pacer_stop(struct pacer *pacer)
{
	pacer->deadline_ns = PACER_NEVER;
}

/** Do what pacer_holds does if there is a limit or congestion control. */
__rte_cold bool pacer_waits(struct pacer *pacer);

/** Do what pacer_asks_ack does, if there is a limit or congestion control. */
__rte_cold bool pacer_wants_ack(const struct pacer *pacer, uint32_t unasked);

/* Return true if the next packet must wait, until deadline_ns. */
static inline bool pacer_holds(struct pacer *pacer)
{
	return unlikely(pacer->rate_kbps != 0) && pacer_waits(pacer);
}

/** The same for a packet that was not sent before, while so many are in flight. If the window is
 * full, an answer will open it. */
__rte_cold bool pacer_waits_new(struct pacer *pacer, uint32_t outstanding);

/*
 * Return true if the next packet must be acknowledged at once, if `unasked` packets were sent since
 * an acknowledgement was requested. A packet of a slow queue pair must be acknowledged before its
 * timer expires. So must a packet that is timed, and several in each window, because the window
 * opens only by acknowledgements, and may have become half as long meanwhile.
 */
static inline bool pacer_asks_ack(const struct pacer *pacer, uint32_t unasked)
{
	return unlikely(pacer->rate_kbps != 0) && pacer_wants_ack(pacer, unasked);
}

/** Note that a request was sent, if there is a limit or congestion control. The arguments are those
 * of cc_sent. */
__rte_cold void pacer_sent_request(struct pacer *pacer, struct psn psn, uint32_t psns,
				   uint32_t bytes, bool again);

/* Note that a packet of this length was sent. */
static inline void pacer_sent(struct pacer *pacer, uint32_t bytes)
{
	if (pacer->rate_kbps == 0 || pacer->rate_kbps == PACER_FREE_KBPS)
		return;
	pacer->paid_ns =
		RTE_MAX(pacer->paid_ns, pacer->now_ns) + pacer_time_ns(bytes, pacer->rate_kbps);
}

#endif
