/* SPDX-License-Identifier: BSD-3-Clause */
/* Untrusted clients that have connected and have no slot yet. */
#ifndef OWNER_PENDING_CLIENT_H
#define OWNER_PENDING_CLIENT_H

struct server;
struct share_message;

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
