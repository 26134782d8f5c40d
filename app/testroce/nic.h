/* SPDX-License-Identifier: BSD-3-Clause */
/* The device under test, opened through verbs, and the few internal values that no verb returns. */
#ifndef TESTROCE_NIC_H
#define TESTROCE_NIC_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "telemetry/counters.h"

struct nic {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *idle_cq; /* always empty; a poll of it gives the engine a poll */
	union ibv_gid gid;
	uint8_t gid_index;
};

/** Open the first device. Not MT-safe. Returns 0, or -errno after a message on stderr. */
int nic_open(struct nic *nic);
void nic_close(struct nic *nic);

/**
 * Make a second handle of the device for the calling thread. It has an idle completion queue of its
 * own, so its polls are those of this thread's engine. The first handle must outlive it. MT-safe.
 *
 * @return
 *   0 or -ENOMEM.
 */
int nic_share(const struct nic *nic, struct nic *own);

/** End a handle that nic_share has made. MT-safe. */
void nic_unshare(struct nic *own);

/** Give the engine a poll while no completion queue of a test can be polled. */
static inline void nic_poll(const struct nic *nic)
{
	struct ibv_wc wc;

	ibv_poll_cq(nic->idle_cq, 1, &wc);
}

/* Values from inside the engine. */

/** Copy the device's counters. MT-safe. */
void nic_counters(const struct nic *nic, struct counters *counters);

/** Convert ticks of the time stamp counter to nanoseconds by the engine's clock. MT-safe. */
uint64_t nic_ns(const struct nic *nic, uint64_t tsc);

/** Switch off these optimisations: one bit each, in the order of base/tuning.h.
 * MT-safe: it stops the engines while it changes them. The last call counts, for all threads. */
void nic_without(const struct nic *nic, uint64_t without);

/** Drop `per_million` of a million received packets. MT-safe: it stops the engines while it changes
 * that. The last call counts, for all threads. Returns 0, or -ENOTSUP if another process owns the
 * port. */
int nic_set_loss(const struct nic *nic, uint64_t per_million, uint64_t seed);

/** Set the progress mode: "hybrid", "inline" or "dedicated". Not MT-safe. Returns 0 or -errno. */
int nic_set_progress(const struct nic *nic, const char *progress);

/** Return the progress mode: "hybrid", "inline" or "dedicated". MT-safe. */
const char *nic_progress(const struct nic *nic);

/* Explains a failure to start a thread, with its number and the reason. */
#define THREAD_REFUSED "thread %u cannot start: %s"

struct nic_thread {
	pthread_t thread;
	uint32_t number;
	struct nic nic; /* valid while `run` is called */
	const struct nic *first;
	void (*run)(void *arg);
	void *arg;
	sem_t ready;
	int rc; /* of making `nic` */
};

/**
 * Start a thread that calls `run`, on the lcore of its number if the user has chosen
 * lcores, and wait until it has its handle. So threads that are started one after the other get
 * their engines in this order: the engine of a completion queue follows from the number of the
 * thread that creates it (lib/verbs/home.c). Not MT-safe.
 *
 * @return
 *   0 or -errno.
 */
int nic_thread_start(struct nic_thread *thread, uint32_t number, const struct nic *nic,
		     void (*run)(void *arg), void *arg);

/** Wait until `run` has returned. MT-safe. */
void nic_thread_join(struct nic_thread *thread);

/**
 * Use the lcores of the running EAL. EAL has pinned the calling thread to the main lcore, and all
 * threads that it starts would be there, too: allow it the CPUs of all lcores. Not MT-safe.
 */
void nic_thread_use_lcores(void);

/** Pin the calling thread to the CPUs of an lcore: number 0 is the main lcore. If there are fewer
 * lcores, several threads share one. No effect before nic_thread_use_lcores. MT-safe. */
void nic_thread_pin(uint32_t number);

struct port;

#define LOSS_REFUSED "packets can be lost on request only on a port of one's own"
#define LOSS_PPM_MAX 200000

/**
 * Drop `per_million` of a million RoCE packets that the port of an engine receives from now on, by
 * the seed (impair/impair_path.h); 0 drops none. Only one device can lose packets. The caller must
 * hold all engines of the device.
 *
 * @return
 *   0; -ENOTSUP: the port is another process's; or -ENOMEM.
 */
int lossy_port_set(struct port *port, uint32_t engine, uint64_t per_million, uint64_t seed);

#endif
