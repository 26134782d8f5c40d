/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: the calling thread accepts clients, and gives them to the threads that serve. Each
 * thread serves its clients in turn, and sleeps while no test is open. */
#include "main.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "control_conn.h"
#include "nic.h"
#include "passive.h"
#include "plan.h"

/* Interval between polls of the sockets during tests: each poll costs system calls. */
#define LOOK_NS	     UINT64_C(5000000)
#define IDLE_WAIT_MS 1

#define SERVING_CLIENTS_MAX 32 /* of all threads together */

struct serving_client {
	int fd; /* -1: free */
	struct passive passive;
};

struct serving {
	/* only for the thread itself */
	struct nic *nic;
	struct serving_client clients[SERVING_CLIENTS_MAX];
	struct serving_client *connected[SERVING_CLIENTS_MAX]; /* pointers into `clients` */
	uint32_t count;					       /* in `connected` */
	uint64_t looked_tsc;
	const volatile sig_atomic_t *stop; /* atomic: the server ends */

	uint32_t load; /* atomic: clients, with those in `handed` */

	pthread_mutex_t lock;		 /* protects what follows */
	int handed[SERVING_CLIENTS_MAX]; /* sockets of clients that the thread has not seen yet */
	uint32_t handed_count;
};

static void serving_init(struct serving *serving, struct nic *nic,
			 const volatile sig_atomic_t *stop)
{
	memset(serving, 0, sizeof(*serving));
	serving->nic = nic;
	serving->stop = stop;
	pthread_mutex_init(&serving->lock, NULL);
	for (int i = 0; i < SERVING_CLIENTS_MAX; i++)
		serving->clients[i].fd = -1;
}

/* Give the thread a new client, by its socket. The caller makes sure that all threads together have
 * no more than SERVING_CLIENTS_MAX. */
static void serving_hand(struct serving *serving, int fd)
{
	__atomic_fetch_add(&serving->load, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&serving->lock);
	serving->handed[serving->handed_count++] = fd;
	pthread_mutex_unlock(&serving->lock);
}

static uint32_t serving_load(const struct serving *serving)
{
	return __atomic_load_n(&serving->load, __ATOMIC_RELAXED);
}

/* Drop a client by its index in `connected`. */
static void serving_drop(struct serving *serving, uint32_t i)
{
	struct serving_client *client = serving->connected[i];

	passive_close(&client->passive);
	close(client->fd);
	client->fd = -1;
	serving->connected[i] = serving->connected[--serving->count];
	__atomic_fetch_sub(&serving->load, 1, __ATOMIC_RELAXED);
}

static void serving_add(struct serving *serving, int fd)
{
	struct serving_client *client = serving->clients;

	while (client->fd >= 0)
		client++;
	client->fd = fd;
	passive_init(&client->passive, serving->nic);
	serving->connected[serving->count++] = client;
}

static void serving_take_handed(struct serving *serving)
{
	pthread_mutex_lock(&serving->lock);
	while (serving->handed_count > 0)
		serving_add(serving, serving->handed[--serving->handed_count]);
	pthread_mutex_unlock(&serving->lock);
}

/* Serve a request of a client, if there is one. Returns false if the client closed the connection
 * or sent an invalid message. */
static bool client_listen(struct serving_client *client, const volatile sig_atomic_t *stop)
{
	struct control_message message;
	char peek;
	const ssize_t n = recv(client->fd, &peek, 1, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0 || control_recv(client->fd, &message, client->passive.nic, stop) != 0)
		return false;
	message.text[0] = '\0';
	passive_answer(&client->passive, &message);
	if (message.status != 0)
		fprintf(stderr, "testroce: a client's test: %s\n", message.text);
	return control_send(client->fd, &message, client->passive.nic, stop) == 0;
}

/* Return true if a test has failed on this side. The caller then drops the client, so that its side
 * ends as well. */
static bool client_has_failed(const struct serving_client *client)
{
	if (client->passive.failed == 0)
		return false;
	fprintf(stderr, "testroce: a client's test: %s\n", strerror(-client->passive.failed));
	return true;
}

static void serving_look(struct serving *serving)
{
	serving_take_handed(serving);
	/* Walk from the end: serving_drop moves the last client into the free place. */
	for (uint32_t i = serving->count; i-- > 0;) {
		struct serving_client *client = serving->connected[i];

		if (client_has_failed(client) || !client_listen(client, serving->stop))
			serving_drop(serving, i);
	}
}

static bool serving_has_tests(const struct serving *serving)
{
	for (uint32_t i = 0; i < serving->count; i++)
		if (serving->connected[i]->passive.open)
			return true;
	return false;
}

/*
 * Serve all clients once. Without a test no queue needs polling: sleep for a moment, or until
 * `wait_fd` is readable (-1: none), and poll all sockets afterwards. Return true if the sockets
 * were looked at, which happens from time to time.
 */
static bool serving_poll(struct serving *serving, int wait_fd)
{
	struct pollfd fd = {.fd = wait_fd, .events = POLLIN};
	const bool idle = !serving_has_tests(serving);
	bool looks = idle;

	if (idle)
		poll(&fd, 1, IDLE_WAIT_MS);
	else
		looks = nic_ns(serving->nic, rte_rdtsc() - serving->looked_tsc) > LOOK_NS;
	if (looks) {
		serving->looked_tsc = rte_rdtsc();
		serving_look(serving);
	}
	for (uint32_t i = 0; i < serving->count; i++)
		passive_poll(&serving->connected[i]->passive);
	nic_poll(serving->nic);
	return looks;
}

/* Drop all clients. */
static void serving_end(struct serving *serving)
{
	serving_take_handed(serving);
	while (serving->count > 0)
		serving_drop(serving, 0);
}

/* The connections of one active side, one for each of its threads. */
static_assert(PLAN_THREADS_MAX <= SERVING_CLIENTS_MAX, "no server could serve so many threads");

#define CLIENTS_REFUSED "the server has %d connections already"

struct server_thread {
	struct nic_thread thread; /* unused by thread 0, the calling one */
	const bool *ended;
	struct serving serving;
};

struct server {
	int listen_fd;
	struct server_thread *threads;
	uint32_t count; /* of threads */
	bool ended;	/* atomic */
	bool had_one;
};

static void server_thread_run(void *arg)
{
	struct server_thread *thread = arg;

	while (!__atomic_load_n(thread->ended, __ATOMIC_RELAXED))
		serving_poll(&thread->serving, -1);
	serving_end(&thread->serving);
}

static uint32_t server_load(const struct server *server)
{
	uint32_t load = 0;

	for (uint32_t i = 0; i < server->count; i++)
		load += serving_load(&server->threads[i].serving);
	return load;
}

/* Return the first of the threads with the fewest clients. So the connections of an active side
 * with as many threads go to one thread each, in the order of its threads. */
static struct serving *server_choose(const struct server *server)
{
	struct serving *chosen = &server->threads[0].serving;

	for (uint32_t i = 1; i < server->count; i++)
		if (serving_load(&server->threads[i].serving) < serving_load(chosen))
			chosen = &server->threads[i].serving;
	return chosen;
}

static void server_accept(struct server *server)
{
	const int one = 1;
	char reason[64];
	int fd;

	while ((fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (server_load(server) >= SERVING_CLIENTS_MAX) {
			fprintf(stderr, "testroce: " CLIENTS_REFUSED "\n", SERVING_CLIENTS_MAX);
			snprintf(reason, sizeof(reason), CLIENTS_REFUSED, SERVING_CLIENTS_MAX);
			control_refuse(fd, -EBUSY, reason);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		serving_hand(server_choose(server), fd);
		server->had_one = true;
	}
}

static int server_start(struct server *server, struct nic *nic, uint32_t threads,
			const volatile sig_atomic_t *stop)
{
	int rc = 0;

	server->threads = calloc(threads, sizeof(server->threads[0]));
	if (!server->threads)
		return -ENOMEM;
	while (rc == 0 && server->count < threads) {
		struct server_thread *thread = &server->threads[server->count];

		thread->ended = &server->ended;
		if (server->count == 0) {
			nic_thread_pin(0);
			serving_init(&thread->serving, nic, stop);
		} else {
			serving_init(&thread->serving, &thread->thread.nic, stop);
			rc = nic_thread_start(&thread->thread, server->count, nic,
					      server_thread_run, thread);
		}
		server->count += rc == 0;
	}
	return rc;
}

/* Drop all clients, and end the threads. */
static void server_end(struct server *server)
{
	__atomic_store_n(&server->ended, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < server->count; i++) {
		if (i == 0)
			serving_end(&server->threads[i].serving);
		else
			nic_thread_join(&server->threads[i].thread);
	}
	free(server->threads);
	close(server->listen_fd);
}

int server_run(struct nic *nic, const char *where, uint32_t threads, bool once,
	       const volatile sig_atomic_t *stop, char *error, size_t error_size)
{
	struct server server = {.listen_fd = control_listen(where, error, error_size)};
	int rc;

	if (server.listen_fd < 0)
		return server.listen_fd;
	rc = server_start(&server, nic, threads, stop);
	if (rc != 0) {
		snprintf(error, error_size, THREAD_REFUSED, server.count, strerror(-rc));
		server_end(&server);
		return rc;
	}
	printf("testroce: listening at %s\n", where);
	fflush(stdout);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED) &&
	       !(once && server.had_one && server_load(&server) == 0))
		if (serving_poll(&server.threads[0].serving, server.listen_fd))
			server_accept(&server);
	server_end(&server);
	return 0;
}
