/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket of those who are not trusted, and what they ask over theirs: descriptors that come are
 * looked at before anything is done with them, and not many wait to be heard.
 */
#include "stranger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "event.h"
#include "listen.h"
#include "memif/socket.h"
#include "rest.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"

void stranger_init(struct server *server)
{
	for (int i = 0; i < SERVER_STRANGERS_MAX; i++)
		server->newcomers.strangers[i].fd = -1;
}

/* Whichever of the two came first; NULL is none. */
static struct stranger *older(struct stranger *a, struct stranger *b)
{
	return a && (int32_t)(a->number - b->number) < 0 ? a : b;
}

/* Return a place for a new client. A user has a limited number of places. If all are taken, the new
 * client gets the place of the one that came first. */
static struct stranger *stranger_place(struct server *server, user_t user)
{
	struct stranger *first = NULL, *own = NULL, *place = NULL;
	uint32_t count = 0;

	for (int i = 0; i < SERVER_STRANGERS_MAX; i++) {
		struct stranger *stranger = &server->newcomers.strangers[i];

		if (stranger->fd < 0) {
			place = stranger;
			continue;
		}
		first = older(first, stranger);
		if (stranger->user == user) {
			own = older(own, stranger);
			count++;
		}
	}
	if (user_is_limited(user) && count >= SERVER_STRANGERS_USER_MAX)
		return own;
	return place ? place : first;
}

static void stranger_end(struct server *server, struct stranger *stranger)
{
	rest_forget_stranger(server, stranger);
	memif_socket_charge(stranger->user);
	memif_socket_end(server->epoll_fd, stranger->fd);
	memif_socket_charge(USER_TRUSTED);
	stranger->fd = -1;
}

/* Asked before: who is let in has to be closed some time. */
void stranger_accept(struct server *server)
{
	struct stranger *place;
	user_t user;
	int fd;

	if (memif_socket_is_late()) {
		rest_listener(server, &server->newcomers.isolated);
		return;
	}
	fd = listen_accept(server, &server->newcomers.isolated);
	if (fd < 0)
		return;
	user = user_of(fd);
	place = stranger_place(server, user);
	stranger_end(server, place);
	*place = (struct stranger){.fd = fd, .user = user, .number = server->newcomers.next++};
	if (event_watch(server, fd, EVENT_STRANGER, (uint32_t)fd) != 0)
		stranger_end(server, place);
}

static struct stranger *stranger_find(struct server *server, int fd)
{
	for (int i = 0; i < SERVER_STRANGERS_MAX; i++) {
		if (server->newcomers.strangers[i].fd == fd)
			return &server->newcomers.strangers[i];
	}
	return NULL;
}

int stranger_receive(int fd, struct share_message *message, int *passed_fd)
{
	const int len = memif_socket_receive(fd, message, sizeof(*message), passed_fd);

	if (len < 0)
		return len;
	if (len == 0)
		return -ECONNRESET;
	return len == (int)sizeof(*message) && message->version == SHARE_VERSION ? 0 : -EPROTO;
}

/* Whether it is a report's memory, which is taken away where it was mapped: it cannot become large.
 */
static bool stranger_shows(int fd)
{
	return fd >= 0 && memif_socket_is_sealed(fd) && (fcntl(fd, F_GET_SEALS) & F_SEAL_GROW);
}

/* All that it can want is a slot. 0: it has one, and the socket is the slot's. */
static int stranger_answer(struct server *server, const struct stranger *stranger,
			   const struct share_message *message, int report_fd, int rc)
{
	const struct share_message answer = {
		.type = SHARE_WELCOME, .version = SHARE_VERSION, .result = -EPROTO};

	if (rc == 0 && message->type == SHARE_HELLO) {
		rc = slot_begin(server, stranger->fd, stranger_shows(report_fd) ? report_fd : -1,
				true);
		if (rc != 0)
			log_info("an isolated process cannot attach: %s", strerror(-rc));
		return rc;
	}
	if (rc != -ECONNRESET) {
		server->totals.refused++;
		message_send(stranger->fd, &answer, NULL, 0);
	}
	return -EPROTO;
}

void stranger_greeting(struct server *server, int fd)
{
	struct stranger *stranger = stranger_find(server, fd);
	struct share_message message;
	int report_fd;
	int rc;

	if (!stranger)
		return;
	memif_socket_charge(stranger->user);
	rc = stranger_receive(fd, &message, &report_fd);
	if (rc == -EBUSY)
		rest_stranger(server, stranger);
	if (rc != -EBUSY && rc != -EAGAIN) {
		rc = stranger_answer(server, stranger, &message, report_fd, rc);
		memif_socket_discard(report_fd);
		if (rc == 0)
			stranger->fd = -1;
		else
			stranger_end(server, stranger);
	}
	memif_socket_charge(USER_TRUSTED);
}

void stranger_close_all(struct server *server)
{
	for (int i = 0; i < SERVER_STRANGERS_MAX; i++)
		stranger_end(server, &server->newcomers.strangers[i]);
}
