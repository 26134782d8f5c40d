/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket for untrusted clients, and their first messages. Descriptors that a client sends are
 * checked before they are used. Only a few clients may wait until their message is read.
 */
#include "newcomer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "event.h"
#include "listen.h"
#include "memif/socket.h"
#include "pause.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"
#include "slot_begin.h"

void newcomer_init(struct server *server)
{
	for (int i = 0; i < SERVER_NEWCOMERS_MAX; i++)
		server->newcomers.all[i].fd = -1;
}

/* Return the client that came first. NULL: no client. */
static struct newcomer *older(struct newcomer *a, struct newcomer *b)
{
	return a && (int32_t)(a->number - b->number) < 0 ? a : b;
}

/* Return a place for a new client. A user has a limited number of places. If all are taken, the new
 * client gets the place of the one that came first. */
static struct newcomer *newcomer_place(struct server *server, user_t user)
{
	struct newcomer *first = NULL, *own = NULL, *place = NULL;
	uint32_t count = 0;

	for (int i = 0; i < SERVER_NEWCOMERS_MAX; i++) {
		struct newcomer *newcomer = &server->newcomers.all[i];

		if (newcomer->fd < 0) {
			place = newcomer;
			continue;
		}
		first = older(first, newcomer);
		if (newcomer->user == user) {
			own = older(own, newcomer);
			count++;
		}
	}
	if (user_is_limited(user) && count >= SERVER_NEWCOMERS_USER_MAX)
		return own;
	return place ? place : first;
}

static void newcomer_end(struct server *server, struct newcomer *newcomer)
{
	pause_forget_newcomer(server, newcomer);
	memif_socket_charge(newcomer->user);
	memif_socket_end(server->epoll_fd, newcomer->fd);
	memif_socket_charge(USER_TRUSTED);
	newcomer->fd = -1;
}

/* Accept a client. First check that not too many descriptors wait to be closed, because each
 * accepted client must be closed later. */
void newcomer_accept(struct server *server)
{
	struct newcomer *place;
	user_t user;
	int fd;

	if (memif_socket_is_late()) {
		pause_listener(server, &server->newcomers.isolated);
		return;
	}
	fd = listen_accept(server, &server->newcomers.isolated);
	if (fd < 0)
		return;
	user = user_of(fd);
	place = newcomer_place(server, user);
	newcomer_end(server, place);
	*place = (struct newcomer){.fd = fd, .user = user, .number = server->newcomers.next++};
	if (event_watch(server, fd, EVENT_NEWCOMER, (uint32_t)fd) != 0)
		newcomer_end(server, place);
}

static struct newcomer *newcomer_find(struct server *server, int fd)
{
	for (int i = 0; i < SERVER_NEWCOMERS_MAX; i++) {
		if (server->newcomers.all[i].fd == fd)
			return &server->newcomers.all[i];
	}
	return NULL;
}

int newcomer_receive(int fd, struct share_message *message, int *passed_fd)
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
static bool newcomer_is_report(int fd)
{
	return fd >= 0 && memif_socket_is_sealed(fd) && (fcntl(fd, F_GET_SEALS) & F_SEAL_GROW);
}

/* Answer a client, which may only ask for a slot. 0: it has one, and the socket is the slot's. */
static int newcomer_answer(struct server *server, const struct newcomer *newcomer,
			   const struct share_message *message, int report_fd, int rc)
{
	const struct share_message answer = {
		.type = SHARE_WELCOME, .version = SHARE_VERSION, .result = -EPROTO};

	if (rc == 0 && message->type == SHARE_HELLO) {
		rc = slot_begin(server, newcomer->fd,
				newcomer_is_report(report_fd) ? report_fd : -1, SLOT_ISOLATED, 1);
		if (rc != 0)
			log_info("an isolated process cannot attach: %s", strerror(-rc));
		return rc;
	}
	if (rc != -ECONNRESET) {
		server->totals.refused++;
		message_send(newcomer->fd, &answer, NULL, 0);
	}
	return -EPROTO;
}

void newcomer_greeting(struct server *server, int fd)
{
	struct newcomer *newcomer = newcomer_find(server, fd);
	struct share_message message;
	int report_fd;
	int rc;

	if (!newcomer)
		return;
	memif_socket_charge(newcomer->user);
	rc = newcomer_receive(fd, &message, &report_fd);
	if (rc == -EBUSY)
		pause_newcomer(server, newcomer);
	if (rc != -EBUSY && rc != -EAGAIN) {
		rc = newcomer_answer(server, newcomer, &message, report_fd, rc);
		memif_socket_discard(report_fd);
		if (rc == 0)
			newcomer->fd = -1;
		else
			newcomer_end(server, newcomer);
	}
	memif_socket_charge(USER_TRUSTED);
}

void newcomer_close_all(struct server *server)
{
	for (int i = 0; i < SERVER_NEWCOMERS_MAX; i++)
		newcomer_end(server, &server->newcomers.all[i]);
}
