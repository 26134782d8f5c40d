/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides whether an expired acknowledgement timer uses up a retry. A packet that lies in memory of
 * this host, because the process at the other end has had no CPU, is not lost. Some ports know how
 * many packets their other end has taken (transport/sink.h). There, the time in which it has not
 * taken ours does not count, and the timer is restarted (recovery_defer):
 *
 * - Packets wait to be taken when the timer expires: note how many were given to the port. Until
 * the other end has taken so many, the timer is restarted each time.
 * - Then it is restarted once more, because the other end may have taken them only now. When it
 * expires again, a retry is used up.
 * - The other end has passed packets on to the peer's process, which reads nothing now: the timer
 * is restarted until it reads.
 * - The port is full, and the oldest packet must be sent again and has not left: it cannot be lost.
 * - The port has dropped packets on this way since the last time, because its other end took none:
 * everything is sent again, but no retry is used up.
 *
 * While the timer is restarted nothing is sent again: a second copy would only wait behind the
 * first one.
 *
 * This has a limit, because the other end may have stopped for ever, or be hostile: BACKLOG_MAX_NS
 * after the first expired timer since the last progress, each one uses up a retry, as on any other
 * network.
 */
#ifndef TRANSPORT_BACKLOG_H
#define TRANSPORT_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "transport/sink.h"

#define BACKLOG_MAX_NS	 UINT64_C(10000000000)
#define BACKLOG_TIMEOUTS 16 /* or so many timeouts, if they take longer */

enum backlog_state {
	BACKLOG_UNKNOWN, /* nothing is known of una's packet since it was sent last */
	BACKLOG_WAITS,	 /* it may be among the packets before `mark`, which were not all taken */
	BACKLOG_TAKEN,	 /* they were taken; the peer's time to answer runs */
};

struct backlog {
	uint64_t until_ns; /* no restart from then on */
	/* The oldest PSN when until_ns was set. It is compared for equality only, and not moved. If
	 * all PSNs are used before the next comparison, it may be equal by chance; then until_ns
	 * has passed, or is that of this PSN, and a restart is missed. */
	struct psn una;
	uint32_t mark;	  /* struct sink_taken.given; in BACKLOG_WAITS */
	uint32_t dropped; /* struct sink_taken.dropped, when the packet was last sent again */
	uint8_t state;	  /* enum backlog_state */
};

/* A connection begins. */
static inline void backlog_reset(struct backlog *backlog)
{
	*backlog = (struct backlog){.state = BACKLOG_UNKNOWN};
}

enum backlog_verdict {
	BACKLOG_COUNTS,	 /* a packet may be lost: use up a retry */
	BACKLOG_RESTART, /* restart the timer, and send nothing again */
	BACKLOG_RESEND,	 /* send everything again, and use up no retry */
};

/**
 * Judge an acknowledgement timer that has expired.
 *
 * @param una
 *   The oldest PSN that is not acknowledged.
 * @param owed
 *   Its packet must be sent again, and has not left since that is known.
 * @param knows, taken
 *   What the sink knows (packet_sink.ask).
 * @param timeout_ns
 *   The timer's length.
 */
enum backlog_verdict backlog_judge(struct backlog *backlog, struct psn una, bool owed,
				   enum sink_knows knows, const struct sink_taken *taken,
				   uint64_t timeout_ns, uint64_t now_ns);

#endif
