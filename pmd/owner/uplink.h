/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's port: its link's state, and packets that wait to be sent. */
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
	bool connected; /* port_connected, when it was last called */
	bool up;	/* port_link_up, likewise */
	bool lost;	/* atomic: the port has gone for good */
	uint64_t link_due_ns;
	uint64_t conn_due_ns; /* latest time of the next uplink_conn_run */
	int port_fd;	      /* the port's wake_fd while it is in the epoll set; or -1 */

	uint64_t drops;		/* packets that the port took and dropped, as counted */
	uint32_t pending_count; /* packets that the port has not taken yet */
	struct rte_mbuf *pending[SERVER_BURST];
	struct rte_mbuf *held[SERVER_BURST]; /* from the port; the first one must wait (resume.h) */
	uint16_t held_count;
};

/** Prepare the port of the settings, and start EAL if need be. 0 or -errno (logged). */
int uplink_prepare(struct server *server, const struct serve_config *config);

/** Open the port, the kernel interface and captures. 0 or -errno (logged). */
int uplink_open(struct server *server, const struct settings *settings);

/** Open a port of the application instead. 0 or -errno (logged). */
int uplink_open_guest(struct server *server, const struct serve_config *config);

/** Have the port wake the owner. 0 or -errno. */
int uplink_watch(struct server *server);

/** Remove the port's descriptor from the epoll set. The driver owns it; it stays open. */
void uplink_unwatch(struct server *server);

/** Read the link's state, and tell the processes if it has changed. */
void uplink_check(struct server *server);

/** Handle what has happened to the port's connection. The port must have one. */
void uplink_conn_run(struct server *server);

#endif
