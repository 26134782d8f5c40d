/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine of a device, as the rooms below the engine see it: the operations by which they call
 * it, and what it has to itself. */
#ifndef DEVICE_DEVICE_ENGINE_H
#define DEVICE_DEVICE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "qp/qp.h"
#include "queue/moderator.h"
#include "telemetry/counters.h"

struct cc_paths;
struct device;
struct ooo_pool;

/*
 * How an engine of a device is run. pmd/engine has one table, and a simulator another. The first
 * argument is the driver's own data of the engine. What the device needs of its network and its
 * port are other tables (device/device_net.h, device/device_map.h).
 */
struct engine_ops {
	/* Stop the engine between two engine polls, and start it again; around every control call.
	 * MT-safe, may not nest. */
	void (*lock)(void *engine);
	void (*unlock)(void *engine);
	/* Receive what has come, raise its events in the next engine poll, and send what the queue
	 * pair owes; under lock. NULL: the engine has no port. */
	void (*settle)(void *engine, struct qp *qp);
	/* Add a new queue pair, or settle and remove one; under lock. */
	void (*attach)(void *engine, struct qp *qp);
	void (*detach)(void *engine, struct qp *qp);
	/* Work was posted or a state changed, so the queue pair needs qp_run. MT-safe; may itself
	 * run the engine. */
	void (*kick)(void *engine, struct qp *qp);
	/* The application polled and found nothing: run an engine poll if no other thread does.
	 * MT-safe. */
	void (*poll)(void *engine);
	/* The application polled and found all `n` completions that it asked for. MT-safe; may run
	 * an engine poll. */
	void (*polled)(void *engine, int n);
	/* The application is about to sleep until the engine raises an event: another thread must
	 * run the engine, and those that receive packets for it. MT-safe. */
	void (*wait)(void *engine);
	/* Return the engine's clock in nanoseconds; it advances as CLOCK_MONOTONIC. MT-safe. */
	uint64_t (*now)(void *engine);
};

/*
 * What one engine of a device has to itself. A queue pair or completion queue belongs to one engine
 * for its whole life, its home: only the thread that runs this engine works on it. Two threads that
 * run two engines write no cache line in common.
 */
struct device_engine {
	struct device *device;
	uint32_t number; /* its index in the device */

	/* set by the driver of the device */
	const struct engine_ops *ops;
	void *driver;		/* the operations' first argument */
	const uint64_t *now_ns; /* time of its current poll; engine's thread or lock */

	uint32_t qps; /* its queue pair numbers in use; under device->qpn_lock */

	struct ooo_pool *ooo;	   /* packets that came out of order; engine's thread */
	struct cc_paths *cc_paths; /* NULL until a queue pair needs them; atomic. Their contents are
				      the engine's thread's */
	struct qp_waiting waiting; /* queue pairs that wait for pages; engine's thread or lock */
	struct moderator moderator; /* of completion events; run by the engine */
	uint32_t gid_hint;	    /* index of the newest packet's address; engine's thread */
	struct counters counters;   /* written by the engine's thread */
};

/** Create an engine of a device, without a driver. Not MT-safe. 0 or -ENOMEM. */
int device_engine_create(struct device *device, uint32_t number, struct device_engine **engine);

/** Destroy an engine that has no queue pairs left. NULL is ignored. */
void device_engine_destroy(struct device_engine *engine);

/** Return what congestion control of a queue pair needs of its engine. MT-safe. */
struct cc_attr device_engine_cc(const struct device_engine *engine);

/** Receive what has come to an engine, and send what a queue pair of it owes. Events are raised
 * later, because the caller may hold locks that the receivers of events take. Engine's lock. */
static inline void device_engine_settle(const struct device_engine *engine, struct qp *qp)
{
	if (engine->ops->settle)
		engine->ops->settle(engine->driver, qp);
}

/** Work was posted to a queue pair of this engine, or its state changed: it needs qp_run. MT-safe;
 * may itself run the engine. */
static inline void device_engine_kick(const struct device_engine *engine, struct qp *qp)
{
	engine->ops->kick(engine->driver, qp);
}

/** The application polled a queue of this engine and found nothing: run an engine poll if no other
 * thread does. MT-safe. */
static inline void device_engine_poll(const struct device_engine *engine)
{
	engine->ops->poll(engine->driver);
}

/** The application polled and found all `n` completions that it asked for. MT-safe; may run an
 * engine poll. */
static inline void device_engine_polled(const struct device_engine *engine, int n)
{
	engine->ops->polled(engine->driver, n);
}

/** The application is about to sleep until this engine raises an event: another thread must run the
 * engine. MT-safe. */
static inline void device_engine_wait(const struct device_engine *engine)
{
	engine->ops->wait(engine->driver);
}

/** Return the engine's clock in nanoseconds; it advances as CLOCK_MONOTONIC. MT-safe. */
static inline uint64_t device_engine_now(const struct device_engine *engine)
{
	return engine->ops->now(engine->driver);
}

#endif
