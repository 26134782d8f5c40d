/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of the server, and its clients. */
#ifndef TESTROCE_SERVING_H
#define TESTROCE_SERVING_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "passive.h"

#define SERVING_CLIENTS_MAX 32 /* of all threads together */

struct nic;

struct serving_client {
	int fd; /* -1: free */
	struct passive passive;
};

struct serving {
	/* only for the thread itself */
	struct nic *nic;
	struct serving_client clients[SERVING_CLIENTS_MAX];
	struct serving_client *connected[SERVING_CLIENTS_MAX]; /* pointers into `clients` */
	uint32_t count;					       /* in `connected` */
	uint64_t looked_tsc;
	const volatile sig_atomic_t *stop; /* atomic: the server ends */

	uint32_t load; /* atomic: clients, with those in `handed` */

	pthread_mutex_t lock;		 /* protects what follows */
	int handed[SERVING_CLIENTS_MAX]; /* sockets of clients that the thread has not seen yet */
	uint32_t handed_count;
};

/** Begin without clients. `stop` (atomic) says when not to wait for clients any more. Not MT-safe.
 */
void serving_init(struct serving *serving, struct nic *nic, const volatile sig_atomic_t *stop);

/** Give the thread a new client, by its socket. The caller makes sure that all threads together
 * have no more than SERVING_CLIENTS_MAX. MT-safe. */
void serving_hand(struct serving *serving, int fd);

/** Return the number of clients. MT-safe. */
uint32_t serving_load(const struct serving *serving);

/**
 * Serve all clients once. Only for the thread itself.
 *
 * @param wait_fd
 *   Without a test, sleep for a moment, or until this descriptor is readable; -1: none.
 * @return
 *   True if it has also looked at the sockets, which it does from time to time.
 */
bool serving_poll(struct serving *serving, int wait_fd);

/** Drop all clients. Only for the thread itself. */
void serving_end(struct serving *serving);

#endif
