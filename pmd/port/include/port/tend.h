/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that looks after a port's connection: waiting for a server, losing a peer, meeting the
 * next. */
#ifndef PORT_TEND_H
#define PORT_TEND_H

#include "port/port.h"

/* Functions of the engine that the port belongs to. The thread calls them. */
struct tend_ops {
	/* Stop the engine; take in what the port still holds. */
	void (*enter)(void *user);
	/* Look at what has changed, and start the engine again. */
	void (*leave)(void *user);
	/* Return true if the process is ending: the thread must never come back. */
	bool (*ended)(void *user);
};

/** Look after the connection of a port that port_tends from here on, between `enter` and `leave`.
 * Not MT-safe. 0 or -errno. */
int tend_start(struct port *port, const struct tend_ops *ops, void *user);

#endif
