/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures how long a responder has waited for a page that is not in memory, to decide what its
 * requester is told. At first the requester is told nothing: most pages come soon, and then the
 * request is answered as if it had taken that long. A requester that sends its request again later
 * gets an RNR NAK, for twice as long as the page has taken so far. So its retries for lost packets
 * are not used up.
 *
 * The limit: the requester fails when it has no RNR retry left. Suppose that it is first refused
 * when the page has taken t. With n RNR retries the page may take 3^n times t, but each retry adds
 * at most 0.65 s, the longest RNR timer. t is about 1 ms for a requester that probes for losses,
 * and otherwise the requester's acknowledgement timer. So six retries last for at least 0.7 s, and
 * for 3.2 s with a timer of 67 ms; one retry lasts for 3 ms, or 0.2 s. Of the answers that the
 * specification allows, only progress restores RNR retries. No answer at all would save them, and
 * use up the other retries, whose number is unknown here. So this time is short. If what it waits
 * for begins anew (a link between processes, transport/pass.h), t is that of a new link.
 */
#ifndef TRANSPORT_PAGE_WAIT_H
#define TRANSPORT_PAGE_WAIT_H

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "wire/headers.h"

/* Requesters that probe for losses ask again this soon (transport/recovery.h). A requester with a
 * short acknowledgement timer would use up its retries in that time. */
#define PAGE_WAIT_SILENT_NS    UINT64_C(1000000)
#define PAGE_WAIT_SILENT_TIMES 2

/* An RNR NAK's timer is this many times as long as the page has taken so far. */
#define PAGE_WAIT_FACTOR 2

#define PAGE_WAIT_NONE UINT64_C(0)
#define PAGE_WAIT_NEW  UINT64_MAX /* begins now: the queue pair knows the time */

/* A struct of zeros waits for nothing. */
struct page_wait {
	uint64_t since_ns;  /* PAGE_WAIT_NONE and PAGE_WAIT_NEW are no times */
	uint64_t waited_ns; /* time of the last call of page_wait_tell */
	uint32_t asked;	    /* how often the requester has asked again without an answer */
};

/** Begin to wait, unless this wait has begun. */
static inline void page_wait_begin(struct page_wait *wait)
{
	if (wait->since_ns == PAGE_WAIT_NONE)
		*wait = (struct page_wait){.since_ns = PAGE_WAIT_NEW};
}

static inline void page_wait_end(struct page_wait *wait)
{
	*wait = (struct page_wait){.since_ns = PAGE_WAIT_NONE};
}

/** Begin to wait for another page or link instead of this one, as if it had taken `taken_ns` so
 * far, or less if this one has. How often the requester has asked still counts, so it is told to
 * wait as before. */
static inline void page_wait_restart(struct page_wait *wait, uint64_t taken_ns)
{
	if (wait->since_ns == PAGE_WAIT_NONE)
		return;
	wait->since_ns = PAGE_WAIT_NEW;
	wait->waited_ns = RTE_MIN(wait->waited_ns, taken_ns);
}

/** Set the present time. */
static inline void page_wait_tell(struct page_wait *wait, uint64_t now_ns)
{
	if (wait->since_ns == PAGE_WAIT_NEW)
		wait->since_ns = now_ns - wait->waited_ns;
	if (wait->since_ns != PAGE_WAIT_NONE)
		wait->waited_ns = now_ns - wait->since_ns;
}

/** Note that the requester asks again. Return true if it must be told to wait. */
static inline bool page_wait_asked(struct page_wait *wait)
{
	if (wait->waited_ns >= PAGE_WAIT_SILENT_NS || wait->asked >= PAGE_WAIT_SILENT_TIMES)
		return true;
	wait->asked++;
	return false;
}

/** Return the syndrome of the RNR NAK. `min_rnr_timer` is an attribute of the queue pair. */
static inline uint8_t page_wait_syndrome(const struct page_wait *wait, uint8_t min_rnr_timer)
{
	const uint64_t least_ns = rnr_timer_ns(min_rnr_timer);

	return AETH_RNR_NAK | rnr_timer_code(RTE_MAX(PAGE_WAIT_FACTOR * wait->waited_ns, least_ns));
}

#endif
