/* SPDX-License-Identifier: BSD-3-Clause */
/* A client with a page and rings, but without an owner. */
#ifndef TEST_ATTACH_CLIENT_RIG_H
#define TEST_ATTACH_CLIENT_RIG_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "client.h"
#include "port/port.h"
#include "test.h"

/** Make it, with an empty port. The test unmaps client->page. */
static inline void client_rig_make(struct share_client *client, struct port *port)
{
	memset(client, 0, sizeof(*client));
	memset(port, 0, sizeof(*port));
	pthread_mutex_init(&client->lock, NULL);
	pthread_mutex_init(&client->lanes_lock, NULL);
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

#endif
