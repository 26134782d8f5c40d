/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pager of a process. A table holds the ranges that the engine has asked for, and threads take
 * them from there. A thread that waits for a page holds no lock, and nobody waits for that thread,
 * because it may wait for ever. Its range may no longer belong to a region when the page comes;
 * touching it changes nothing.
 */
#include "mem/pager.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/cancel.h"
#include "base/guard.h"
#include "pages.h"

#define KNOWN 1024u /* pages that are remembered; a power of two */

enum fetch_state {
	FETCH_FREE,
	FETCH_POSTED,  /* a thread may take it */
	FETCH_TOUCHED, /* a thread waits for it */
	FETCH_FAILED,  /* its page cannot be touched: for PAGER_FAILED_NS `look` returns true, and
			  the access then finds the reason */
};

struct fetch {
	enum fetch_state state;
	bool write;
	bool wanted; /* a page of it was looked for since `came` was last called */
	uintptr_t addr;
	size_t length;	 /* bytes that are needed, or that a thread is touching */
	size_t ahead;	 /* bytes behind them */
	uint64_t number; /* increases with each fetch */
	uint64_t posted_ns;
	uint64_t failed_ns; /* when `look` first found it failed; 0: not yet */
};

/* A page that was found in memory. Several engines may read and write it at the same time. A mix of
 * two entries is harmless: an access to a page that is absent after all waits for it. */
struct known {
	uintptr_t page;	   /* its address, and a bit if it was asked for writing; 0: none; atomic */
	uint64_t asked_ns; /* atomic */
};

struct process_pager {
	struct pager pager; /* first */
	struct pager_config config;
	int fd; /* from pages_open */
	uintptr_t page_mask;
	unsigned int page_shift;
	struct known known[KNOWN]; /* engines' threads */

	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t posted;
	struct fetch fetches[PAGER_FETCHES];
	uint64_t numbers;
	unsigned int waiting; /* fetches that are posted and not taken */
	unsigned int threads;
	unsigned int idle;    /* threads that are idle */
	bool gone;	      /* destroyed; the last thread frees this struct */
	unsigned int telling; /* threads that are calling `came` */
	pthread_cond_t told;
};

static uint64_t pager_now(const struct process_pager *pager)
{
	return pager->config.clock ? pager->config.clock(pager->config.user)
				   : *pager->config.now_ns;
}

/* Return the oldest posted fetch. The lock is held. */
static struct fetch *next_posted(struct process_pager *pager)
{
	struct fetch *oldest = NULL;

	for (unsigned int i = 0; pager->waiting > 0 && i < PAGER_FETCHES; i++) {
		struct fetch *fetch = &pager->fetches[i];

		if (fetch->state == FETCH_POSTED && (!oldest || fetch->number < oldest->number))
			oldest = fetch;
	}
	return oldest;
}

static void release(struct process_pager *pager)
{
	pthread_cond_destroy(&pager->posted);
	pthread_cond_destroy(&pager->told);
	pthread_mutex_destroy(&pager->lock);
	free(pager);
}

/* Report to the engine that pages have come. The lock is held, and released during the call. */
static void tell(struct process_pager *pager)
{
	if (pager->gone)
		return;
	pager->telling++;
	pthread_mutex_unlock(&pager->lock);
	pager->config.came(pager->config.user);
	pthread_mutex_lock(&pager->lock);
	pager->telling--;
	pthread_cond_broadcast(&pager->told);
}

/* Remember which page could not be touched. Pages behind it were not tried, and may be present or
 * come later. The lock is held. */
static void fail(const struct process_pager *pager, struct fetch *fetch, uintptr_t page)
{
	fetch->state = fetch->wanted ? FETCH_FAILED : FETCH_FREE;
	fetch->addr = page;
	fetch->length = pager->page_mask + 1;
	fetch->ahead = 0;
}

/* Continue a fetch behind the pages that were brought in, or end it. Return true if there is more
 * to do. The lock is held. */
static bool advance(const struct process_pager *pager, struct fetch *fetch)
{
	const uintptr_t end = fetch->addr + fetch->length;
	const size_t step = RTE_MIN(fetch->ahead, pager->page_mask + 1 - (end & pager->page_mask));

	if (step == 0 || pager->gone) {
		fetch->state = FETCH_FREE;
		return false;
	}
	fetch->addr = end;
	fetch->length = step;
	fetch->ahead -= step;
	return true;
}

/* Bring pages in: first those that are needed, and then page by page those behind them, because
 * each may take long. The lock is held, and released meanwhile. */
static void serve(struct process_pager *pager, struct fetch *fetch)
{
	bool more = true;

	fetch->state = FETCH_TOUCHED;
	while (more) {
		const bool write = fetch->write;
		uintptr_t failed;
		bool wanted;
		int rc;

		pthread_mutex_unlock(&pager->lock);
		rc = pages_touch(fetch->addr, fetch->length, write, &failed);
		pthread_mutex_lock(&pager->lock);
		wanted = fetch->wanted;
		/* From here on the slot may be another thread's. */
		if (rc != 0)
			fail(pager, fetch, failed);
		more = rc == 0 && advance(pager, fetch);
		if (wanted) {
			if (more)
				fetch->wanted = false;
			tell(pager);
		}
	}
}

/* Sleep until there is something to do, unless enough threads sleep already. Return false if this
 * thread must end. The lock is held. */
static bool wait_for_work(struct process_pager *pager)
{
	if (pager->gone || pager->idle >= PAGER_IDLE)
		return false;
	pager->idle++;
	pthread_mutex_unlock(&pager->lock);
	guard_pause();
	pthread_mutex_lock(&pager->lock);
	while (pager->waiting == 0 && !pager->gone)
		pthread_cond_wait(&pager->posted, &pager->lock);
	pager->idle--;
	return !pager->gone;
}

static void *pager_main(void *arg)
{
	struct process_pager *pager = arg;
	struct fetch *fetch;
	bool last;

	guard_serve();
	pthread_mutex_lock(&pager->lock);
	do {
		while ((fetch = next_posted(pager)) != NULL && !pager->gone) {
			pager->waiting--;
			serve(pager, fetch);
		}
	} while (wait_for_work(pager));
	pager->threads--;
	last = pager->gone && pager->threads == 0;
	pthread_mutex_unlock(&pager->lock);
	guard_pause();
	if (last)
		release(pager);
	return NULL;
}

/* Make sure that a thread will serve the posted fetches. Return false if there is no thread at all.
 * The lock is held, and a new thread waits for it. */
static bool find_thread(struct process_pager *pager)
{
	if (pager->idle >= pager->waiting) {
		pthread_cond_signal(&pager->posted);
		return true;
	}
	/* Each of these threads has a fetch, or reports the end of one and then takes the next. */
	if (pager->threads >= PAGER_FETCHES)
		return true;
	/* Count it before it starts, because it may end at once. */
	pager->threads++;
	if (pager->config.start(pager_main, pager) == 0)
		return true;
	pager->threads--;
	return pager->threads > 0;
}

static bool overlaps(const struct fetch *fetch, uintptr_t page, bool write)
{
	/* A fetch begins at a page, and continues at one. */
	return fetch->state != FETCH_FREE && fetch->write >= write &&
	       page - fetch->addr < fetch->length + fetch->ahead;
}

/* Return true if a page could not be touched a short time ago. Free the fetch of one that could not
 * be touched long ago. The lock is held. */
static bool has_failed(const struct process_pager *pager, struct fetch *fetch)
{
	const uint64_t now_ns = pager_now(pager);

	if (fetch->state != FETCH_FAILED)
		return false;
	if (fetch->failed_ns == 0)
		fetch->failed_ns = now_ns;
	if (now_ns - fetch->failed_ns < PAGER_FAILED_NS)
		return true;
	fetch->state = FETCH_FREE;
	return false;
}

/* The fetches of a page. */
struct tries {
	bool failed;
	unsigned int waiting;
	uint64_t newest_ns; /* when the newest of them was posted */
};

/* Find the fetches of a page, and note in those that are not finished that the page is wanted. The
 * lock is held. */
static struct tries find_tries(struct process_pager *pager, uintptr_t page, bool write)
{
	struct tries tries = {0};

	for (unsigned int i = 0; i < PAGER_FETCHES; i++) {
		struct fetch *fetch = &pager->fetches[i];

		if (!overlaps(fetch, page, write))
			continue;
		if (has_failed(pager, fetch)) {
			tries.failed = true;
		} else if (fetch->state != FETCH_FREE) {
			fetch->wanted = true;
			tries.waiting++;
			tries.newest_ns = RTE_MAX(tries.newest_ns, fetch->posted_ns);
		}
	}
	return tries;
}

/* Return true if another thread should touch the page, too: each time after twice as long. A thread
 * that waits for a page of a userfaultfd is not woken when other memory is mapped there. */
static bool is_overdue(const struct process_pager *pager, const struct tries *tries)
{
	const unsigned int doublings = RTE_MIN(tries->waiting - 1, 30u);

	return pager_now(pager) - tries->newest_ns >= PAGER_AGAIN_NS << doublings;
}

/* Return a slot for a new fetch, or NULL. The lock is held. */
static struct fetch *find_slot(struct process_pager *pager)
{
	struct fetch *slot = NULL;

	for (unsigned int i = 0; i < PAGER_FETCHES; i++) {
		struct fetch *fetch = &pager->fetches[i];

		if (fetch->state == FETCH_FREE)
			return fetch;
		if (fetch->state == FETCH_FAILED && (!slot || fetch->number < slot->number))
			slot = fetch;
	}
	return slot;
}

/* Post a fetch of a range whose page `page` is absent. Return true if that is impossible. The lock
 * is held. */
static bool fetch_page(struct process_pager *pager, uintptr_t page, uintptr_t end, size_t ahead,
		       bool write)
{
	/* Bytes of the last page that is needed. */
	const size_t rest = RTE_MIN(ahead, -end & pager->page_mask);
	const struct tries tries = find_tries(pager, page, write);
	struct fetch *slot;

	/* No event wakes a thread that waits for a page of a userfaultfd when that page is
	 * unmapped. */
	if (tries.failed || (tries.waiting > 0 && !pages_is_mapped(page)))
		return true;
	if (tries.waiting > 0 && !is_overdue(pager, &tries))
		return false;
	slot = find_slot(pager);
	/* All slots are waiting. Report when the first one ends, so that the engine asks again. */
	if (!slot) {
		for (unsigned int i = 0; i < PAGER_FETCHES; i++)
			pager->fetches[i].wanted = true;
		return false;
	}
	*slot = (struct fetch){.state = FETCH_POSTED,
			       .write = write,
			       .wanted = true,
			       .addr = page,
			       .length = end - page + rest,
			       .ahead = ahead - rest,
			       .number = pager->numbers++,
			       .posted_ns = pager_now(pager)};
	pager->waiting++;
	if (find_thread(pager))
		return false;
	slot->state = FETCH_FREE;
	pager->waiting--;
	return true;
}

static struct known *known_of(struct process_pager *pager, uintptr_t page)
{
	return &pager->known[page >> pager->page_shift & (KNOWN - 1)];
}

/* Return true if the page was found in memory lately. A page that can be written can also be
 * read. */
static bool is_known(struct process_pager *pager, uintptr_t page, bool write)
{
	const struct known *known = known_of(pager, page);
	const uintptr_t is = __atomic_load_n(&known->page, __ATOMIC_RELAXED);

	return (is == (page | 1) || (is == page && !write)) &&
	       pager_now(pager) - __atomic_load_n(&known->asked_ns, __ATOMIC_RELAXED) <
		       PAGER_FRESH_NS;
}

static void remember(struct known *known, uintptr_t page, uint64_t now_ns)
{
	__atomic_store_n(&known->asked_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&known->page, page, __ATOMIC_RELAXED);
}

/* Ask about pages from the first one on, and remember those that are present. Return true if the
 * first one is. */
static bool ask(struct process_pager *pager, uintptr_t page, uintptr_t end, bool write)
{
	const uintptr_t last = (end - 1) & ~pager->page_mask;
	const uintptr_t more = (last - page) >> pager->page_shift;
	const unsigned int count = 1 + (unsigned int)RTE_MIN(more, (uintptr_t)PAGES_ASK_MAX - 1);
	bool there[PAGES_ASK_MAX];

	pages_ask(pager->fd, page, count, write, there);
	for (unsigned int i = 0; i < count; i++) {
		const uintptr_t at = page + ((uintptr_t)i << pager->page_shift);

		if (there[i])
			remember(known_of(pager, at), at | write, pager_now(pager));
	}
	return there[0];
}

/* Ask the kernel about a page, and fetch it if it is absent. Return true if it is there. The engine
 * calls this in an engine poll, so the thread must not be cancelled here. */
static bool find_page(struct process_pager *pager, uintptr_t page, uintptr_t end, size_t ahead,
		      bool write)
{
	const int cancel_state = cancel_disable();
	bool there = ask(pager, page, end + ahead, write);

	if (!there) {
		pthread_mutex_lock(&pager->lock);
		there = fetch_page(pager, page, end, ahead, write);
		pthread_mutex_unlock(&pager->lock);
	}
	cancel_restore(cancel_state);
	return there;
}

static bool pager_look(struct pager *arg, uintptr_t addr, struct mr_touch touch, bool write)
{
	struct process_pager *pager = (struct process_pager *)(void *)arg;
	const uintptr_t end = addr + touch.now;
	const size_t ahead = RTE_MIN(RTE_MIN(touch.ahead, PAGER_AHEAD_BYTES), UINTPTR_MAX - end);
	bool there = true;

	for (uintptr_t page = addr & ~pager->page_mask; there && page - 1 < end - 1;
	     page += pager->page_mask + 1)
		there = likely(is_known(pager, page, write)) ||
			find_page(pager, page, end, ahead, write);
	return there;
}

int pager_create(const struct pager_config *config, struct pager **out)
{
	struct process_pager *pager = calloc(1, sizeof(*pager));
	const unsigned int page_bytes = (unsigned int)sysconf(_SC_PAGESIZE);

	if (!pager)
		return -ENOMEM;
	pager->fd = pages_open();
	if (!pages_are_reported(pager->fd)) {
		free(pager);
		return -EOPNOTSUPP;
	}
	pager->pager.look = pager_look;
	pager->config = *config;
	pager->page_mask = page_bytes - 1;
	pager->page_shift = (unsigned int)__builtin_ctz(page_bytes);
	pthread_mutex_init(&pager->lock, NULL);
	pthread_cond_init(&pager->posted, NULL);
	pthread_cond_init(&pager->told, NULL);
	*out = &pager->pager;
	return 0;
}

void pager_destroy(struct pager *arg)
{
	struct process_pager *pager = (struct process_pager *)(void *)arg;
	bool last;

	if (!pager)
		return;
	pthread_mutex_lock(&pager->lock);
	pager->gone = true;
	/* Count this call as a thread, so that no other thread is the last one meanwhile. */
	pager->threads++;
	pthread_cond_broadcast(&pager->posted);
	while (pager->telling > 0)
		pthread_cond_wait(&pager->told, &pager->lock);
	pages_close(pager->fd);
	last = --pager->threads == 0;
	pthread_mutex_unlock(&pager->lock);
	if (last)
		release(pager);
}
