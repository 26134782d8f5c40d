/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that an owner listens on, and untrusted clients that have not said what they want. */
#ifndef OWNER_LISTEN_H
#define OWNER_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "event.h"
#include "owner/budget.h"
#include "share/user.h"

struct server;

#define SERVER_NEWCOMERS_MAX	  32 /* untrusted clients without a slot */
#define SERVER_NEWCOMERS_USER_MAX 8  /* of these, of one user; the superuser has no limit */

/* A socket where processes come. */
struct listener {
	int fd; /* or -1 */
	char path[108];
	bool rests;	   /* it is not watched (rest.c) */
	uint64_t until_ns; /* at least */
};

/* An untrusted client that has connected and not yet said what it wants. */
struct newcomer {
	int fd; /* or -1 */
	user_t user;
	uint32_t number; /* of all who came */
	bool rests;
};

struct newcomers {
	struct listener trusted;
	struct listener isolated; /* where those come who are not trusted */
	int spare_fd; /* given up where there are no descriptors, to tell who comes so */
	struct newcomer all[SERVER_NEWCOMERS_MAX];
	uint32_t next;	      /* the number of the next one that comes */
	struct budget budget; /* what letting them in took */
};

struct listen_config {
	const char *path;
	mode_t mode;
	uid_t owner;
	gid_t group;
};

/** Listen, with what nobody listens on any more taken away. What there is to be undone is noted in
 * the listener, whose descriptor was -1. 0 or -errno. */
int listen_open(struct server *server, const struct listen_config *config, enum server_event event,
		struct listener *listener);

/** Let somebody in. The socket, or -errno: there is nobody, or the listener rests. */
int listen_accept(struct server *server, struct listener *listener);

void listen_close(struct listener *listener);

#endif
