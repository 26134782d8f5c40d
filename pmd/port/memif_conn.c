/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a memif port: how it is made, and how it ends. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "memif/socket.h"
#include "memif_port.h"

#define RETRY_MS 50 /* waiting for a server to appear, or for resources of a server */

/* In the order of enum memif_complaint. */
static const char *const complaints[] = {
	"a program was refused that is not a memif 2.0 client",
	"a client was refused that asks for another interface: give both ends the same id",
	"a client was refused that has another secret: give both ends the same",
	"a client was refused, since another one is connected: give each client a socket of its "
	"own",
	"a client was refused whose memory could shrink: start it without zero-copy=yes",
	"a connection was closed for lack of memory or descriptors",
	"a connection was refused because the other end has fewer rings than this program has "
	"engines: use --engines 1",
	"a connection was closed because the other end broke the protocol: check which program it "
	"is",
};

static_assert(sizeof(complaints) / sizeof(complaints[0]) == MEMIF_COMPLAINTS, "one for each");

void memif_conn_complain(struct memif_port *memif, enum memif_complaint complaint)
{
	const uint32_t bit = UINT32_C(1) << complaint;

	if (memif->complaints & bit)
		return;
	memif->complaints |= bit;
	log_warn("memif socket %s: %s", memif->path, complaints[complaint]);
}

/* Return the reason of a disconnection that the other end did not ask for. */
static enum memif_complaint conn_complaint(const struct memif_port *memif, int rc)
{
	switch (-rc) {
	case EPERM:
		return memif->role->not_permitted;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EBUSY:
	case ENOSPC:
		return MEMIF_NO_ROOM;
	case ENOTSUP:
		return MEMIF_FEW_RINGS;
	default:
		return MEMIF_NO_RULE;
	}
}

int memif_conn_watch(const struct memif_port *memif, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(memif->conn_epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void memif_conn_ignore(const struct memif_port *memif, int fd, bool on)
{
	struct epoll_event event = {.events = on ? 0 : EPOLLIN};

	epoll_ctl(memif->conn_epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void memif_conn_drop(const struct memif_port *memif, int fd)
{
	memif_socket_end(memif->conn_epoll_fd, fd);
}

int memif_conn_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

socklen_t memif_address(const char *path, bool is_abstract, struct sockaddr_un *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (!is_abstract) {
		snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", path);
		return sizeof(*addr);
	}
	snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "%s", path);
	/* Count as the driver does: the bytes of the name, and the zero before it. */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(path));
}

int memif_conn_open(struct memif_port *memif)
{
	const int rc = memif_conn_watch(memif, memif->alarm_fd);

	if (rc != 0)
		return rc;
	return memif->role->open ? memif->role->open(memif) : 0;
}

/* Send the reason of a disconnection. The other end may have gone already. */
void memif_conn_say_goodbye(int fd, const char *reason)
{
	struct memif_message message = {.type = MEMIF_DISCONNECT};

	snprintf(message.disconnect.reason, sizeof(message.disconnect.reason), "%s", reason);
	if (memif_socket_send(fd, &message, sizeof(message)) != 0)
		log_debug("memif: the other end did not get this reason: %s", reason);
}

static void conn_end(struct memif_port *memif, const char *reason)
{
	log_debug("memif socket %s: %s", memif->path, reason);
	memif_pairs_detach(memif);
	memif_conn_say_goodbye(memif->socket_fd, reason);
	memif_conn_drop(memif, memif->socket_fd);
	memif->socket_fd = -1;
	memif->leaves = false;
	memif->role->reset(memif);
}

void memif_conn_hang_up(struct memif_port *memif, const char *reason)
{
	if (memif->role->take_back)
		memif->role->take_back(memif);
	conn_end(memif, reason);
}

/* Close the connection at the end of the program. The other end may still receive the packets sent
 * until now. */
void memif_conn_close(struct memif_port *memif)
{
	if (memif->socket_fd >= 0)
		conn_end(memif, "the program ends");
	if (memif->role->close)
		memif->role->close(memif);
}

int memif_conn_read(int fd, struct memif_message *message, int *passed_fd)
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

/* Begin to use the connection: from now on its doorbells wake us. */
int memif_conn_established(struct memif_port *memif)
{
	int rc;

	memif->had_peer = true;
	memif->refused = false;
	memif->first.port->connections++;
	log_debug("memif socket %s: connected by %u pairs of rings", memif->path,
		  memif_port_pairs(memif));
	rc = memif_pairs_attach(memif);
	if (rc == 0)
		memif_pairs_arm_again(memif);
	return rc;
}

/* Handle all messages on the connection's socket. The protocol limits their number. */
void memif_conn_hear(struct memif_port *memif)
{
	struct memif_message message;
	int fd, rc;

	if (memif->leaves) {
		memif_conn_hang_up(memif, "the other end has gone");
		return;
	}
	while ((rc = memif_conn_read(memif->socket_fd, &message, &fd)) > 0) {
		rc = memif->role->hear(memif, &message, fd);
		if (rc < 0)
			break;
	}
	/* Receive the other end's last packets before the next memif_conn_look ends the connection.
	 */
	if (rc == -ECONNRESET && memif_port_is_connected(memif)) {
		memif->leaves = true;
		memif_port_alarm(memif);
	} else if (rc == -ECONNRESET || rc == -EPIPE) {
		memif_conn_hang_up(memif, "the other end has gone");
	} else if (rc < 0 || memif_port_is_broken(memif)) {
		memif_conn_complain(memif, conn_complaint(memif, rc));
		memif_conn_hang_up(memif, rc == -ENOTSUP ? "Fewer rings than engines"
							 : "the other end does not speak memif as "
							   "we do");
	}
}

static void conn_clear_alarm(const struct memif_port *memif)
{
	uint64_t count;

	if (read(memif->alarm_fd, &count, sizeof(count)) < 0)
		return;
}

void memif_conn_look(void *arg)
{
	struct memif_port *memif = arg;

	conn_clear_alarm(memif);
	memif->role->look(memif);
}

int memif_conn_due_ms(const void *arg)
{
	const struct memif_port *memif = arg;

	return memif->role->retries(memif) ? RETRY_MS : -1;
}
