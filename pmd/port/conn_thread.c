/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread sleeps until something happens to the connection. It stops the engines while it
 * handles that. */
#include "port/conn_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/own.h"
#include "eal/privilege.h"

struct conn_thread {
	struct port *port;
	const struct conn_thread_ops *ops;
	void *user;
};

static void *conn_thread_run(void *arg)
{
	const struct conn_thread *conn = arg;
	struct pollfd fd = {.fd = port_conn_fd(conn->port), .events = POLLIN};
	int ms;

	for (;;) {
		/* A program that closes all descriptors also closes the one that the thread sleeps
		 * on. */
		while (conn->ops->ended(conn->user) || !own_is(fd.fd))
			pause();
		conn->ops->enter(conn->user);
		port_conn_run(conn->port);
		ms = port_conn_ms(conn->port);
		conn->ops->leave(conn->user);
		poll(&fd, 1, ms);
	}
	return NULL;
}

int conn_thread_start(struct port *port, const struct conn_thread_ops *ops, void *user)
{
	struct conn_thread *conn = malloc(sizeof(*conn));
	pthread_t thread;
	int rc;

	if (!conn)
		return -ENOMEM;
	*conn = (struct conn_thread){.port = port, .ops = ops, .user = user};
	rc = privilege_create(&thread, conn_thread_run, conn, port->opens_files);
	if (rc != 0) {
		free(conn);
		return rc;
	}
	pthread_setname_np(thread, "uroce-memif");
	return 0;
}
