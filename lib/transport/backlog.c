/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides whether an expired acknowledgement timer uses up a retry, by what the port knows. */
#include "transport/backlog.h"

/* Return true if not all packets before `mark` were taken. A mark that is ahead of `given`, or
 * older than the path can hold, is of another path: the port has changed it. */
static bool backlog_waits_at(const struct sink_taken *taken, uint32_t mark)
{
	return taken->given - taken->taken > taken->given - mark;
}

/* Note the time of the first question about a packet. */
static void backlog_begin(struct backlog *backlog, struct psn una, const struct sink_taken *taken,
			  uint64_t timeout_ns, uint64_t now_ns)
{
	const uint64_t timeouts_ns = BACKLOG_TIMEOUTS * timeout_ns;

	if (backlog->until_ns != 0 && psn_eq(backlog->una, una))
		return;
	backlog->una = una;
	backlog->until_ns = now_ns + (timeouts_ns > BACKLOG_MAX_NS ? timeouts_ns : BACKLOG_MAX_NS);
	backlog->state = BACKLOG_UNKNOWN;
	backlog->dropped = taken->dropped;
}

/* The packet has had its time: it is sent again now. */
static enum backlog_verdict backlog_end(struct backlog *backlog, const struct sink_taken *taken)
{
	const bool dropped = taken->dropped != backlog->dropped;

	backlog->state = BACKLOG_UNKNOWN;
	backlog->dropped = taken->dropped;
	return dropped ? BACKLOG_RESEND : BACKLOG_COUNTS;
}

/* Advance the state. */
static enum backlog_verdict backlog_look(struct backlog *backlog, const struct sink_taken *taken)
{
	if (taken->unread) {
		backlog->mark = taken->given;
		backlog->state = BACKLOG_WAITS;
		return BACKLOG_RESTART;
	}
	switch (backlog->state) {
	case BACKLOG_UNKNOWN:
		if (taken->given == taken->taken)
			return backlog_end(backlog, taken);
		backlog->mark = taken->given;
		backlog->state = BACKLOG_WAITS;
		return BACKLOG_RESTART;
	case BACKLOG_WAITS:
		if (!backlog_waits_at(taken, backlog->mark))
			backlog->state = BACKLOG_TAKEN;
		return BACKLOG_RESTART;
	default:
		return backlog_end(backlog, taken);
	}
}

enum backlog_verdict backlog_judge(struct backlog *backlog, struct psn una, bool owed,
				   enum sink_knows knows, const struct sink_taken *taken,
				   uint64_t timeout_ns, uint64_t now_ns)
{
	if (knows == SINK_KNOWS_NOTHING) {
		backlog->state = BACKLOG_UNKNOWN;
		return BACKLOG_COUNTS;
	}
	backlog_begin(backlog, una, taken, timeout_ns, now_ns);
	if (now_ns >= backlog->until_ns)
		return BACKLOG_COUNTS;
	if (knows == SINK_KNOWS_FULL || owed) {
		backlog->state = BACKLOG_UNKNOWN;
		return BACKLOG_RESTART;
	}
	return backlog_look(backlog, taken);
}
