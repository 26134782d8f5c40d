/* SPDX-License-Identifier: BSD-3-Clause */
/* A client with a page and rings, but without an owner. */
#ifndef TEST_ATTACH_CLIENT_RIG_H
#define TEST_ATTACH_CLIENT_RIG_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "port/port.h"
#include "test.h"

/** Make it, with an empty port. The test unmaps client->page. */
static inline void client_rig_make(struct share_client *client, struct port *port)
{
	memset(client, 0, sizeof(*client));
	memset(port, 0, sizeof(*port));
	pthread_mutex_init(&client->lock, NULL);
	TAILQ_INIT(&client->away.promises);
	pthread_mutex_init(&client->directs_lock, NULL);
	client->port = port;
	client->page_bytes = share_ring_offset(SHARE_RINGS);
	client->page = mmap(NULL, client->page_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(client->page, MAP_FAILED);
	for (int kind = 0; kind < SHARE_RINGS; kind++)
		share_ring_init(&client->rings[kind],
				(uint8_t *)client->page +
					share_ring_offset((enum share_ring_kind)kind),
				share_ring_words((enum share_ring_kind)kind));
}

/**
 * The owner offers a direct channel to a process, which is ready; the number and the count of queue
 * pairs are filled in here.
 *
 * @param wake_fd
 *   Set to a descriptor that is readable when the process is woken; NULL: none is wanted.
 * @return
 *   The channel's memory, which the test unmaps.
 */
static inline struct direct_memory *client_rig_offer(struct share_client *client,
						     struct share_offer offer, int *wake_fd)
{
	static uint32_t numbers;
	struct share_message message = {.offer = offer};
	const int fds[SHARE_DIRECT_FDS] = {
		[SHARE_DIRECT_FD_MEMORY] = memfd_create("direct", MFD_CLOEXEC),
		[SHARE_DIRECT_FD_DOORBELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	struct direct_memory *map;

	message.offer.trusted = true;
	message.offer.number = ++numbers;
	message.offer.qpn_count = BLOCK_QPNS;
	assert_int_equal(ftruncate(fds[SHARE_DIRECT_FD_MEMORY], sizeof(*map)), 0);
	map = mmap(NULL, sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED,
		   fds[SHARE_DIRECT_FD_MEMORY], 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	if (wake_fd)
		*wake_fd = dup(fds[SHARE_DIRECT_FD_DOORBELL]);
	map->sides[1].ready = 1;
	client->page->directs[offer.peer] = message.offer.number;
	client_directs_offer(client, &message, fds);
	client_directs_look(client);
	return map;
}

/* Forget what an owner has granted, as a process never does. */
static inline void client_rig_forget(struct share_client *client)
{
	struct client_promise *promise;

	while ((promise = TAILQ_FIRST(&client->away.promises)) != NULL) {
		TAILQ_REMOVE(&client->away.promises, promise, link);
		if (promise->type == SHARE_CLAIM)
			LIST_REMOVE(promise, same);
		free(promise);
	}
}

#endif
