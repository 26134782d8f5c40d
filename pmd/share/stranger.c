/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket of those who are not trusted, and what they ask over theirs: descriptors that come are
 * looked at before anything is done with them, and not many wait to be heard.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "memif/socket.h"
#include "server.h"
#include "share/message.h"

/* Whoever comes when all are taken has the place of who came first. */
void stranger_accept(struct server *server)
{
	const int fd = accept4(server->isolated_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int *place = &server->strangers[server->stranger_next % SERVER_STRANGERS_MAX];

	if (fd < 0)
		return;
	if (memif_socket_is_stuck() ||
	    server_watch(server, fd, EVENT_STRANGER, (uint32_t)fd) != 0) {
		memif_socket_end(server->epoll_fd, fd);
		return;
	}
	memif_socket_end(server->epoll_fd, *place);
	*place = fd;
	server->stranger_next++;
}

static void stranger_forget(struct server *server, int fd)
{
	for (int i = 0; i < SERVER_STRANGERS_MAX; i++) {
		if (server->strangers[i] == fd)
			server->strangers[i] = -1;
	}
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

/* All that it can want is a slot. */
void stranger_greeting(struct server *server, int fd)
{
	struct share_message message;
	int report_fd;
	int rc = stranger_receive(fd, &message, &report_fd);

	if (rc == -EAGAIN)
		return;
	stranger_forget(server, fd);
	if (rc == 0 && message.type == SHARE_HELLO) {
		rc = slot_begin(server, fd, stranger_shows(report_fd) ? report_fd : -1, true);
		if (rc != 0)
			log_info("an isolated process cannot attach: %s", strerror(-rc));
	} else if (rc != -ECONNRESET) {
		const struct share_message answer = {
			.type = SHARE_WELCOME, .version = SHARE_VERSION, .result = -EPROTO};

		rc = -EPROTO;
		server->totals.refused++;
		message_send(fd, &answer, NULL, 0);
	}
	memif_socket_discard(report_fd);
	if (rc != 0)
		memif_socket_end(server->epoll_fd, fd);
}

void stranger_close_all(struct server *server)
{
	for (int i = 0; i < SERVER_STRANGERS_MAX; i++)
		memif_socket_end(server->epoll_fd, server->strangers[i]);
}
