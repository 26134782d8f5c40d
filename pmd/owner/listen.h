/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that an owner listens on, and untrusted clients that have no slot yet. */
#ifndef OWNER_LISTEN_H
#define OWNER_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "event.h"
#include "owner/budget.h"
#include "share/user.h"

struct serve_passed;
struct server;
struct share_message;

#define SERVER_PENDING_CLIENTS_MAX	32 /* untrusted clients without a slot */
#define SERVER_PENDING_CLIENTS_USER_MAX 8  /* of these, of one user; the superuser has no limit */

/* A socket that processes connect to. */
struct listener {
	int fd;		   /* or -1 */
	char path[108];	   /* of the file to remove at the end; empty: somebody else does */
	bool is_others;	   /* the file is still the last owner's, which may go on */
	bool paused;	   /* it is not in the epoll set for now (pause.c) */
	uint64_t until_ns; /* paused: at least until then */
};

/* An untrusted client that has connected and not yet said what it wants. */
struct pending_client {
	int fd; /* or -1 */
	user_t user;
	uint32_t number; /* its place in the order of arrival */
	bool paused;
};

struct pending_clients {
	struct listener trusted;
	struct listener isolated; /* for untrusted clients */
	int spare_fd; /* closed when descriptors run out, so that a client can be accepted and told
		       */
	struct pending_client all[SERVER_PENDING_CLIENTS_MAX];
	uint32_t next;	      /* the next one's number */
	struct budget budget; /* time spent on pending clients */
};

struct listen_config {
	const char *path;
	mode_t mode;
	uid_t owner;
	gid_t group;
	struct serve_passed *passed; /* NULL: none */
};

/** The socket is this owner's from now on, and not the last one's any more. 0 or -errno. */
int listen_take(struct listener *listener);

/** Listen at a path, with the passed socket of that path if there is one. Otherwise make the
 * socket, and remove one there that no process listens on. After an error, call listen_close: the
 * listener knows what must be undone. Its descriptor was -1. 0 or -errno. */
int listen_open(struct server *server, const struct listen_config *config, enum server_event event,
		struct listener *listener);

/** Accept a client. Returns its socket, or -errno: no client waits, or the listener is paused. */
int listen_accept(struct server *server, struct listener *listener);

/** Tell a client why its first message is refused: `rc` of receiving it. The caller closes its
 * socket. */
void listen_refuse_hello(struct server *server, int fd, int rc);

void listen_close(struct listener *listener);

/* Untrusted clients that have connected and have no slot yet. */

void pending_client_init(struct server *server);

/** Accept a client at the socket for untrusted programs. */
void pending_client_accept(struct server *server);

/** Read a pending client's first message, and give it a slot or close its socket. */
void pending_client_hello(struct server *server, int fd);

/** Receive a message of an untrusted client, which may pass at most one descriptor, of any kind,
 * with it. Returns as message_receive does; -EBUSY: descriptors that the client passed earlier are
 * still being closed. */
int pending_client_receive(int fd, struct share_message *message, int *passed_fd);

void pending_client_close_all(struct server *server);

#endif
