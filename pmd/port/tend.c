/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread sleeps until there is something to see of the connection, and stops the engine to
 * look. */
#include "port/tend.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/own.h"
#include "eal/privilege.h"

struct tending {
	struct port *port;
	const struct tend_ops *ops;
	void *user;
};

static void *tending_run(void *arg)
{
	const struct tending *tending = arg;
	struct pollfd fd = {.fd = port_tend_fd(tending->port), .events = POLLIN};
	int ms;

	for (;;) {
		/* Also where the program has closed what the thread sleeps on. */
		while (tending->ops->ended(tending->user) || !own_is(fd.fd))
			pause();
		tending->ops->enter(tending->user);
		port_tend(tending->port);
		ms = port_tend_ms(tending->port);
		tending->ops->leave(tending->user);
		poll(&fd, 1, ms);
	}
	return NULL;
}

int tend_start(struct port *port, const struct tend_ops *ops, void *user)
{
	struct tending *tending = malloc(sizeof(*tending));
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (!tending)
		return -ENOMEM;
	*tending = (struct tending){.port = port, .ops = ops, .user = user};
	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = privilege_create(&thread, tending_run, tending, port->opens_files);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		free(tending);
		return rc;
	}
	pthread_setname_np(thread, "uroce-wire");
	return 0;
}
