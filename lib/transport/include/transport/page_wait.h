/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a responder has waited for a page that is not in memory, by which it decides what its
 * requester is told. At first it is told nothing: most pages come soon, and then the request is
 * answered as if it had taken that long. A requester that asks again later is told to wait, for
 * twice as long as the page has taken so far. That keeps its retries for lost packets.
 *
 * The limit: the requester fails when it has no RNR retry left. Let it be refused for the first
 * time when the page has taken t. With n RNR retries the page may take 3^n times t, but each retry
 * adds at most 0.65 s, the longest RNR timer. t is about 1 ms for a requester that probes for
 * losses, and the acknowledgement timer of one that does not. So six retries last for 0.7 s at
 * least, and for 3.2 s with a timer of 67 ms; one lasts for 3 ms, or 0.2 s. No answer that the
 * specification allows gives RNR retries back, but progress. Silence would save them, and use up
 * the other retries, of which nobody here knows the number. So it is kept short.
 */
#ifndef TRANSPORT_PAGE_WAIT_H
#define TRANSPORT_PAGE_WAIT_H

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "wire/headers.h"

/* Requesters that probe for losses ask again so soon (transport/recovery.h); one with a short
 * acknowledgement timer would use up its retries in that time. */
#define PAGE_WAIT_SILENT_NS    UINT64_C(1000000)
#define PAGE_WAIT_SILENT_TIMES 2

/* A requester that is told to wait does so for so many times as long as the page has taken. */
#define PAGE_WAIT_FACTOR 2

#define PAGE_WAIT_NONE UINT64_C(0)
#define PAGE_WAIT_NEW  UINT64_MAX /* since now: the queue pair knows the time */

/* Zeros are no wait. */
struct page_wait {
	uint64_t since_ns;  /* PAGE_WAIT_NONE and PAGE_WAIT_NEW are no times */
	uint64_t waited_ns; /* when page_wait_tell was called last */
	uint32_t asked; /* how often the requester has asked again, of which it was told nothing */
};

/** Begin, unless it is begun. */
static inline void page_wait_begin(struct page_wait *wait)
{
	if (wait->since_ns == PAGE_WAIT_NONE)
		*wait = (struct page_wait){.since_ns = PAGE_WAIT_NEW};
}

static inline void page_wait_end(struct page_wait *wait)
{
	*wait = (struct page_wait){.since_ns = PAGE_WAIT_NONE};
}

/** Say what time it is. */
static inline void page_wait_tell(struct page_wait *wait, uint64_t now_ns)
{
	if (wait->since_ns == PAGE_WAIT_NEW)
		wait->since_ns = now_ns;
	if (wait->since_ns != PAGE_WAIT_NONE)
		wait->waited_ns = now_ns - wait->since_ns;
}

/** The requester asks again. Whether it is told to wait. */
static inline bool page_wait_asked(struct page_wait *wait)
{
	if (wait->waited_ns >= PAGE_WAIT_SILENT_NS || wait->asked >= PAGE_WAIT_SILENT_TIMES)
		return true;
	wait->asked++;
	return false;
}

/** The syndrome that tells it so. `min_rnr_timer` is an attribute of the queue pair. */
static inline uint8_t page_wait_syndrome(const struct page_wait *wait, uint8_t min_rnr_timer)
{
	const uint64_t least_ns = rnr_timer_ns(min_rnr_timer);

	return AETH_RNR_NAK | rnr_timer_code(RTE_MAX(PAGE_WAIT_FACTOR * wait->waited_ns, least_ns));
}

#endif
