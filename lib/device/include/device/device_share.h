/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues that queue pairs of several engines use. An engine has its own queues without a lock; the
 * engines of a shared one take turns under a lock. */
#ifndef DEVICE_DEVICE_SHARE_H
#define DEVICE_DEVICE_SHARE_H

#include <stdint.h>

struct cq;
struct device;
struct device_engine;
struct srq;

/**
 * Let a completion queue of the engine `*home` take completions of a queue pair of `user`, too. If
 * no other queue pair uses it, it moves to that engine: `*home` changes, atomically. `own` of the
 * queue's users are this queue pair. Device's lock.
 */
void device_share_cq(struct cq *cq, struct device_engine **home, struct device_engine *user,
		     uint32_t own);

/** Let queue pairs of `user` receive from a shared receive queue. `*home` is the engine of the
 * queue pair that came last, or NULL. Device's lock. */
void device_share_srq(struct srq *srq, struct device_engine **home, struct device_engine *user);

/** Let a new shared receive queue of an XRC domain serve all engines, because any queue pair of the
 * domain may receive from it. Device's lock. */
void device_share_xrc(const struct device *device, struct srq *srq);

#endif
