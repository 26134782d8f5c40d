/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif wire that is ours from end to end: the port's bursts, and the life of its connection. */
#ifndef MEMIF_PORT_H
#define MEMIF_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "link/port.h"
#include "memif/client.h"
#include "memif/peer.h"

#define MEMIF_STRANGERS_MAX 8
#define MEMIF_SPARES	    32

struct memif_port {
	/* constant */
	struct port *port;
	bool is_server;
	bool is_abstract;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct memif_client_config config; /* of either role: the interface's number and secret */
	int epoll_fd; /* to sleep on: the wire's eventfd is in it while there is a wire */
	int alarm_fd; /* eventfd: something is wrong with the wire */
	int listen_fd;

	/* engine's thread or lock */
	int wire_fd;			    /* messages of the connection, or -1 */
	int strangers[MEMIF_STRANGERS_MAX]; /* connected, and have not said what they want; or -1 */
	uint32_t oldest;		    /* of them */
	bool refused;			    /* and the user was told so */
	bool had_peer;
	bool leaves;		/* the other end has gone; what it sent may not be received yet */
	struct memif_peer peer; /* of a server */
	struct memif_client client; /* of a client */
	uint32_t spares;	    /* buffers that what comes next is copied to */
	struct rte_mbuf *spare[MEMIF_SPARES];
};

/** Whether the device's arguments are all known here; others are for DPDK's own driver. */
bool memif_port_suits(const struct devargs *devargs);

/** Make the port that memif_prepare has understood. After EAL's start. Not MT-safe. 0 or -errno
 * (logged). */
int memif_port_open(struct port *port);

/** Whether packets get to somebody. Engine's lock. */
bool memif_port_is_connected(const struct memif_port *memif);

/** Whether the other end has broken a rule. Engine's lock. */
bool memif_port_is_broken(const struct memif_port *memif);

/** Have whoever looks after the connection look at it: it is broken. MT-safe. */
void memif_port_alarm(const struct memif_port *memif);

/* memif_line.c */

/** Make the server's socket. 0 or -errno (logged). */
int memif_line_open(struct memif_port *memif);

/** At the end: say goodbye. Engine's lock. */
void memif_line_close(struct memif_port *memif);

#endif
