/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket for untrusted clients, and their first messages. Descriptors that a client sends are
 * checked before they are used. Only a few clients may wait until their message is read.
 */
#include "pending_client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "event.h"
#include "listen.h"
#include "memif/socket.h"
#include "pause.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"
#include "slot_begin.h"

void pending_client_init(struct server *server)
{
	for (int i = 0; i < SERVER_PENDING_CLIENTS_MAX; i++)
		server->pending_clients.all[i].fd = -1;
}

/* Return the client that came first. NULL: no client. */
static struct pending_client *older(struct pending_client *a, struct pending_client *b)
{
	return a && (int32_t)(a->number - b->number) < 0 ? a : b;
}

/* Return a place for a new client. A user has a limited number of places. If all are taken, the new
 * client gets the place of the one that came first. */
static struct pending_client *pending_client_place(struct server *server, user_t user)
{
	struct pending_client *first = NULL, *own = NULL, *place = NULL;
	uint32_t count = 0;

	for (int i = 0; i < SERVER_PENDING_CLIENTS_MAX; i++) {
		struct pending_client *pending = &server->pending_clients.all[i];

		if (pending->fd < 0) {
			place = pending;
			continue;
		}
		first = older(first, pending);
		if (pending->user == user) {
			own = older(own, pending);
			count++;
		}
	}
	if (user_is_limited(user) && count >= SERVER_PENDING_CLIENTS_USER_MAX)
		return own;
	return place ? place : first;
}

static void pending_client_end(struct server *server, struct pending_client *pending)
{
	pause_forget_pending_client(server, pending);
	memif_socket_charge(pending->user);
	memif_socket_end(server->epoll_fd, pending->fd);
	memif_socket_charge(USER_TRUSTED);
	pending->fd = -1;
}

/* Accept a client. First check that not too many descriptors wait to be closed, because each
 * accepted client must be closed later. */
void pending_client_accept(struct server *server)
{
	struct pending_client *place;
	user_t user;
	int fd;

	if (memif_socket_is_late()) {
		pause_listener(server, &server->pending_clients.isolated);
		return;
	}
	fd = listen_accept(server, &server->pending_clients.isolated);
	if (fd < 0)
		return;
	user = user_of(fd);
	place = pending_client_place(server, user);
	pending_client_end(server, place);
	*place = (struct pending_client){
		.fd = fd, .user = user, .number = server->pending_clients.next++};
	if (event_watch(server, fd, EVENT_PENDING_CLIENT, (uint32_t)fd) != 0)
		pending_client_end(server, place);
}

static struct pending_client *pending_client_find(struct server *server, int fd)
{
	for (int i = 0; i < SERVER_PENDING_CLIENTS_MAX; i++) {
		if (server->pending_clients.all[i].fd == fd)
			return &server->pending_clients.all[i];
	}
	return NULL;
}

int pending_client_receive(int fd, struct share_message *message, int *passed_fd)
{
	const int len = memif_socket_receive(fd, message, sizeof(*message), passed_fd);

	if (len < 0)
		return len;
	if (len == 0)
		return -ECONNRESET;
	return len == (int)sizeof(*message) && message->version == SHARE_VERSION ? 0 : -EPROTO;
}

/* Return true if the descriptor is memory that can neither shrink nor grow. A report's memory must
 * not grow, because it is also removed where it was mapped. */
static bool pending_client_is_report(int fd)
{
	return fd >= 0 && memif_socket_is_sealed(fd) && (fcntl(fd, F_GET_SEALS) & F_SEAL_GROW);
}

/* Answer a client, which may only ask for a slot. 0: it has one, and the socket is the slot's. */
static int pending_client_answer(struct server *server, const struct pending_client *pending,
				 const struct share_message *message, int report_fd, int rc)
{
	const struct share_message answer = {
		.type = SHARE_WELCOME, .version = SHARE_VERSION, .result = -EPROTO};

	if (rc == 0 && message->type == SHARE_HELLO) {
		return slot_begin(server, pending->fd,
				  pending_client_is_report(report_fd) ? report_fd : -1,
				  SLOT_ISOLATED, 1);
	}
	if (rc != -ECONNRESET) {
		server->totals.refused++;
		message_send(pending->fd, &answer, NULL, 0);
	}
	return -EPROTO;
}

void pending_client_hello(struct server *server, int fd)
{
	struct pending_client *pending = pending_client_find(server, fd);
	struct share_message message;
	int report_fd;
	int rc;

	if (!pending)
		return;
	memif_socket_charge(pending->user);
	rc = pending_client_receive(fd, &message, &report_fd);
	if (rc == -EBUSY)
		pause_pending_client(server, pending);
	if (rc != -EBUSY && rc != -EAGAIN) {
		rc = pending_client_answer(server, pending, &message, report_fd, rc);
		memif_socket_discard(report_fd);
		if (rc == 0)
			pending->fd = -1;
		else
			pending_client_end(server, pending);
	}
	memif_socket_charge(USER_TRUSTED);
}

void pending_client_close_all(struct server *server)
{
	for (int i = 0; i < SERVER_PENDING_CLIENTS_MAX; i++)
		pending_client_end(server, &server->pending_clients.all[i]);
}
