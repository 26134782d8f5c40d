/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif port's server role: accept clients, and choose the one to be connected with. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/unix_socket.h"
#include "base/log.h"
#include "base/monotonic.h"
#include "base/own.h"
#include "memif/socket.h"
#include "memif_port.h"

/* The occupant of a server's socket name. */
enum occupant {
	OCCUPANT_NONE,
	OCCUPANT_DEAD, /* refuses connections: left by a killed server, or not a socket at all */
	OCCUPANT_SERVER,
	OCCUPANT_UNKNOWN, /* errno says why it is unknown */
};

/*
 * Find out who has the name. Wait for the server's hello: DPDK 22.11's driver, if it is the
 * server, uses freed memory when a client disconnects before the hello.
 */
static enum occupant memif_ask(int fd, const char *path, bool is_abstract)
{
	struct sockaddr_un addr;
	const socklen_t len = memif_address(path, is_abstract, &addr);
	char hello[128];

	if (connect(fd, (const struct sockaddr *)&addr, len) == 0) {
		if (recv(fd, hello, sizeof(hello), 0) < 0)
			log_debug("memif socket %s: no hello", path);
		return OCCUPANT_SERVER;
	}
	switch (errno) {
	case ENOENT:
		return OCCUPANT_NONE;
	case ECONNREFUSED:
		return OCCUPANT_DEAD;
	case EAGAIN: /* its queue is full */
		return OCCUPANT_SERVER;
	default:
		return OCCUPANT_UNKNOWN;
	}
}

static enum occupant memif_find_occupant(const char *path, bool is_abstract)
{
	const struct timeval timeout = {.tv_sec = 1};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	enum occupant occupant;
	int err;

	if (fd < 0)
		return OCCUPANT_UNKNOWN;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	/* For connect(), which waits while a stopped server's queue is full. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	occupant = memif_ask(fd, path, is_abstract);
	err = errno;
	close(fd);
	errno = err;
	return occupant;
}

/* Remove the socket of a killed server: bind() would fail. */
static int memif_remove_dead(const char *path)
{
	struct stat status;

	if (lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode)) {
		log_error("memif socket %s is an ordinary file: choose another name", path);
		return -EEXIST;
	}
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	log_error("cannot remove the old memif socket %s: %s", path, strerror(errno));
	return -EACCES;
}

static int memif_check_occupant(const char *path, enum occupant occupant)
{
	switch (occupant) {
	case OCCUPANT_NONE:
	case OCCUPANT_DEAD:
		return 0;
	case OCCUPANT_SERVER:
		log_error("another program is the server of memif socket %s: start this one with "
			  "role=client, or choose another socket",
			  path);
		return -EADDRINUSE;
	case OCCUPANT_UNKNOWN:
		break;
	}
	log_error("memif socket %s cannot be used: %s", path,
		  errno == EPROTOTYPE ? "its program does not speak memif" : strerror(errno));
	return -EADDRINUSE;
}

int memif_make_room(const char *path, bool is_abstract)
{
	enum occupant occupant = memif_find_occupant(path, is_abstract);
	int lock = -1, rc;

	/* A server that starts at the same moment has locked the place if its socket does not
	 * listen yet (server_listen). */
	if (occupant == OCCUPANT_DEAD && !is_abstract) {
		lock = dir_lock(path);
		occupant = memif_find_occupant(path, is_abstract);
	}
	rc = memif_check_occupant(path, occupant);
	if (rc == 0 && occupant == OCCUPANT_DEAD && !is_abstract)
		rc = memif_remove_dead(path);
	dir_unlock(lock);
	return rc;
}

/* Clients that wait, and the most that one call of server_accept accepts: the engine waits
 * meanwhile. */
#define BACKLOG		   8
#define CONNECT_TIMEOUT_MS 1000 /* for a connecting client, if another client comes */

static uint64_t server_ms(void)
{
	return monotonic_ns() / 1000000;
}

/* Listen at the socket's name. Remove the file after an error. */
static int server_bind(struct memif_port *memif, int fd)
{
	struct sockaddr_un addr;
	const socklen_t len = memif_address(memif->path, memif->is_abstract, &addr);
	int rc;

	if (bind(fd, (const struct sockaddr *)&addr, len) != 0)
		return -errno;
	if (listen(fd, BACKLOG) == 0)
		return 0;
	rc = -errno;
	if (!memif->is_abstract)
		unlink(memif->path);
	return rc;
}

/* Listen under a lock: until the socket listens, it looks like that of a dead server
 * (memif_make_room). */
static int server_listen(struct memif_port *memif, int fd)
{
	const int lock = memif->is_abstract ? -1 : dir_lock(memif->path);
	const int rc = server_bind(memif, fd);

	dir_unlock(lock);
	return rc;
}

static int server_open(struct memif_port *memif)
{
	int rc = memif_make_room(memif->path, memif->is_abstract);
	int fd;

	if (rc != 0)
		return rc;
	fd = memif_conn_socket();
	rc = fd < 0 ? fd : server_listen(memif, fd);
	if (rc == 0) {
		memif->listen_fd = fd;
		return memif_conn_watch(memif, fd);
	}
	log_error("memif socket %s cannot be made: %s", memif->path, strerror(-rc));
	if (fd >= 0)
		close(fd);
	return rc;
}

static void server_close(struct memif_port *memif)
{
	for (int i = 0; i < MEMIF_PENDING_CLIENTS_MAX; i++) {
		memif_conn_drop(memif, memif->pending_clients[i].fd);
		memif->pending_clients[i].fd = -1;
	}
	if (memif->listen_fd < 0)
		return;
	if (!memif->is_abstract)
		unlink(memif->path);
	/* The waiting clients may have sent descriptors of any kind. */
	memif_conn_drop(memif, memif->listen_fd);
	memif->listen_fd = -1;
}

/* Return a free place, else that of the pending client that came first. */
static struct memif_pending_client *server_place(struct memif_port *memif)
{
	struct memif_pending_client *place = memif->pending_clients;

	for (int i = 0; i < MEMIF_PENDING_CLIENTS_MAX; i++) {
		struct memif_pending_client *pending = &memif->pending_clients[i];

		if (pending->fd < 0)
			return pending;
		if ((int32_t)(pending->number - place->number) < 0)
			place = pending;
	}
	return place;
}

static void server_keep(struct memif_port *memif, int fd)
{
	struct memif_pending_client *place = server_place(memif);

	memif_conn_drop(memif, place->fd);
	*place = (struct memif_pending_client){.fd = fd, .number = memif->pending_next++};
}

/* Pause accepting, or continue. The socket stays readable while a client waits, so it is not
 * watched during a pause. */
static void server_pause(struct memif_port *memif, bool on)
{
	if (memif->pauses == on)
		return;
	memif->pauses = on;
	memif_conn_ignore(memif, memif->listen_fd, on);
}

/*
 * Accept clients. If descriptors are missing, or too many wait to be closed
 * (memif_socket_is_stuck), the clients stay in the backlog, and the server tries again after a
 * pause.
 */
static void server_accept(struct memif_port *memif)
{
	struct memif_message hello;
	bool pauses = memif_socket_is_stuck();

	memif_server_hello(&memif->server, &hello, "uroce");
	for (int i = 0; i < BACKLOG && !pauses; i++) {
		const int fd = accept4(memif->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			pauses = errno != EAGAIN;
			break;
		}
		if (memif_conn_watch(memif, fd) == 0 &&
		    memif_socket_send(fd, &hello, sizeof(hello)) == 0)
			server_keep(memif, fd);
		else
			memif_conn_drop(memif, fd);
		pauses = memif_socket_is_stuck();
	}
	server_pause(memif, pauses);
}

/* Return true if the present client is kept. A client that began to connect and does not go on is
 * not kept. */
static bool server_is_taken(const struct memif_port *memif)
{
	return memif->socket_fd >= 0 && (memif_port_is_connected(memif) ||
					 server_ms() - memif->taken_ms < CONNECT_TIMEOUT_MS);
}

/* Return the reason to refuse a client after its first message; NULL: accept it. */
static const char *server_objects(const struct memif_port *memif,
				  const struct memif_message *message,
				  enum memif_complaint *complaint)
{
	*complaint = MEMIF_ODD;
	if (message->type != MEMIF_INIT)
		return "Expected INIT";
	*complaint = MEMIF_WRONG_ID;
	if (message->init.id != memif->config.id)
		return "Wrong id";
	*complaint = MEMIF_WRONG_SECRET;
	if (memif->config.secret[0] != '\0' &&
	    memcmp(memif->config.secret, message->init.secret, sizeof(memif->config.secret)) != 0)
		return "Incorrect secret";
	*complaint = MEMIF_SECOND;
	return server_is_taken(memif) ? "Already connected" : NULL;
}

/* Handle a message of the present client. */
static int server_hear(struct memif_port *memif, const struct memif_message *message, int fd)
{
	struct memif_message answer;
	int rc;

	if (message->type == MEMIF_ADD_REGION && fd >= 0 && !memif_socket_is_sealed(fd)) {
		memif_socket_discard(fd);
		return -EPERM;
	}
	own_mark(fd);
	rc = memif_server_take(&memif->server, message, fd, &answer);
	if (rc == 0)
		rc = memif_socket_send(memif->socket_fd, &answer, sizeof(answer));
	if (rc == 0 && answer.type == MEMIF_CONNECTED)
		rc = memif_conn_established(memif);
	return rc;
}

static void server_let_in(struct memif_port *memif, int fd, const struct memif_message *message,
			  int passed_fd)
{
	int rc;

	if (memif->socket_fd >= 0)
		memif_conn_hang_up(memif, "Too slow to connect");
	memif->socket_fd = fd;
	memif->taken_ms = server_ms();
	rc = server_hear(memif, message, passed_fd);
	if (rc == 0)
		return;
	/* The client may have ended since it sent the message. */
	if (rc != -EPIPE && rc != -ECONNRESET)
		memif_conn_complain(memif, MEMIF_ODD);
	memif_conn_hang_up(memif, "Wrong version or mode");
}

static void server_ask(struct memif_port *memif, struct memif_pending_client *pending)
{
	struct memif_message message;
	enum memif_complaint complaint = MEMIF_ODD;
	const char *objection;
	int passed_fd;
	const int fd = pending->fd;
	const int rc = memif_conn_read(fd, &message, &passed_fd);

	if (rc == 0)
		return;
	pending->fd = -1;
	objection = rc < 0 ? "Invalid message" : server_objects(memif, &message, &complaint);
	if (!objection) {
		server_let_in(memif, fd, &message, passed_fd);
		return;
	}
	/* A client that only disconnects has tested if there is a server. */
	if (rc != -ECONNRESET)
		memif_conn_complain(memif, complaint);
	if (rc > 0) {
		memif_socket_discard(passed_fd);
		memif_conn_say_goodbye(fd, objection);
	}
	memif_conn_drop(memif, fd);
}

static void server_look(struct memif_port *memif)
{
	if (memif->socket_fd >= 0)
		memif_conn_hear(memif);
	server_accept(memif);
	/* If the present client leaves, memif_conn_look considers the others in its next call. */
	for (int i = 0; i < MEMIF_PENDING_CLIENTS_MAX && !memif->leaves; i++) {
		if (memif->pending_clients[i].fd >= 0)
			server_ask(memif, &memif->pending_clients[i]);
	}
}

static bool server_retries(const struct memif_port *memif)
{
	return memif->pauses;
}

static void server_reset(struct memif_port *memif)
{
	const uint32_t queues = memif->server.queues;

	memif_server_fini(&memif->server);
	memif_server_init(&memif->server, &memif_limits_user);
	memif->server.queues = queues;
}

const struct memif_role memif_server_role = {
	.open = server_open,
	.close = server_close,
	.look = server_look,
	.retries = server_retries,
	.hear = server_hear,
	.reset = server_reset,
	.not_permitted = MEMIF_UNSEALED,
};
