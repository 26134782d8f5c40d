/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which engine of a device an object belongs to.
 *
 * A completion queue belongs to the engine of its completion vector. Most programs know only vector
 * 0; then it is the engine of the queue's thread domain, or else of the thread that creates it. A
 * queue pair belongs to the engine of its send completion queue, or to another one if that engine
 * has too few numbers left. A queue that no other queue pair uses follows it there. A queue that
 * queue pairs of several engines use is shared: the engines take turns under a lock.
 *
 * A thread that sleeps on a channel tells the engines of the channel's completion queues. A queue
 * that gets one more engine tells that engine itself, because a thread may sleep already.
 */
#include "device/device_share.h"
#include "queue/cq.h"

#include "verbs_internal.h"

/* One more than the number of this thread; 0: it has none yet. */
static __thread uint32_t thread_place __attribute__((tls_model("initial-exec")));

uint32_t home_next_number(void)
{
	static uint32_t next;

	return __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
}

static uint32_t thread_number(void)
{
	static uint32_t next;

	if (thread_place == 0)
		thread_place = __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
	return thread_place - 1;
}

struct device_engine *home_of_cq(const struct device *device, uint32_t comp_vector,
				 const struct face_parent *parent)
{
	uint32_t number = comp_vector;

	if (device->engine_count > 1 && comp_vector == 0)
		number = parent && parent->td ? parent->td->number : thread_number();
	return device->engines[number % device->engine_count];
}

static uint32_t bit_of(const struct device_engine *engine)
{
	return 1u << engine->number;
}

/* Count the engines of a queue in its channel. Add first: a queue that moves has an engine at any
 * time. */
static void count_feeders(const struct face_cq *cq, uint32_t before, uint32_t after)
{
	struct face_channel *channel = cq->ibv.channel ? face_channel(cq->ibv.channel) : NULL;

	if (!channel)
		return;
	for (uint32_t left = after & ~before; left != 0; left &= left - 1)
		__atomic_add_fetch(&channel->fed[__builtin_ctz(left)], 1, __ATOMIC_SEQ_CST);
	for (uint32_t left = before & ~after; left != 0; left &= left - 1)
		__atomic_sub_fetch(&channel->fed[__builtin_ctz(left)], 1, __ATOMIC_SEQ_CST);
}

/* Set the engines that add completions to a queue. */
static void set_feeders(struct face_cq *cq, uint32_t feeders)
{
	const uint32_t before = __atomic_load_n(&cq->feeders, __ATOMIC_RELAXED);
	const uint32_t added = feeders & ~before;

	if (feeders == before)
		return;
	count_feeders(cq, before, feeders);
	__atomic_store_n(&cq->feeders, feeders, __ATOMIC_SEQ_CST);
	/* A thread that armed the queue and sleeps has not told these engines. One that arms it
	 * later reads the engines after that, and tells them itself. */
	if (cq->ibv.channel && before != 0 && added != 0 && cq_is_armed(cq->cq))
		device_wait(cq->device, added);
}

void home_begin_cq(struct face_cq *cq)
{
	set_feeders(cq, bit_of(cq->home));
}

void home_end_cq(struct face_cq *cq)
{
	set_feeders(cq, 0);
}

static void join_cq(struct face_cq *cq, struct device_engine *home, uint32_t own)
{
	device_share_cq(cq->cq, &cq->home, home, own);
	set_feeders(cq, cq->cq->shared ? cq->feeders | bit_of(home) : bit_of(home));
}

void home_join(struct face_qp *qp)
{
	const struct ibv_qp *ibv = &qp->ibv;
	const uint32_t own = ibv->send_cq == ibv->recv_cq ? 2 : 1;

	if (qp->device->engine_count == 1)
		return;
	if (ibv->send_cq)
		join_cq(face_cq(ibv->send_cq), qp->home, own);
	if (ibv->recv_cq)
		join_cq(face_cq(ibv->recv_cq), qp->home, own);
	if (ibv->srq)
		device_share_srq(face_srq(ibv->srq)->srq, &face_srq(ibv->srq)->home, qp->home);
}

void home_join_xrc(struct face_cq *cq)
{
	/* All queue pairs that receive for the domain belong to the first engine. */
	set_feeders(cq, cq->feeders | bit_of(device_first(cq->device)));
}

void home_wait_cq(const struct face_cq *cq)
{
	device_wait(cq->device, __atomic_load_n(&cq->feeders, __ATOMIC_SEQ_CST));
}

void home_wait_channel(const struct face_channel *channel)
{
	const struct device *device = face_context(channel->ibv.context)->device;
	uint32_t engines = 0;

	for (uint32_t i = 0; i < device->engine_count; i++) {
		if (__atomic_load_n(&channel->fed[i], __ATOMIC_SEQ_CST) > 0)
			engines |= 1u << i;
	}
	device_wait(device, engines);
}
