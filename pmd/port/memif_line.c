/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a memif wire: how it is made, and how it ends. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "memif/socket.h"
#include "memif_args.h"
#include "memif_port.h"

#define RETRY_MS 50 /* for a server that is not there yet, or what a server has no room for */

/* In the order of enum memif_complaint. */
static const char *const complaints[] = {
	"somebody was refused who does not speak memif 2.0 as a client",
	"a client was refused that asks for another interface: give both ends the same id",
	"a client was refused that has another secret: give both ends the same",
	"a client was refused, since another one is connected: a wire has two ends, so give each "
	"client a socket of its own",
	"a client was refused whose memory could become shorter under us: start it without "
	"zero-copy=yes",
	"a connection was given up for lack of memory or descriptors",
	"a connection was given up, since the other end does not keep to the protocol: look which "
	"program it is",
};

static_assert(sizeof(complaints) / sizeof(complaints[0]) == MEMIF_COMPLAINTS, "one for each");

void memif_line_complain(struct memif_port *memif, enum memif_complaint complaint)
{
	const uint32_t bit = UINT32_C(1) << complaint;

	if (memif->complaints & bit)
		return;
	memif->complaints |= bit;
	log_warn("memif socket %s: %s", memif->path, complaints[complaint]);
}

/* Why a connection ends that is not given up by the other end. */
static enum memif_complaint line_complaint(const struct memif_port *memif, int rc)
{
	switch (-rc) {
	case EPERM:
		return memif->is_server ? MEMIF_UNSEALED : MEMIF_NO_ROOM;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EBUSY:
	case ENOSPC:
		return MEMIF_NO_ROOM;
	default:
		return MEMIF_NO_RULE;
	}
}

int memif_line_watch(const struct memif_port *memif, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(memif->tend_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void memif_line_hush(const struct memif_port *memif, int fd, bool on)
{
	struct epoll_event event = {.events = on ? 0 : EPOLLIN};

	epoll_ctl(memif->tend_fd, EPOLL_CTL_MOD, fd, &event);
}

void memif_line_drop(const struct memif_port *memif, int fd)
{
	memif_socket_end(memif->tend_fd, fd);
}

int memif_line_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int memif_line_open(struct memif_port *memif)
{
	int rc = memif_line_watch(memif, memif->alarm_fd);

	if (rc != 0)
		return rc;
	memif_place_of(&memif->port->devargs, memif->path, sizeof(memif->path),
		       &memif->is_abstract);
	return memif->is_server ? memif_server_open(memif) : 0;
}

/* Either end may be gone already. */
void memif_line_say_goodbye(int fd, const char *reason)
{
	struct memif_message message = {.type = MEMIF_DISCONNECT};

	snprintf(message.disconnect.reason, sizeof(message.disconnect.reason), "%s", reason);
	if (memif_socket_send(fd, &message, sizeof(message)) != 0)
		log_debug("memif: nobody was told: %s", reason);
}

static void line_end(struct memif_port *memif, const char *reason)
{
	const int wake_fd = memif->is_server ? memif->peer.wake_fd : memif->client.wake_fd;

	log_debug("memif socket %s: %s", memif->path, reason);
	if (wake_fd >= 0)
		epoll_ctl(memif->epoll_fd, EPOLL_CTL_DEL, wake_fd, NULL);
	memif_line_say_goodbye(memif->wire_fd, reason);
	memif_line_drop(memif, memif->wire_fd);
	memif->wire_fd = -1;
	memif->leaves = false;
	if (memif->is_server) {
		memif_peer_fini(&memif->peer);
		memif_peer_init_wire(&memif->peer);
	} else {
		memif_client_fini(&memif->client);
	}
}

void memif_line_hang_up(struct memif_port *memif, const char *reason)
{
	if (!memif->is_server)
		memif_client_take_back(&memif->client);
	line_end(memif, reason);
}

/* What was sent until now is there for the other end to take. */
void memif_line_close(struct memif_port *memif)
{
	if (memif->wire_fd >= 0)
		line_end(memif, "the program ends");
	memif_server_close(memif);
}

int memif_line_read(int fd, struct memif_message *message, int *passed_fd)
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
	if (epoll_ctl(memif->epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) != 0)
		return -errno;
	memif_port_arm_again(memif);
	return 0;
}

int memif_line_take(struct memif_port *memif, const struct memif_message *message, int fd)
{
	struct memif_message answer;
	int rc;

	if (message->type == MEMIF_ADD_REGION && fd >= 0 && !memif_socket_is_sealed(fd)) {
		memif_socket_discard(fd);
		return -EPERM;
	}
	own_mark(fd);
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

/* All that has come over the wire's socket: the protocol bounds how many messages that can be. */
static void line_hear(struct memif_port *memif)
{
	struct memif_message message;
	int fd, rc;

	if (memif->leaves) {
		memif_line_hang_up(memif, "the other end has gone");
		return;
	}
	while ((rc = memif_line_read(memif->wire_fd, &message, &fd)) > 0) {
		rc = memif->is_server ? memif_line_take(memif, &message, fd)
				      : client_hear(memif, &message, fd);
		if (rc < 0)
			break;
	}
	/* What it sent before it went is taken before the next look. */
	if (rc == -ECONNRESET && memif_port_is_connected(memif)) {
		memif->leaves = true;
		memif_port_alarm(memif);
	} else if (rc == -ECONNRESET || rc == -EPIPE) {
		memif_line_hang_up(memif, "the other end has gone");
	} else if (rc < 0 || memif_port_is_broken(memif)) {
		memif_line_complain(memif, line_complaint(memif, rc));
		memif_line_hang_up(memif, "the other end does not speak memif as we do");
	}
}

/* A connected socket, or -errno. */
static int client_connect(const struct memif_port *memif)
{
	struct sockaddr_un addr;
	const socklen_t len = memif_address(memif->path, memif->is_abstract, &addr);
	const int fd = memif_line_socket();
	int rc;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, len) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static void client_call(struct memif_port *memif)
{
	int fd;

	/* The last server's connection may not be closed yet. */
	if (memif_socket_is_stuck())
		return;
	fd = memif->caller ? memif->caller->call(memif->caller_arg) : client_connect(memif);
	if (fd < 0)
		return;
	memif->wire_fd = fd;
	if (memif_line_watch(memif, fd) != 0)
		memif_line_hang_up(memif, "No memory");
}

static void line_clear_alarm(const struct memif_port *memif)
{
	uint64_t count;

	if (read(memif->alarm_fd, &count, sizeof(count)) < 0)
		return;
}

void memif_line_look(void *arg)
{
	struct memif_port *memif = arg;

	line_clear_alarm(memif);
	if (!memif->is_server && memif->wire_fd < 0 && !memif->given_up)
		client_call(memif);
	if (memif->wire_fd >= 0)
		line_hear(memif);
	if (memif->is_server)
		memif_server_look(memif);
}

int memif_line_due_ms(const void *arg)
{
	const struct memif_port *memif = arg;
	const bool retries =
		memif->is_server ? memif->pauses : memif->wire_fd < 0 && !memif->given_up;

	return retries ? RETRY_MS : -1;
}
