/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that have a handle of the device each, and so an engine each, if there are as many. */
#ifndef TESTROCE_NIC_THREAD_H
#define TESTROCE_NIC_THREAD_H

#include <pthread.h>
#include <semaphore.h>

#include "nic.h"

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

#endif
