/* SPDX-License-Identifier: BSD-3-Clause */
/* The direct memifs of an isolated process, in front of its port to the owner. */
#ifndef CLIENT_DIRECT_H
#define CLIENT_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "direct_peer.h"
#include "port/port.h"

struct link;

struct client_direct {
	/* constant once open */
	struct share_client *client;
	struct link *link;
	const struct port_ops *below; /* the port to the owner */
	void *below_arg;
	int conn_epoll_fd; /* has the descriptors of the connections of all ports */

	/* engine's thread or lock */
	struct direct_peer *peers[SHARE_DIRECTS_MAX];
	uint8_t routes[BLOCKS];	   /* by block of queue pair numbers: 1 + the index of its peer; 0:
				      none */
	struct direct_peer *aimed; /* whose buffers are used for packets; NULL: the owner's */
	bool has_placed;	   /* packets in these buffers have not been pushed */
	uint32_t bursts;	   /* bursts received; each begins at another source of packets */

	/* client->lock */
	uint32_t offer_count;
	struct direct_offer {
		struct share_offer offer;
		int fds[SHARE_MEMIF_FDS];
	} offers[SHARE_DIRECTS_MAX];
};

/** Put direct memifs in front of a prepared port to the owner. Not MT-safe. 0 or -ENOMEM. */
int client_direct_prepare(struct share_client *client, struct link *link);

/** Keep an offer of a direct memif for the engine's thread, and take over its SHARE_MEMIF_FDS
 * descriptors. The caller holds client->lock. */
void client_direct_offer(struct share_client *client, const struct share_offer *offer,
			 const int *fds);

#endif
