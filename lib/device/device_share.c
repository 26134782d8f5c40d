/* SPDX-License-Identifier: BSD-3-Clause */
/* Decide which queues the engines of a device share. */
#include "device/device_share.h"

#include <stddef.h>

#include "device/device.h"
#include "queue/cq.h"
#include "queue/srq.h"

static uint64_t engine_clock(void *engine)
{
	return device_engine_now(engine);
}

void device_share_cq(struct cq *cq, struct device_engine **home, struct device_engine *user,
		     uint32_t own)
{
	if (cq->shared || *home == user)
		return;
	if (__atomic_load_n(&cq->users, __ATOMIC_ACQUIRE) > own) {
		cq_share(cq, engine_clock, user);
		return;
	}
	moderator_set(cq, &user->moderator, cq->moderation.count, cq->moderation.period_ns);
	cq->now_ns = user->now_ns;
	__atomic_store_n(home, user, __ATOMIC_RELAXED);
}

void device_share_srq(struct srq *srq, struct device_engine **home, struct device_engine *user)
{
	if (*home && *home != user)
		srq->shared = true;
	*home = user;
}

void device_share_xrc(const struct device *device, struct srq *srq)
{
	if (device->engine_count == 1)
		return;
	srq->shared = true;
	if (!srq->cq->shared)
		cq_share(srq->cq, engine_clock, device_first(device));
}
