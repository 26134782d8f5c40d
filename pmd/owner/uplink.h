/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's port: what its link is like, and what waits to be sent. */
#ifndef OWNER_UPLINK_H
#define OWNER_UPLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "net/link.h"

struct serve_config;
struct server;
struct settings;

#define SERVER_BURST 32

struct uplink {
	struct link link;
	bool connected; /* the link, when it was last looked at */
	bool up;	/* likewise */
	bool lost;	/* atomic: the port has gone for good */
	uint64_t link_due_ns;
	uint64_t conn_due_ns; /* latest time of the next uplink_conn_run */
	int port_fd;	      /* the port's, as long as it is watched; or -1 */

	uint32_t pending_count; /* packets that the port has not taken yet */
	struct rte_mbuf *pending[SERVER_BURST];
};

/** Return what the names of files begin with that DPDK's memory is in. */
const char *uplink_prefix(const struct settings *settings);

/** Open the settings' port: EAL, the link, and what of them belongs to the owner. 0 or -errno
 * (logged). */
int uplink_open(struct server *server, const struct serve_config *config);

/** The same on a port of the application's. 0 or -errno (logged). */
int uplink_open_guest(struct server *server, const struct serve_config *config);

/** Have the port wake the owner. 0 or -errno. */
int uplink_watch(struct server *server);

/** Have it wake the owner no more: it is the driver's, and stays open. */
void uplink_unwatch(struct server *server);

/** Look at the link's state, and tell processes of it. */
void uplink_check(struct server *server);

/** Handle what has happened to the port's connection. The port must have one. */
void uplink_conn_run(struct server *server);

#endif
