/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: a producer without a lock, pollers under one, and events for who sleeps. */
#include "queue/cq.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>

#define CQ_ENTRIES_MAX (1u << 30)

static struct ibv_wc *ring_alloc(uint32_t entries)
{
	void *ring;

	/* Not cleared: pages of a large queue are touched when they are first used. */
	if (posix_memalign(&ring, RTE_CACHE_LINE_SIZE, (size_t)entries * sizeof(struct ibv_wc)) !=
	    0)
		return NULL;
	return ring;
}

int cq_create(uint32_t cqe, struct channel *channel, void *user, void (*overrun)(void *user),
	      struct cq **cq)
{
	uint32_t entries;
	void *memory;
	struct cq *c;

	if (cqe == 0 || cqe > CQ_ENTRIES_MAX)
		return -EINVAL;
	entries = rte_align32pow2(cqe);
	if (posix_memalign(&memory, _Alignof(struct cq), sizeof(*c)) != 0)
		return -ENOMEM;
	c = memory;
	*c = (struct cq){
		.ring = ring_alloc(entries),
		.mask = entries - 1,
		.capacity = entries,
		.channel = channel,
		.source = {.object = user},
		.overrun = overrun,
		.user = user,
		.lock = RTE_SPINLOCK_INITIALIZER,
		.armed = CQ_NOT_ARMED,
	};
	if (!c->ring) {
		free(c);
		return -ENOMEM;
	}
	*cq = c;
	return 0;
}

int cq_enable_stamps(struct cq *cq, const uint64_t *now_ns)
{
	cq->stamps = calloc((size_t)cq->mask + 1, sizeof(cq->stamps[0]));
	if (!cq->stamps)
		return -ENOMEM;
	cq->now_ns = now_ns;
	return 0;
}

int cq_destroy(struct cq *cq)
{
	if (__atomic_load_n(&cq->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	moderator_set(cq, NULL, 0, 0);
	if (cq->channel)
		channel_forget(cq->channel, &cq->source);
	free(cq->stamps);
	free(cq->ring);
	free(cq);
	return 0;
}

void cq_fire(struct cq *cq)
{
	/* One event an arming. Who arms meanwhile gets this event. */
	if (__atomic_exchange_n(&cq->armed, CQ_NOT_ARMED, __ATOMIC_SEQ_CST) != CQ_NOT_ARMED)
		channel_raise(cq->channel, &cq->source);
}

static void raise_if_armed(struct cq *cq, bool solicited)
{
	const int armed = __atomic_load_n(&cq->armed, __ATOMIC_SEQ_CST);

	if (armed == CQ_NOT_ARMED || (armed == CQ_ARMED_SOLICITED && !solicited))
		return;
	if (!cq->moderation.moderator || moderator_due(cq))
		cq_fire(cq);
}

/* There is no room. */
static int overrun(struct cq *cq)
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

int cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	const uint32_t prod = cq->prod;

	/* Pairs with the release store of `cons` in cq_poll: the entry has been copied out. */
	if (unlikely(prod - __atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE) > cq->mask))
		return overrun(cq);
	cq->ring[prod & cq->mask] = *wc;
	if (unlikely(cq->stamps != NULL))
		cq->stamps[prod & cq->mask] = *cq->now_ns;
	if (!cq->channel) {
		__atomic_store_n(&cq->prod, prod + 1, __ATOMIC_RELEASE);
		return 0;
	}
	/*
	 * The store of `prod` before the load of `armed`, as the other side stores `armed` (cq_arm)
	 * before it loads `prod` (the poll that ibv_req_notify_cq(3) asks for): one of the two sees
	 * the other's, so no completion sleeps.
	 */
	__atomic_store_n(&cq->prod, prod + 1, __ATOMIC_SEQ_CST);
	raise_if_armed(cq, solicited || wc->status != IBV_WC_SUCCESS);
	return 0;
}

int cq_poll(struct cq *cq, int n, struct ibv_wc *wc)
{
	uint32_t cons, ready;
	int taken;

	/* See cq_push for the order of this load; a queue that is found empty is not locked. */
	if (__atomic_load_n(&cq->prod, __ATOMIC_SEQ_CST) ==
	    __atomic_load_n(&cq->cons, __ATOMIC_RELAXED))
		return 0;
	rte_spinlock_lock(&cq->lock);
	cons = cq->cons;
	ready = __atomic_load_n(&cq->prod, __ATOMIC_ACQUIRE) - cons;
	for (taken = 0; taken < n && (uint32_t)taken < ready; taken++)
		wc[taken] = cq->ring[(cons + (uint32_t)taken) & cq->mask];
	__atomic_store_n(&cq->cons, cons + (uint32_t)taken, __ATOMIC_RELEASE);
	rte_spinlock_unlock(&cq->lock);
	return taken;
}

bool cq_poll_stamped(struct cq *cq, struct ibv_wc *wc, uint64_t *stamp_ns)
{
	bool taken = false;
	uint32_t cons;

	if (cq_empty(cq))
		return false;
	rte_spinlock_lock(&cq->lock);
	cons = cq->cons;
	if (cons != __atomic_load_n(&cq->prod, __ATOMIC_ACQUIRE)) {
		*wc = cq->ring[cons & cq->mask];
		if (cq->stamps)
			*stamp_ns = cq->stamps[cons & cq->mask];
		__atomic_store_n(&cq->cons, cons + 1, __ATOMIC_RELEASE);
		taken = true;
	}
	rte_spinlock_unlock(&cq->lock);
	return taken;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	int expected = CQ_NOT_ARMED;

	if (solicited_only)
		__atomic_compare_exchange_n(&cq->armed, &expected, CQ_ARMED_SOLICITED, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(&cq->armed, CQ_ARMED_ANY, __ATOMIC_SEQ_CST);
}

void cq_forget_qp(struct cq *cq, uint32_t qpn)
{
	uint32_t kept;

	rte_spinlock_lock(&cq->lock);
	kept = cq->cons;
	for (uint32_t i = cq->cons; i != cq->prod; i++) {
		if (cq->ring[i & cq->mask].qp_num == qpn)
			continue;
		cq->ring[kept & cq->mask] = cq->ring[i & cq->mask];
		if (cq->stamps)
			cq->stamps[kept & cq->mask] = cq->stamps[i & cq->mask];
		kept++;
	}
	__atomic_store_n(&cq->prod, kept, __ATOMIC_RELEASE);
	rte_spinlock_unlock(&cq->lock);
}

/* Move what waits to another ring. The indices stay, as pollers read them without the lock. */
static int move_locked(struct cq *cq, struct ibv_wc *ring, uint64_t *stamps, uint32_t mask)
{
	if (cq->prod - cq->cons > mask + 1)
		return -EINVAL;
	for (uint32_t i = cq->cons; i != cq->prod; i++) {
		ring[i & mask] = cq->ring[i & cq->mask];
		if (stamps)
			stamps[i & mask] = cq->stamps[i & cq->mask];
	}
	cq->ring = ring;
	cq->stamps = stamps;
	cq->mask = mask;
	cq->capacity = mask + 1;
	return 0;
}

int cq_resize(struct cq *cq, uint32_t cqe)
{
	uint64_t *stamps = NULL, *old_stamps = cq->stamps;
	struct ibv_wc *ring, *old = cq->ring;
	uint32_t entries;
	int rc = -ENOMEM;

	if (cqe == 0 || cqe > CQ_ENTRIES_MAX)
		return -EINVAL;
	entries = rte_align32pow2(cqe);
	ring = ring_alloc(entries);
	if (cq->stamps)
		stamps = calloc(entries, sizeof(*stamps));
	if (ring && (stamps || !cq->stamps)) {
		rte_spinlock_lock(&cq->lock);
		rc = move_locked(cq, ring, stamps, entries - 1);
		rte_spinlock_unlock(&cq->lock);
	}
	free(rc == 0 ? old : ring);
	free(rc == 0 ? old_stamps : stamps);
	return rc;
}
