/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that an owner listens on, their permissions, how clients are accepted or refused, and the
 * first messages of untrusted clients. Descriptors that such a client sends are checked before they
 * are used. Only a few of them may wait until their message is read. */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unix_socket.h"
#include "event.h"
#include "memif/socket.h"
#include "owner/serve.h"
#include "pause.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"

#define BACKLOG	 64
#define PAUSE_NS UINT64_C(50000000) /* pause of a listener when descriptors run out */
#define WARN_NS	 UINT64_C(10000000000)

/* Make the socket's directory if it is missing, but only one level: /run is empty after the
 * system starts. */
static void listen_make_directory(const char *path)
{
	char directory[108];
	char *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return;
	*slash = '\0';
	if (mkdir(directory, 0755) != 0 && errno != EEXIST)
		log_warn("cannot make %s: %s", directory, strerror(errno));
}

/* Take the passed socket that has this address. Returns -1 if there is none. */
static int listen_take_passed(const struct sockaddr_un *address, struct serve_passed *passed,
			      bool *removes)
{
	for (size_t i = 0; passed && i < passed->count; i++) {
		struct sockaddr_un bound = {0};
		socklen_t len = sizeof(bound);
		const int fd = passed->fds[i];

		if (fd < 0 || getsockname(fd, (struct sockaddr *)&bound, &len) != 0 ||
		    strncmp(bound.sun_path, address->sun_path, sizeof(bound.sun_path)) != 0)
			continue;
		passed->fds[i] = -1;
		*removes = passed->removes[i];
		return fd;
	}
	return -1;
}

/* Use a passed socket. The process that made it decides its owner and mode, and removes its file.
 */
static int listen_adopt(int fd, struct listener *listener)
{
	const int flags = fcntl(fd, F_GETFL);

	listener->fd = fd;
	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? -errno : 0;
}

/*
 * A second listen() changes the credentials that clients see (SO_PEERCRED): those of this process,
 * not of the one that made the socket. Clients that have connected already see the old ones.
 */
int listen_take(struct listener *listener)
{
	listener->is_others = false;
	return listener->fd < 0 || listen(listener->fd, BACKLOG) == 0 ? 0 : -errno;
}

/* Make the socket of an address. */
static int listen_make(const struct sockaddr_un *address, const struct listen_config *config,
		       struct listener *listener)
{
	const struct unix_socket_config where = {.path = address->sun_path,
						 .type = SOCK_SEQPACKET,
						 .backlog = BACKLOG,
						 .owner = config->owner,
						 .group = config->group,
						 .mode = config->mode};
	int fd;

	listen_make_directory(config->path);
	fd = unix_socket_listen(&where);
	if (fd < 0)
		return fd;
	listener->fd = fd;
	strcpy(listener->path, address->sun_path);
	return 0;
}

int listen_open(struct server *server, const struct listen_config *config, enum server_event event,
		struct listener *listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	bool removes = false;
	int passed, rc;

	rc = share_socket_path(config->path, server->number, &address);
	if (rc != 0)
		return rc;
	passed = listen_take_passed(&address, config->passed, &removes);
	listener->is_others = removes;
	if (removes)
		strcpy(listener->path, address.sun_path);
	rc = passed >= 0 ? listen_adopt(passed, listener) : listen_make(&address, config, listener);
	return rc == 0 ? event_watch(server, listener->fd, event, 0) : rc;
}

/* Return true if the error says that descriptors or memory ran out. */
static bool is_short(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

/* Open the spare descriptor if it is missing: another thread may have taken the last descriptor
 * while the spare one was closed. */
static void listen_keep_spare(struct server *server)
{
	if (server->pending_clients.spare_fd < 0)
		server->pending_clients.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Tell a process that it cannot attach. If a socket is closed while it has unread messages, the
 * answer is lost, too. So they are read, and no more are accepted. */
static void listen_refuse(int fd, const struct share_message *answer)
{
	shutdown(fd, SHUT_RD);
	message_send(fd, answer, NULL, 0);
	while (recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) > 0)
		;
	close(fd);
}

/* Refuse a program that connects. Without an answer it would wait for ever. */
static void listen_turn_away(struct server *server, const struct listener *listener)
{
	const struct share_message answer = {
		.type = SHARE_WELCOME, .version = SHARE_VERSION, .result = -EMFILE};
	int fd;

	if (server->pending_clients.spare_fd < 0)
		return;
	close(server->pending_clients.spare_fd);
	fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		listen_refuse(fd, &answer);
	server->pending_clients.spare_fd = -1;
	listen_keep_spare(server);
}

int listen_accept(struct server *server, struct listener *listener)
{
	const int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int err = fd < 0 ? errno : 0;

	if (fd >= 0) {
		listen_keep_spare(server);
		return fd;
	}
	if (!is_short(err))
		return -err;
	if (server->clock_ns - listener->until_ns > WARN_NS)
		log_warn("no process can attach just now: %s", strerror(err));
	/* An untrusted client is not told: closing the descriptors that it sends may take long. */
	if (listener == &server->pending_clients.trusted)
		listen_turn_away(server, listener);
	listener->until_ns = server->clock_ns + PAUSE_NS;
	pause_listener(server, listener);
	return -err;
}

void listen_refuse_hello(struct server *server, int fd, int rc)
{
	/* -EMFILE: we have no room for its descriptor, and it may try again. */
	const struct share_message answer = {.type = SHARE_WELCOME,
					     .version = SHARE_VERSION,
					     .result = rc == -EMFILE ? rc : -EPROTO};

	server->totals.refused++;
	message_send(fd, &answer, NULL, 0);
}

void listen_close(struct listener *listener)
{
	if (listener->path[0] != '\0' && !listener->is_others)
		unlink(listener->path);
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
}

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
	if (rc == 0 && message->type == SHARE_HELLO) {
		return slot_begin(server, pending->fd,
				  pending_client_is_report(report_fd) ? report_fd : -1,
				  SLOT_ISOLATED, message);
	}
	if (rc != -ECONNRESET)
		listen_refuse_hello(server, pending->fd, rc);
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
