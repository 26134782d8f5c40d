/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: one producer without a lock, pollers under a lock, and events for threads that
 * sleep. */
#include "queue/cq.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <rte_bitops.h>
#include <rte_branch_prediction.h>

#define CQ_ENTRIES_MAX (1u << 30)

static int make_ring(const struct queue_domain *domain, bool has_stamps, uint32_t cqe,
		     struct cq_ring *ring)
{
	uint32_t entries;
	size_t bytes;
	int rc;

	*ring = (struct cq_ring){.mask = 0};
	if (cqe == 0 || cqe > CQ_ENTRIES_MAX)
		return -EINVAL;
	entries = rte_align32pow2(cqe);
	bytes = (size_t)entries * (sizeof(struct ibv_wc) + (has_stamps ? sizeof(uint64_t) : 0));
	rc = ring_alloc(domain, bytes, RING_COMPLETION, &ring->memory);
	if (rc != 0)
		return rc;
	ring->entries = ring->memory.base;
	/* The stamps follow the entries, whose size is a multiple of a stamp's. */
	ring->stamps = has_stamps ? (uint64_t *)(ring->entries + entries) : NULL;
	ring->mask = entries - 1;
	return 0;
}
static_assert(sizeof(struct ibv_wc) % sizeof(uint64_t) == 0, "stamps are aligned behind entries");

int cq_create_in(const struct cq_attr *attr, struct cq **cq)
{
	void *memory;
	struct cq *c;
	int rc;

	if (posix_memalign(&memory, _Alignof(struct cq), sizeof(*c)) != 0)
		return -ENOMEM;
	c = memory;
	*c = (struct cq){
		.channel = attr->channel,
		.source = {.object = attr->user},
		.overrun = attr->overrun,
		.user = attr->user,
		.now_ns = attr->stamp_ns,
		.has_stamps = attr->stamp_ns != NULL,
		.lock = queue_lock_make(attr->domain),
		.moderation.moderator = attr->moderator,
		.armed = CQ_NOT_ARMED,
	};
	if (attr->domain)
		c->domain = *attr->domain;
	rc = make_ring(attr->domain, attr->stamp_ns != NULL, attr->cqe, &c->ring);
	if (rc != 0) {
		free(c);
		return rc;
	}
	c->capacity = c->ring.mask + 1;
	*cq = c;
	return 0;
}

int cq_destroy(struct cq *cq)
{
	if (__atomic_load_n(&cq->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	moderator_set(cq, NULL, 0, 0);
	if (cq->channel)
		channel_forget(cq->channel, &cq->source);
	ring_free(&cq->ring.memory);
	free(cq);
	return 0;
}

/*
 * Raise the event of an arming, once. If the queue has been armed anew since `armed` was loaded,
 * that thread has looked for completions after ours was added (cq_arm), so nothing is left to do.
 */
static void fire(struct cq *cq, uint64_t armed)
{
	if (!__atomic_compare_exchange_n(&cq->armed, &armed, CQ_NOT_ARMED, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	/* Before the event, which reports these completions. A thread that arms the queue meanwhile
	 * and does not see this store raises one event more. */
	__atomic_store_n(&cq->reported, __atomic_load_n(&cq->prod, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	channel_raise(cq->channel, &cq->source);
}

/* Return true if polls have already taken every completion, and the queue was armed after that,
 * for the next one. Engine's thread or lock. */
static bool is_for_the_next(const struct cq *cq, uint64_t armed)
{
	return (uint32_t)(armed >> 32) == cq->prod;
}

void cq_fire(struct cq *cq)
{
	const uint64_t armed = __atomic_load_n(&cq->armed, __ATOMIC_SEQ_CST);

	if ((uint32_t)armed != CQ_NOT_ARMED && !is_for_the_next(cq, armed))
		fire(cq, armed);
}

static void raise_if_armed(struct cq *cq, bool solicited)
{
	const uint64_t armed = __atomic_load_n(&cq->armed, __ATOMIC_SEQ_CST);
	const uint32_t mode = (uint32_t)armed;

	if (mode == CQ_NOT_ARMED || (mode == CQ_ARMED_SOLICITED && !solicited))
		return;
	if (is_for_the_next(cq, armed))
		return;
	if (!cq->moderation.moderator)
		fire(cq, armed);
	else if (moderator_due(cq))
		cq_fire(cq);
}

/* Handle a completion for which the queue has no room. */
static __rte_noinline int overrun(struct cq *cq)
{
	if (cq->ignores_overrun)
		return 0;
	if (!cq->overrun_told) {
		cq->overrun_told = true;
		if (cq->overrun)
			cq->overrun(cq->user);
	}
	return -ENOSPC;
}

static uint64_t stamp(const struct cq *cq)
{
	return cq->shared ? cq->clock(cq->clock_arg) : *cq->now_ns;
}

/*
 * Remember the newest solicited completion. If it is too old to be in the queue, remember the
 * newest one that was polled instead: 2^32 completions later the old index would be in the queue
 * again.
 */
static void note_solicited(struct cq *cq, bool solicited, uint32_t prod, uint32_t waiting)
{
	if (solicited)
		__atomic_store_n(&cq->solicited, prod + 1, __ATOMIC_RELAXED);
	else if (unlikely(prod - cq->solicited > CQ_ENTRIES_MAX))
		__atomic_store_n(&cq->solicited, prod - waiting, __ATOMIC_RELAXED);
}

/* Show the completion at index `prod` in a queue with stamps or events: stamp it, and tell those
 * who wait for it. Return 0. */
static __rte_noinline int show_and_tell(struct cq *cq, bool solicited, uint32_t prod,
					uint32_t waiting)
{
	if (cq->ring.stamps != NULL)
		cq->ring.stamps[prod & cq->ring.mask] = stamp(cq);
	if (cq->channel == NULL) {
		__atomic_store_n(&cq->prod, prod + 1, __ATOMIC_RELEASE);
		return 0;
	}
	note_solicited(cq, solicited, prod, waiting);
	/*
	 * Store `prod` before loading `armed`; the other side stores `armed` before it loads `prod`
	 * (cq_arm). So at least one side sees the other's store, and no completion is left without
	 * an event. The store also releases `solicited`.
	 */
	__atomic_store_n(&cq->prod, prod + 1, __ATOMIC_SEQ_CST);
	/* 2^32 completions later this index would be in the queue again. */
	if (unlikely(prod + 1 - __atomic_load_n(&cq->reported, __ATOMIC_RELAXED) > CQ_ENTRIES_MAX))
		__atomic_store_n(&cq->reported, prod - waiting, __ATOMIC_RELAXED);
	raise_if_armed(cq, solicited);
	return 0;
}

static __rte_always_inline int push(struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	const uint32_t prod = cq->prod;
	/* Pairs with the release store of `cons` in cq_poll: the entry has been copied out. */
	const uint32_t waiting = prod - __atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE);

	if (unlikely(waiting > cq->ring.mask))
		return overrun(cq);
	/* After the queue has been empty, report the next overrun again. */
	cq->overrun_told &= waiting != 0;
	cq->ring.entries[prod & cq->ring.mask] = *wc;
	if (cq->ring.stamps != NULL || cq->channel != NULL)
		return show_and_tell(cq, solicited || wc->status != IBV_WC_SUCCESS, prod, waiting);
	__atomic_store_n(&cq->prod, prod + 1, __ATOMIC_RELEASE);
	return 0;
}

static __rte_noinline int push_shared(struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	int rc;

	rte_spinlock_lock(&cq->push_lock);
	rc = push(cq, wc, solicited);
	rte_spinlock_unlock(&cq->push_lock);
	return rc;
}

int cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	return unlikely(cq->shared) ? push_shared(cq, wc, solicited) : push(cq, wc, solicited);
}

void cq_share(struct cq *cq, uint64_t (*clock)(void *arg), void *clock_arg)
{
	moderator_set(cq, NULL, 0, 0);
	cq->clock = clock;
	cq->clock_arg = clock_arg;
	cq->shared = true;
}

int cq_poll(struct cq *cq, int n, struct ibv_wc *wc)
{
	uint32_t cons, ready;
	int taken;

	/* Do not lock a queue that is empty. */
	if (cq_empty(cq))
		return 0;
	queue_lock(&cq->lock);
	cons = cq->cons;
	ready = __atomic_load_n(&cq->prod, __ATOMIC_ACQUIRE) - cons;
	for (taken = 0; taken < n && (uint32_t)taken < ready; taken++)
		wc[taken] = cq->ring.entries[(cons + (uint32_t)taken) & cq->ring.mask];
	__atomic_store_n(&cq->cons, cons + (uint32_t)taken, __ATOMIC_RELEASE);
	queue_unlock(&cq->lock);
	return taken;
}

bool cq_poll_stamped(struct cq *cq, struct ibv_wc *wc, uint64_t *stamp_ns)
{
	bool taken = false;
	uint32_t cons;

	if (cq_empty(cq))
		return false;
	queue_lock(&cq->lock);
	cons = cq->cons;
	if (cons != __atomic_load_n(&cq->prod, __ATOMIC_ACQUIRE)) {
		*wc = cq->ring.entries[cons & cq->ring.mask];
		if (cq->ring.stamps)
			*stamp_ns = cq->ring.stamps[cons & cq->ring.mask];
		__atomic_store_n(&cq->cons, cons + 1, __ATOMIC_RELEASE);
		taken = true;
	}
	queue_unlock(&cq->lock);
	return taken;
}

/*
 * Return true if the queue holds a completion that an arming asks for and no event has reported.
 * `solicited` may be newer than `prod`: then the engine is adding that completion, and raises the
 * event itself.
 */
static bool holds_one(const struct cq *cq, bool solicited_only)
{
	const uint32_t prod = __atomic_load_n(&cq->prod, __ATOMIC_SEQ_CST);
	const uint32_t cons = __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);
	const uint32_t reported = __atomic_load_n(&cq->reported, __ATOMIC_RELAXED);
	const uint32_t first = reported - cons <= prod - cons ? reported : cons;

	if (!solicited_only)
		return prod != first;
	return __atomic_load_n(&cq->solicited, __ATOMIC_RELAXED) - 1 - first < prod - first;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	const uint32_t taken = __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);
	uint64_t armed = __atomic_load_n(&cq->armed, __ATOMIC_SEQ_CST);
	uint64_t wanted;

	if (!cq->channel)
		return;
	do {
		const uint32_t mode = (uint32_t)armed;

		if (mode == CQ_NOT_ARMED)
			wanted = (uint64_t)taken << 32 |
				 (solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY);
		else if (mode == CQ_ARMED_SOLICITED && !solicited_only)
			wanted = (uint64_t)taken << 32 | CQ_ARMED_ANY;
		else
			return;
	} while (!__atomic_compare_exchange_n(&cq->armed, &armed, wanted, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	if (holds_one(cq, solicited_only))
		fire(cq, wanted);
}

void cq_forget_qp(struct cq *cq, uint32_t qpn)
{
	const uint32_t last = cq->prod;
	uint32_t solicited = cq->solicited;
	uint32_t kept;

	queue_lock(&cq->lock);
	kept = cq->cons;
	while (kept != last && cq->ring.entries[kept & cq->ring.mask].qp_num != qpn)
		kept++;
	/* Write nothing if no completion is dropped: a queue without a lock may be polled by its
	 * thread just now. */
	if (kept == last) {
		queue_unlock(&cq->lock);
		return;
	}
	for (uint32_t i = kept; i != last; i++) {
		/* If the newest solicited completion is dropped, an older one may be left: let the
		 * newest one before it count as solicited. */
		if (i + 1 == cq->solicited)
			solicited = kept + (cq->ring.entries[i & cq->ring.mask].qp_num != qpn);
		if (cq->ring.entries[i & cq->ring.mask].qp_num == qpn)
			continue;
		cq->ring.entries[kept & cq->ring.mask] = cq->ring.entries[i & cq->ring.mask];
		if (cq->ring.stamps)
			cq->ring.stamps[kept & cq->ring.mask] = cq->ring.stamps[i & cq->ring.mask];
		kept++;
	}
	/* Move `prod` back, but not behind `cons`: the next completion is then newer than those
	 * that an arming saw (cq_push). */
	__atomic_store_n(&cq->solicited, solicited, __ATOMIC_RELAXED);
	/* An event more is better than none for a completion that has got another's index. */
	__atomic_store_n(&cq->reported, cq->cons, __ATOMIC_RELAXED);
	__atomic_store_n(&cq->prod, kept, __ATOMIC_RELEASE);
	moderator_forget(cq, kept - cq->cons);
	queue_unlock(&cq->lock);
}

int cq_make_ring(const struct cq *cq, uint32_t cqe, struct cq_ring *ring)
{
	return make_ring(&cq->domain, cq->has_stamps, cqe, ring);
}

static void copy_waiting(const struct cq *cq, const struct cq_ring *to)
{
	const struct cq_ring *from = &cq->ring;

	for (uint32_t i = cq->cons; i != cq->prod; i++) {
		to->entries[i & to->mask] = from->entries[i & from->mask];
		if (to->stamps)
			to->stamps[i & to->mask] = from->stamps[i & from->mask];
	}
}

/* Keep the indices, because pollers read them without the lock. */
int cq_change_ring(struct cq *cq, struct cq_ring *ring)
{
	const struct cq_ring old = cq->ring;
	int rc = -EINVAL;

	queue_lock(&cq->lock);
	if (cq->prod - cq->cons <= ring->mask + 1) {
		copy_waiting(cq, ring);
		cq->ring = *ring;
		cq->capacity = ring->mask + 1;
		cq->overrun_told = false;
		*ring = old;
		rc = 0;
	}
	queue_unlock(&cq->lock);
	return rc;
}
