/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells that a program waits for completions in vain, to a user who wants to know why nothing
 * happens. */
#include "base/log.h"
#include "queue/cq.h"

/* Return true if an event of the queue is there, or will come with the next completion. */
static bool is_alive(const struct cq *cq)
{
	return cq_is_armed(cq) || channel_pending(cq->channel, &cq->source) > 0;
}

void cq_watch_first(const struct cq *cq, uint64_t now_ns)
{
	if (cq->channel && is_alive(cq))
		cq->channel->watch.alive = now_ns;
}

/* Return true if something has lasted for `ns`, and was not told yet. */
static bool lasts(struct queue_watch *watch, bool is_so, uint64_t ns, uint64_t now_ns)
{
	if (!is_so || !watch->is_so)
		watch->since_ns = now_ns;
	watch->is_so = is_so;
	if (!is_so || watch->told || now_ns - watch->since_ns < ns)
		return false;
	watch->told = true;
	return true;
}

static uint32_t held(const struct cq *cq)
{
	return __atomic_load_n(&cq->prod, __ATOMIC_RELAXED) -
	       __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);
}

void cq_watch(struct cq *cq, uint64_t ns, uint64_t now_ns)
{
	const uint32_t cons = __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);
	const bool is_armed =
		(uint32_t)__atomic_load_n(&cq->armed, __ATOMIC_RELAXED) == CQ_ARMED_ANY;
	struct channel *channel = cq->channel;

	if (!channel)
		return;
	if (lasts(&cq->watch, is_armed && held(cq) > 0 && cons == cq->watch_cons, ns, now_ns))
		log_error("completion queue %u has held %u completions for 2 s, and is armed: the "
			  "event that announced them was taken, and only a later completion "
			  "raises another one: poll until it is empty, arm, and poll again "
			  "(ibv_get_cq_event(3))",
			  cq->number, held(cq));
	cq->watch_cons = cons;
	if (lasts(&channel->watch.sleep,
		  channel->watch.alive != now_ns &&
			  __atomic_load_n(&channel->watch.sleepers, __ATOMIC_RELAXED) > 0,
		  ns, now_ns))
		log_error("a thread has slept in ibv_get_cq_event for 2 s, and no completion queue "
			  "of its channel is armed (ibv_req_notify_cq), so no event will "
			  "come; completion queue %u holds %u completions",
			  cq->number, held(cq));
}
