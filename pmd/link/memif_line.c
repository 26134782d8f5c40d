/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of a memif wire: who knocks, who is let in, and who has gone. */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "link/memif.h"
#include "memif.h"
#include "memif/socket.h"
#include "memif_port.h"

#define BACKLOG	 8
#define RETRY_MS 50 /* for a server that is not there yet */

static int line_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int memif_line_open(struct memif_port *memif)
{
	struct sockaddr_un addr;
	socklen_t len;
	int rc = 0;

	memif_place_of(&memif->port->devargs, memif->path, sizeof(memif->path),
		       &memif->is_abstract);
	if (!memif->is_server)
		return 0;
	len = memif_address(memif->path, memif->is_abstract, &addr);
	memif->listen_fd = line_socket();
	if (memif->listen_fd < 0)
		rc = memif->listen_fd;
	else if (bind(memif->listen_fd, (const struct sockaddr *)&addr, len) != 0 ||
		 listen(memif->listen_fd, BACKLOG) != 0)
		rc = -errno;
	if (rc != 0)
		log_error("memif socket %s cannot be made: %s", memif->path, strerror(-rc));
	return rc;
}

/* Either end may be gone already. */
static void line_say_goodbye(int fd, const char *reason)
{
	struct memif_message message = {.type = MEMIF_DISCONNECT};

	snprintf(message.disconnect.reason, sizeof(message.disconnect.reason), "%s", reason);
	if (memif_socket_send(fd, &message, sizeof(message)) != 0)
		log_debug("memif: nobody was told: %s", reason);
}

/* The wire's memory goes; what was in it has been received. */
static void line_hang_up(struct memif_port *memif, const char *reason)
{
	const int wake_fd = memif->is_server ? memif->peer.wake_fd : memif->client.wake_fd;

	log_debug("memif socket %s: %s", memif->path, reason);
	if (wake_fd >= 0)
		epoll_ctl(memif->epoll_fd, EPOLL_CTL_DEL, wake_fd, NULL);
	line_say_goodbye(memif->wire_fd, reason);
	/* It is closed at any time later. */
	shutdown(memif->wire_fd, SHUT_RDWR);
	memif_socket_discard(memif->wire_fd);
	memif->wire_fd = -1;
	memif->leaves = false;
	if (memif->is_server) {
		memif_peer_fini(&memif->peer);
		memif_peer_init_wire(&memif->peer);
	} else {
		memif_client_fini(&memif->client);
	}
}

void memif_line_close(struct memif_port *memif)
{
	if (memif->wire_fd >= 0)
		line_hang_up(memif, "the program ends");
	if (memif->listen_fd >= 0 && !memif->is_abstract)
		unlink(memif->path);
}

/* A message, with its descriptor; 0: there is none; -errno: the other end has gone, or broke a
 * rule. */
static int line_read(int fd, struct memif_message *message, int *passed_fd)
{
	const int len = memif_socket_receive(fd, message, sizeof(*message), passed_fd);

	if (len == -EAGAIN)
		return 0;
	if (len == (int)sizeof(*message))
		return 1;
	memif_socket_discard(*passed_fd);
	if (len == 0)
		return -ECONNRESET;
	return len < 0 ? len : -EPROTO;
}

/* Connected: from here on its eventfd wakes us. An edge each time, for nobody reads it. */
static int line_connected(struct memif_port *memif, int wake_fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	memif->had_peer = true;
	memif->refused = false;
	log_debug("memif socket %s: connected", memif->path);
	return epoll_ctl(memif->epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) == 0 ? 0 : -errno;
}

static int server_hear(struct memif_port *memif, const struct memif_message *message, int fd)
{
	struct memif_message answer;
	int rc;

	rc = memif_peer_take(&memif->peer, message, fd, &answer);
	if (rc == 0)
		rc = memif_socket_send(memif->wire_fd, &answer, sizeof(answer));
	if (rc == 0 && answer.type == MEMIF_CONNECTED)
		rc = line_connected(memif, memif->peer.wake_fd);
	return rc;
}

/* What somebody else wrote, as it can be printed. */
static void printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text != '\0'; text++) {
		if (!isprint((unsigned char)*text))
			*text = '?';
	}
}

static void client_was_refused(struct memif_port *memif, const struct memif_message *message)
{
	char reason[sizeof(message->disconnect.reason)];

	if (memif->had_peer || memif->refused)
		return;
	memif->refused = true;
	memcpy(reason, message->disconnect.reason, sizeof(reason));
	printable(reason, sizeof(reason));
	log_warn("the server of memif socket %s does not let us in: %s", memif->path, reason);
}

static int client_hear(struct memif_port *memif, const struct memif_message *message, int fd)
{
	struct memif_message answer;
	int answer_fd, rc;

	/* Servers pass nothing. */
	memif_socket_discard(fd);
	if (fd >= 0)
		return -EPROTO;
	rc = memif_client_take(&memif->client, message, &answer, &answer_fd);
	if (rc == 1)
		return memif_socket_send_with(memif->wire_fd, &answer, sizeof(answer), answer_fd);
	if (rc == -ECONNRESET && message->type == MEMIF_DISCONNECT)
		client_was_refused(memif, message);
	if (rc == 0 && message->type == MEMIF_CONNECTED)
		rc = line_connected(memif, memif->client.wake_fd);
	return rc;
}

/* All that has come over the wire's socket. */
static void line_hear(struct memif_port *memif)
{
	struct memif_message message;
	int fd, rc;

	if (memif->leaves) {
		line_hang_up(memif, "the other end has gone");
		return;
	}
	while ((rc = line_read(memif->wire_fd, &message, &fd)) > 0) {
		rc = memif->is_server ? server_hear(memif, &message, fd)
				      : client_hear(memif, &message, fd);
		if (rc < 0)
			break;
	}
	/* What it sent before it went is taken before the next look. */
	if (rc == -ECONNRESET && memif_port_is_connected(memif)) {
		memif->leaves = true;
		memif_port_alarm(memif);
	} else if (rc == -ECONNRESET) {
		line_hang_up(memif, "the other end has gone");
	} else if (rc < 0 || memif_port_is_broken(memif)) {
		line_hang_up(memif, "the other end does not speak memif as we do");
	}
}

static void client_call(struct memif_port *memif)
{
	struct sockaddr_un addr;
	const socklen_t len = memif_address(memif->path, memif->is_abstract, &addr);
	const int fd = line_socket();

	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)&addr, len) == 0)
		memif->wire_fd = fd;
	else
		close(fd);
}

/* Where there is no room the one who has been silent for longest goes. */
static void server_keep(struct memif_port *memif, int fd)
{
	int *place = NULL;

	for (int i = 0; i < MEMIF_STRANGERS_MAX && !place; i++) {
		if (memif->strangers[i] < 0)
			place = &memif->strangers[i];
	}
	if (!place) {
		place = &memif->strangers[memif->oldest++ % MEMIF_STRANGERS_MAX];
		memif_socket_discard(*place);
	}
	*place = fd;
}

static void server_accept(struct memif_port *memif)
{
	struct memif_message greeting;
	int fd;

	memif_peer_greet(&greeting, "uroce");
	greeting.hello.max_log2_ring_size = MEMIF_WIRE_LOG2_MAX;
	while ((fd = accept4(memif->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (memif_socket_send(fd, &greeting, sizeof(greeting)) == 0)
			server_keep(memif, fd);
		else
			close(fd);
	}
}

/* Why a client's first message does not make it our peer; NULL: it does. */
static const char *server_objects(const struct memif_port *memif,
				  const struct memif_message *message)
{
	if (message->type != MEMIF_INIT)
		return "Expected INIT";
	if (message->init.id != memif->config.id)
		return "Wrong id";
	if (memif->wire_fd >= 0)
		return "Already connected";
	if (memif->config.secret[0] != '\0' &&
	    memcmp(memif->config.secret, message->init.secret, sizeof(memif->config.secret)) != 0)
		return "Incorrect secret";
	return NULL;
}

static void server_ask(struct memif_port *memif, int *stranger)
{
	struct memif_message message;
	const char *objection;
	int passed_fd;
	const int rc = line_read(*stranger, &message, &passed_fd);

	if (rc == 0)
		return;
	objection = rc < 0 ? "Invalid message" : server_objects(memif, &message);
	if (!objection) {
		memif->wire_fd = *stranger;
		*stranger = -1;
		if (server_hear(memif, &message, passed_fd) != 0)
			line_hang_up(memif, "Wrong version or mode");
		return;
	}
	if (rc > 0) {
		memif_socket_discard(passed_fd);
		line_say_goodbye(*stranger, objection);
	}
	memif_socket_discard(*stranger);
	*stranger = -1;
}

static void line_clear_alarm(const struct memif_port *memif)
{
	uint64_t count;

	if (read(memif->alarm_fd, &count, sizeof(count)) < 0)
		return;
}

void memif_tend(struct port *port)
{
	struct memif_port *memif = port->ops_arg;

	line_clear_alarm(memif);
	if (!memif->is_server && memif->wire_fd < 0)
		client_call(memif);
	if (memif->wire_fd >= 0)
		line_hear(memif);
	if (!memif->is_server)
		return;
	server_accept(memif);
	for (int i = 0; i < MEMIF_STRANGERS_MAX; i++) {
		if (memif->strangers[i] >= 0)
			server_ask(memif, &memif->strangers[i]);
	}
}

/* What a thread does that looks after a wire. */
struct tending {
	struct port *port;
	const struct gate_ops *ops;
	void *user;
};

/* Until there is something to see. Only this thread changes the descriptors, but for the end. */
static void tending_wait(const struct memif_port *memif)
{
	struct pollfd fds[3 + MEMIF_STRANGERS_MAX] = {
		{.fd = memif->alarm_fd, .events = POLLIN},
		{.fd = memif->listen_fd, .events = POLLIN},
		{.fd = memif->wire_fd, .events = POLLIN},
	};

	for (int i = 0; i < MEMIF_STRANGERS_MAX; i++)
		fds[3 + i] = (struct pollfd){.fd = memif->strangers[i], .events = POLLIN};
	poll(fds, 3 + MEMIF_STRANGERS_MAX, !memif->is_server && memif->wire_fd < 0 ? RETRY_MS : -1);
}

static void *tending_run(void *arg)
{
	const struct tending *tending = arg;

	for (;;) {
		while (tending->ops->ended(tending->user))
			pause();
		tending->ops->enter(tending->user);
		memif_tend(tending->port);
		tending->ops->leave(tending->user);
		tending_wait(tending->port->ops_arg);
	}
	return NULL;
}

int memif_tend_always(struct port *port, const struct gate_ops *ops, void *user)
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
	rc = pthread_create(&thread, NULL, tending_run, tending);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		free(tending);
		return -rc;
	}
	pthread_setname_np(thread, "uroce-wire");
	return 0;
}
