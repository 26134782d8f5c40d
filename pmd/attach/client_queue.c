/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues of an attached process's further engines. Each is a client of its own, with a slot of
 * its own: so its rings, direct channels and buffers belong to the engine's thread, and the owner
 * takes the buffers back as those of any other slot.
 */
#include <errno.h>

#include "base/log.h"
#include "client.h"
#include "port/port.h"

/*
 * If the first engine has a packet socket, it receives the packets to its own queue pairs only. So
 * each other engine must have a socket, too; if one cannot have it, all packets to and from other
 * hosts pass through the owner.
 */
static int client_share_sockets(struct share_client *first, const struct share_client *client)
{
	if (!first->psock || client->psock)
		return 0;
	log_info("packets pass through uroced: a further engine has no packet socket");
	return client_decline_psocks(first);
}

int client_open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	struct share_client *first = arg, *client;
	int rc;

	if (first->engines != count)
		return -EOPNOTSUPP;
	rc = attach_open_further(first, number, queue, &client);
	if (rc != 0)
		return rc;
	SLIST_INSERT_HEAD(&first->further, client, link);
	return client_share_sockets(first, client);
}
