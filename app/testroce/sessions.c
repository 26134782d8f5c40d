/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: one thread serves all connections in turn, and sleeps while no test is open. */
#include "sessions.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "control_conn.h"
#include "nic.h"
#include "passive.h"

#define CLIENTS_MAX 32
/* Interval between polls of the sockets during tests: each poll costs system calls. */
#define LOOK_NS	     UINT64_C(5000000)
#define IDLE_WAIT_MS 1

struct client {
	int fd; /* -1: free */
	struct passive passive;
};

struct server {
	struct nic *nic;
	int listen_fd;
	struct client clients[CLIENTS_MAX];
	struct client *connected[CLIENTS_MAX]; /* pointers into `clients` */
	unsigned int count;		       /* in `connected` */
	bool had_one;
};

/* Drop a client by its index in `connected`. */
static void server_drop(struct server *server, unsigned int i)
{
	struct client *client = server->connected[i];

	passive_close(&client->passive);
	close(client->fd);
	client->fd = -1;
	server->connected[i] = server->connected[--server->count];
}

static void server_accept(struct server *server)
{
	const int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int one = 1;

	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &server->clients[i];

		if (client->fd >= 0)
			continue;
		client->fd = fd;
		passive_init(&client->passive, server->nic);
		server->connected[server->count++] = client;
		server->had_one = true;
		return;
	}
	close(fd);
}

/* Serve a request of a client, if there is one. Returns false if the client closed the connection
 * or sent an invalid message. */
static bool client_listen(struct client *client)
{
	struct control_message message;
	char peek;
	const ssize_t n = recv(client->fd, &peek, 1, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0 || control_recv(client->fd, &message, client->passive.nic) != 0)
		return false;
	message.text[0] = '\0';
	passive_answer(&client->passive, &message);
	if (message.status != 0)
		fprintf(stderr, "testroce: a client's test: %s\n", message.text);
	return control_send(client->fd, &message, client->passive.nic) == 0;
}

/* Return true if a test has failed on this side. The caller then drops the client, so that its side
 * ends as well. */
static bool client_has_failed(const struct client *client)
{
	if (client->passive.failed == 0)
		return false;
	fprintf(stderr, "testroce: a client's test: %s\n", strerror(-client->passive.failed));
	return true;
}

static void server_look(struct server *server)
{
	server_accept(server);
	/* Walk from the end: server_drop moves the last client into the free place. */
	for (unsigned int i = server->count; i-- > 0;) {
		struct client *client = server->connected[i];

		if (client_has_failed(client) || !client_listen(client))
			server_drop(server, i);
	}
}

static bool server_has_tests(const struct server *server)
{
	for (unsigned int i = 0; i < server->count; i++)
		if (server->connected[i]->passive.open)
			return true;
	return false;
}

/* Sleep for a moment: without a test no queue needs polling. The caller then polls all sockets. */
static void server_wait(struct server *server)
{
	struct pollfd fd = {.fd = server->listen_fd, .events = POLLIN};

	poll(&fd, 1, IDLE_WAIT_MS);
}

static void server_turn(struct server *server)
{
	for (unsigned int i = 0; i < server->count; i++)
		passive_turn(&server->connected[i]->passive);
	nic_turn(server->nic);
}

int sessions_serve(struct nic *nic, const char *where, bool once, const volatile sig_atomic_t *stop,
		   char *error, size_t error_size)
{
	static struct server server;
	uint64_t looked_tsc = 0;

	server.nic = nic;
	for (int i = 0; i < CLIENTS_MAX; i++)
		server.clients[i].fd = -1;
	server.listen_fd = control_listen(where, error, error_size);
	if (server.listen_fd < 0)
		return server.listen_fd;
	printf("testroce: listening at %s\n", where);
	fflush(stdout);
	while (!*stop && !(once && server.had_one && server.count == 0)) {
		const bool idle = !server_has_tests(&server);

		if (idle)
			server_wait(&server);
		if (idle || nic_ns(nic, rte_rdtsc() - looked_tsc) > LOOK_NS) {
			looked_tsc = rte_rdtsc();
			server_look(&server);
		}
		server_turn(&server);
	}
	while (server.count > 0)
		server_drop(&server, 0);
	close(server.listen_fd);
	return 0;
}
