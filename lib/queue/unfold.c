/* SPDX-License-Identifier: BSD-3-Clause */
/* What queues do by a seed, where the specification leaves a choice. */
#include "queue/unfold.h"

#include "base/mix.h"

#define ORDER_MAX 256 /* completions in one pass */

/* Exchange two neighbours. An engine may add completions behind them meanwhile. */
static void exchange(struct cq *cq, uint32_t index)
{
	struct ibv_wc *entries = cq->ring.entries;
	const uint32_t a = index & cq->ring.mask, b = (index + 1) & cq->ring.mask;
	const struct ibv_wc wc = entries[a];
	uint32_t newest = index + 1;

	entries[a] = entries[b];
	entries[b] = wc;
	if (cq->ring.stamps) {
		const uint64_t stamp = cq->ring.stamps[a];

		cq->ring.stamps[a] = cq->ring.stamps[b];
		cq->ring.stamps[b] = stamp;
	}
	/* If the newest solicited one has moved towards the program, it counts as before. */
	__atomic_compare_exchange_n(&cq->solicited, &newest, index + 2, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

void unfold_order(struct cq *cq, uint64_t seed)
{
	uint32_t cons, ready;

	queue_lock(&cq->lock);
	cons = cq->cons;
	ready = __atomic_load_n(&cq->prod, __ATOMIC_ACQUIRE) - cons;
	for (uint32_t i = 1; i < ready && i < ORDER_MAX; i++) {
		/* A completion passes some of those before it, up to its own queue pair's. */
		uint64_t steps = mix_stream(seed, i) % 4;

		for (uint32_t j = i; j > 0 && steps > 0; j--, steps--) {
			if (cq->ring.entries[(cons + j) & cq->ring.mask].qp_num ==
			    cq->ring.entries[(cons + j - 1) & cq->ring.mask].qp_num)
				break;
			exchange(cq, cons + j - 1);
		}
	}
	queue_unlock(&cq->lock);
}

void unfold_leave(struct cq *cq)
{
	if (!cq->channel)
		return;
	__atomic_store_n(&cq->reported, __atomic_load_n(&cq->cons, __ATOMIC_RELAXED),
			 __ATOMIC_SEQ_CST);
	cq_fire(cq);
}

void unfold_wake(struct cq *cq)
{
	uint64_t armed = __atomic_load_n(&cq->armed, __ATOMIC_SEQ_CST);

	if (!cq->channel || (uint32_t)armed == CQ_NOT_ARMED ||
	    !__atomic_compare_exchange_n(&cq->armed, &armed, CQ_NOT_ARMED, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	channel_raise(cq->channel, &cq->source);
}

void unfold_hide(struct rq *rq)
{
	queue_lock(&rq->lock);
	if (rq->hidden == 0) {
		rq->hidden = rq->prod - rq->cons;
		__atomic_store_n(&rq->prod, rq->cons, __ATOMIC_RELEASE);
	}
	queue_unlock(&rq->lock);
}

void unfold_show(struct rq *rq)
{
	queue_lock(&rq->lock);
	__atomic_store_n(&rq->prod, rq->prod + rq->hidden, __ATOMIC_RELEASE);
	rq->hidden = 0;
	queue_unlock(&rq->lock);
}
