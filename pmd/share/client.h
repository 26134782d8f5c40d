/* SPDX-License-Identifier: BSD-3-Clause */
/* An attached process: its slot's rings, its own mbufs of the shared buffers, and its line to the
 * owner. */
#ifndef CLIENT_H
#define CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "link/addresses.h"
#include "share/layout.h"
#include "share/message.h"

struct share_client {
	/* constant once attached */
	int socket;
	int owner_fd;	/* eventfd: wakes the owner */
	int process_fd; /* eventfd: wakes us */
	uint8_t *arena;
	size_t arena_bytes;
	uint32_t buffers;
	uint32_t buffer_bytes;
	uint32_t buffer_stride;
	struct share_page *page;
	size_t page_bytes;
	struct rte_mbuf *mbufs; /* one for each buffer; those that we hold mean something */
	struct rte_mempool *pool;

	/* engine's thread or lock */
	struct share_ring rings[SHARE_RINGS];
	uint32_t stock_count;
	uint32_t *stock; /* empty buffers, the one used last on top */

	pthread_mutex_t lock; /* of the socket and what follows */
	uint32_t requests;
	bool lost; /* the owner has gone, or let us go; atomic */
	bool addresses_changed;
	struct addresses addresses;
};

/** The mbuf of a buffer that we hold. Engine's thread or lock. */
struct rte_mbuf *client_mbuf(struct share_client *client, uint32_t buffer);

/** Make the pool of a client whose rings and arena are there. 0 or -ENOMEM. */
int client_make_pool(struct share_client *client);

/** Take in what the owner says unasked, and notice where it has gone. MT-safe. */
void client_listen(struct share_client *client);

/** Ask the owner, and wait for the answer, which is in `message` then. MT-safe. 0 or -errno. */
int client_ask(struct share_client *client, struct share_message *message);

extern const struct port_ops client_port_ops;
extern const struct link_remote client_link_remote;

#endif
