/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers HTTP requests (GET /metrics) in a thread, which serves some clients at the same time. A
 * client may be any process that the socket's mode admits. So the length of a request and the time
 * of a client are limited, and if all places are taken, a new client takes the place of the oldest
 * one of the user who has most.
 */
#include "scrape.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/monotonic.h"
#include "base/unix_socket.h"
#include "eal/privilege.h"
#include "report/metrics.h"

#define BACKLOG	      16
#define CLIENTS_MAX   32
#define REQUEST_BYTES 4096
#define HEAD_BYTES    256
#define CLIENT_MS     10000 /* for the request, and again for the answer */
#define COLLECT_MS    500   /* a sleeping process looks for requests more often than this */
#define PAUSE_MS      100   /* without new clients, after accept has failed */

/* A client passes these states in this order. */
enum client_state {
	CLIENT_NONE,
	CLIENT_ASKS,  /* its request is not complete */
	CLIENT_WAITS, /* it wants metrics, which are not collected yet */
	CLIENT_HEARS, /* a part of the answer is not sent */
};

/* The body of an answer; clients that ask at the same time share it. */
struct body {
	unsigned int users;
	char *text;
	size_t len;
};

struct client {
	enum client_state state;
	int fd;
	uid_t user;
	uint64_t number; /* counts clients */
	int64_t until_ms;
	char request[REQUEST_BYTES];
	size_t request_len;
	bool qps; /* CLIENT_WAITS: it wants each queue pair */
	char head[HEAD_BYTES];
	size_t head_len;
	struct body *body; /* NULL: none */
	size_t sent;	   /* bytes of the head and the body */
};

static struct {
	bool started;
	int fd, stop_fd;
	char path[108];
	struct report_set *reports;
	pthread_t thread;
	/* The thread's own. */
	struct client clients[CLIENTS_MAX];
	uint64_t count;	      /* of all clients so far */
	int64_t pause_end_ms; /* new clients are not accepted before */
} scrape = {.fd = -1, .stop_fd = -1};

static int64_t now_ms(void)
{
	return (int64_t)(monotonic_ns() / 1000000);
}

static void body_put(struct body *body)
{
	if (!body || --body->users > 0)
		return;
	free(body->text);
	free(body);
}

static void client_end(struct client *client)
{
	close(client->fd);
	body_put(client->body);
	client->body = NULL;
	client->state = CLIENT_NONE;
}

/* ---- answers ---- */

/* Send what is left of the answer, and end the client after the last byte. */
static void client_send(struct client *client)
{
	const size_t body_len = client->body ? client->body->len : 0;

	while (client->sent < client->head_len + body_len) {
		const bool in_head = client->sent < client->head_len;
		const size_t at = in_head ? client->sent : client->sent - client->head_len;
		const char *text = in_head ? client->head : client->body->text;
		const size_t len = in_head ? client->head_len : body_len;
		const ssize_t n =
			send(client->fd, text + at, len - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			break;
		client->sent += (size_t)n;
	}
	client_end(client);
}

/* Begin to answer. The client gets a reference to the body, if there is one. */
static void answer(struct client *client, const char *status, const char *type, struct body *body)
{
	const int len = snprintf(client->head, sizeof(client->head),
				 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: "
				 "%zu\r\nConnection: close\r\n\r\n",
				 status, type, body ? body->len : 0);

	client->head_len = (size_t)len;
	client->body = body;
	if (body)
		body->users++;
	client->sent = 0;
	client->state = CLIENT_HEARS;
	client->until_ms = now_ms() + CLIENT_MS;
	client_send(client);
}

static void answer_error(struct client *client, const char *status)
{
	answer(client, status, "text/plain", NULL);
}

/* Write the metrics into a new text. 0 or -ENOMEM. */
static int collect(bool qps, char **text, size_t *len)
{
	const struct report_filter all = {.device = NULL};
	struct report_devices devices;
	struct report_views views;
	FILE *file;
	int rc;

	*text = NULL;
	rc = report_set_collect(scrape.reports, COLLECT_MS, &views);
	if (rc == 0)
		rc = devices_sort(&devices, &views);
	if (rc != 0)
		return rc;
	file = open_memstream(text, len);
	if (file)
		metrics_write(file, &devices, &all, qps);
	rc = file && fclose(file) == 0 ? 0 : -ENOMEM;
	devices_release(&devices);
	return rc;
}

/* Return a new body with the metrics, or NULL. */
static struct body *body_create(bool qps)
{
	struct body *body = calloc(1, sizeof(*body));

	if (!body)
		return NULL;
	body->users = 1;
	if (collect(qps, &body->text, &body->len) == 0)
		return body;
	body_put(body);
	return NULL;
}

/* Answer all clients that wait for metrics of one kind, which takes the processes' time once. */
static void answer_waiting(bool qps)
{
	struct body *body = NULL;
	bool collected = false;

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &scrape.clients[i];

		if (client->state != CLIENT_WAITS || client->qps != qps)
			continue;
		if (!collected)
			body = body_create(qps);
		collected = true;
		if (body)
			answer(client, "200 OK", METRICS_TYPE, body);
		else
			answer_error(client, "503 Service Unavailable");
	}
	body_put(body);
}

/* ---- requests ---- */

enum scrape_request scrape_parse(const char *line)
{
	char method[16], target[64], version[16];

	if (sscanf(line, "%15s %63s %15s", method, target, version) != 3 ||
	    strncmp(version, "HTTP/1.", 7) != 0)
		return SCRAPE_BAD;
	if (strcmp(method, "GET") != 0)
		return SCRAPE_NOT_ALLOWED;
	if (strcmp(target, "/metrics") == 0)
		return SCRAPE_METRICS;
	return strcmp(target, "/metrics?qp") == 0 ? SCRAPE_METRICS_QP : SCRAPE_NOT_FOUND;
}

static void take_request(struct client *client)
{
	client->request[strcspn(client->request, "\r\n")] = '\0';
	switch (scrape_parse(client->request)) {
	case SCRAPE_METRICS:
	case SCRAPE_METRICS_QP:
		client->qps = scrape_parse(client->request) == SCRAPE_METRICS_QP;
		client->state = CLIENT_WAITS;
		break;
	case SCRAPE_NOT_FOUND:
		answer_error(client, "404 Not Found");
		break;
	case SCRAPE_NOT_ALLOWED:
		answer_error(client, "405 Method Not Allowed");
		break;
	case SCRAPE_BAD:
		answer_error(client, "400 Bad Request");
		break;
	}
}

/* Read a part of a request, up to its empty line. End a client that closes, or asks for too much.
 */
static void client_read(struct client *client)
{
	const size_t room = REQUEST_BYTES - 1 - client->request_len;
	const ssize_t n =
		recv(client->fd, client->request + client->request_len, room, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		client->request_len += (size_t)n;
		client->request[client->request_len] = '\0';
		if (strstr(client->request, "\r\n\r\n"))
			take_request(client);
		else if (client->request_len == REQUEST_BYTES - 1)
			client_end(client);
		return;
	}
	client_end(client);
}

/* ---- clients ---- */

static unsigned int count_of(uid_t user)
{
	unsigned int count = 0;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		count += scrape.clients[i].state != CLIENT_NONE && scrape.clients[i].user == user;
	return count;
}

/* Return a free place. If there is none, end the oldest client of the user who has most. */
static struct client *free_place(void)
{
	struct client *victim = scrape.clients;
	unsigned int most = 0;

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &scrape.clients[i];
		unsigned int count;

		if (client->state == CLIENT_NONE)
			return client;
		count = count_of(client->user);
		if (count > most || (count == most && client->number < victim->number)) {
			most = count;
			victim = client;
		}
	}
	client_end(victim);
	return victim;
}

static void accept_client(void)
{
	const int fd = accept4(scrape.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);
	struct client *client;

	if (fd < 0) {
		/* Descriptors may have run out: do not spin until one is free. */
		scrape.pause_end_ms = now_ms() + PAUSE_MS;
		return;
	}
	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	client = free_place();
	client->state = CLIENT_ASKS;
	client->fd = fd;
	client->user = peer.uid;
	client->number = scrape.count++;
	client->until_ms = now_ms() + CLIENT_MS;
	client->request_len = 0;
	client_read(client);
}

/* Accept all clients that wait, so that those who ask for metrics share one collection. */
static void accept_clients(struct pollfd *listener)
{
	for (int i = 0; i < BACKLOG && listener->revents != 0; i++) {
		accept_client();
		if (poll(listener, 1, 0) <= 0 || now_ms() < scrape.pause_end_ms)
			break;
	}
}

/* End the clients whose time is over, and fill in what to wait for. Return the time of the wait,
 * or -1. */
static int prepare_wait(struct pollfd *fds)
{
	const int64_t now = now_ms();
	int64_t until_ms = INT64_MAX;

	if (now < scrape.pause_end_ms)
		until_ms = scrape.pause_end_ms;
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &scrape.clients[i];

		fds[i].fd = -1;
		if (client->state == CLIENT_NONE)
			continue;
		if (client->until_ms <= now) {
			client_end(client);
			continue;
		}
		fds[i].fd = client->fd;
		fds[i].events = client->state == CLIENT_ASKS ? POLLIN : POLLOUT;
		until_ms = RTE_MIN(until_ms, client->until_ms);
	}
	return until_ms == INT64_MAX ? -1 : (int)(until_ms - now);
}

static void *scrape_run(void *arg)
{
	struct pollfd fds[CLIENTS_MAX + 2];
	struct pollfd *listener = &fds[CLIENTS_MAX], *stop = &fds[CLIENTS_MAX + 1];
	int wait_ms;

	pthread_setname_np(pthread_self(), "uroced-metrics");
	*stop = (struct pollfd){.fd = scrape.stop_fd, .events = POLLIN};
	for (;;) {
		wait_ms = prepare_wait(fds);
		*listener = (struct pollfd){.fd = now_ms() < scrape.pause_end_ms ? -1 : scrape.fd,
					    .events = POLLIN};
		if (poll(fds, CLIENTS_MAX + 2, wait_ms) < 0)
			continue;
		if (stop->revents != 0)
			break;
		for (size_t i = 0; i < CLIENTS_MAX; i++) {
			if (fds[i].fd < 0 || fds[i].revents == 0)
				continue;
			if (scrape.clients[i].state == CLIENT_ASKS)
				client_read(&scrape.clients[i]);
			else
				client_send(&scrape.clients[i]);
		}
		accept_clients(listener);
		answer_waiting(false);
		answer_waiting(true);
	}
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		if (scrape.clients[i].state != CLIENT_NONE)
			client_end(&scrape.clients[i]);
	}
	return arg;
}

/* ---- the socket ---- */

static int listen_at(const struct scrape_config *config)
{
	const struct unix_socket_config where = {.path = config->path,
						 .type = SOCK_STREAM,
						 .backlog = BACKLOG,
						 .owner = config->owner,
						 .group = config->group,
						 .mode = config->mode};

	scrape.fd = unix_socket_listen(&where);
	if (scrape.fd < 0)
		return scrape.fd;
	snprintf(scrape.path, sizeof(scrape.path), "%s", config->path);
	return 0;
}

/* Start the thread with all signals blocked: the main thread handles them. */
static int start_thread(void)
{
	int rc;

	scrape.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (scrape.stop_fd < 0)
		return -errno;
	rc = privilege_create_same(&scrape.thread, scrape_run, NULL);
	scrape.started = rc == 0;
	return rc;
}

int scrape_start(const struct scrape_config *config)
{
	int rc;

	scrape.reports = config->reports;
	rc = listen_at(config);
	if (rc == 0)
		rc = start_thread();
	if (rc == -EADDRINUSE)
		log_error("metrics: another process answers at %s", config->path);
	else if (rc != 0)
		log_error("metrics: cannot answer at %s: %s", config->path, strerror(-rc));
	if (rc != 0)
		scrape_stop();
	return rc;
}

void scrape_stop(void)
{
	if (scrape.started) {
		eventfd_write(scrape.stop_fd, 1);
		pthread_join(scrape.thread, NULL);
	}
	if (scrape.path[0] != '\0')
		unlink(scrape.path);
	if (scrape.fd >= 0)
		close(scrape.fd);
	if (scrape.stop_fd >= 0)
		close(scrape.stop_fd);
	scrape.started = false;
	scrape.path[0] = '\0';
	scrape.fd = scrape.stop_fd = -1;
}
