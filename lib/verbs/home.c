/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which engine of a device an object belongs to.
 *
 * A completion queue belongs to the engine of its completion vector. Most programs know only vector
 * 0; then it is the engine of the queue's thread domain, or else of the thread that creates it. A
 * queue pair belongs to the engine of its send completion queue, or to another one if that engine
 * has too few numbers left. A queue that no other queue pair uses follows it there. A queue that
 * queue pairs of several engines use is shared: the engines take turns under a lock.
 */
#include "device/device_share.h"

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

static void join_cq(struct face_cq *cq, struct device_engine *home, uint32_t own)
{
	device_share_cq(cq->cq, &cq->home, home, own);
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
