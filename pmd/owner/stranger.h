/* SPDX-License-Identifier: BSD-3-Clause */
/* What untrusted clients ask before they have a slot. */
#ifndef OWNER_STRANGER_H
#define OWNER_STRANGER_H

struct server;
struct share_message;

void stranger_init(struct server *server);

void stranger_accept(struct server *server);

/** Hear what one wants. */
void stranger_greeting(struct server *server, int fd);

/** As message_receive, with one descriptor, which may be anything. */
int stranger_receive(int fd, struct share_message *message, int *passed_fd);

void stranger_close_all(struct server *server);

#endif
