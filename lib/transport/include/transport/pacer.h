/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits the rate at which a queue pair sends (ibv_modify_qp_rate_limit(3)).
 *
 * Each packet moves the time at which everything sent is paid for (`paid_ns`) by the time that it
 * takes at the rate. A packet may be sent while that time is less than a burst ahead. So bursts are
 * as long as allowed, and the rate over any longer time is not exceeded, however late a turn comes.
 *
 * Only requests are paced: a peer that READs controls its own pace.
 */
#ifndef TRANSPORT_PACER_H
#define TRANSPORT_PACER_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#define PACER_NEVER UINT64_MAX
/* Default burst, as time at the rate. Turns come late if nobody polls, or if CPUs are shared, and
 * the packets that were not sent meanwhile must still be allowed. */
#define PACER_BURST_NS 1000000

struct pacer {
	uint32_t rate_kbps; /* 0: no limit */
	uint64_t burst_ns;
	uint64_t now_ns; /* time of the turn */
	uint64_t paid_ns;
	uint64_t deadline_ns; /* when held packets may be sent; PACER_NEVER: none was held */
};

/* Return the time that so many bytes take, rounded up, because the rate is a maximum. */
static inline uint64_t pacer_time_ns(uint32_t bytes, uint32_t rate_kbps)
{
	return ((uint64_t)bytes * 8 * 1000000 + rate_kbps - 1) / rate_kbps;
}

/*
 * Set the rate; 0 for no limit. A burst of 0 bytes means the default. pacer_holds does not know the
 * length of the next packet and counts only the packets already sent. So the limit is reduced by
 * one packet of typical_bytes: a burst stays within burst_bytes if its last packet is not longer
 * than that. At least one packet is allowed.
 */
static inline void pacer_set(struct pacer *pacer, uint32_t rate_kbps, uint32_t burst_bytes,
			     uint32_t typical_bytes)
{
	uint64_t burst_ns, typical_ns;

	*pacer = (struct pacer){.rate_kbps = rate_kbps, .deadline_ns = PACER_NEVER};
	if (rate_kbps == 0)
		return;
	burst_ns = burst_bytes == 0 ? PACER_BURST_NS : pacer_time_ns(burst_bytes, rate_kbps);
	typical_ns = pacer_time_ns(typical_bytes, rate_kbps);
	pacer->burst_ns = burst_ns > typical_ns ? burst_ns - typical_ns + 1 : 1;
}

/* Begin a turn. */
static inline void pacer_turn(struct pacer *pacer, uint64_t now_ns)
{
	if (likely(pacer->rate_kbps == 0))
		return;
	pacer->now_ns = now_ns;
	pacer->deadline_ns = PACER_NEVER;
}

/* Forget a held packet: nothing is sent any more. */
static inline void pacer_stop(struct pacer *pacer)
{
	pacer->deadline_ns = PACER_NEVER;
}

/* Return true if the next packet must wait, until deadline_ns. */
static inline bool pacer_holds(struct pacer *pacer)
{
	if (pacer->rate_kbps == 0 || pacer->paid_ns < pacer->now_ns + pacer->burst_ns)
		return false;
	pacer->deadline_ns = pacer->paid_ns - pacer->burst_ns + 1;
	return true;
}

/* Note that a packet of this length was sent. */
static inline void pacer_sent(struct pacer *pacer, uint32_t bytes)
{
	if (pacer->rate_kbps == 0)
		return;
	pacer->paid_ns =
		RTE_MAX(pacer->paid_ns, pacer->now_ns) + pacer_time_ns(bytes, pacer->rate_kbps);
}

#endif
