/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that runs a port's connection: it waits for the other end, notices when that has gone,
 * and connects to the next one. */
#ifndef PORT_CONN_THREAD_H
#define PORT_CONN_THREAD_H

#include "port/port.h"

/* Functions of the engine that the port belongs to. The thread calls them. */
struct conn_thread_ops {
	/* Stop the device's engines, and receive the packets that the port still holds. */
	void (*enter)(void *user);
	/* Read the link's new state, and start the engines again. */
	void (*leave)(void *user);
	/* Return true if the process is ending: the thread must never come back. */
	bool (*ended)(void *user);
};

/** Start the thread of a port for which port_has_conn is true. It calls port_conn_run between
 * `enter` and `leave`. Not MT-safe. 0 or -errno. */
int conn_thread_start(struct port *port, const struct conn_thread_ops *ops, void *user);

#endif
