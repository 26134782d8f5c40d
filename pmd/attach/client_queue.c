/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues of an attached process's further engines. Each is a client of its own, with a slot of
 * its own: so its rings, lanes and buffers belong to the engine's thread, and the owner takes the
 * buffers back as those of any other slot.
 */
#include <errno.h>

#include "client.h"
#include "port/port.h"

int client_open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	const struct share_client *first = arg;
	struct share_client *client;

	/* The first engine has the only socket: what arrives there crosses to the others. */
	if (first->psock)
		return -EOPNOTSUPP;
	return attach_open_further(first, number, count, queue, &client);
}
