/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: the calling thread accepts clients, and gives them to the threads that serve. */
#include "sessions.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_conn.h"
#include "lcores.h"
#include "nic_thread.h"
#include "plan.h"
#include "serving.h"

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
			lcores_pin(0);
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

int sessions_serve(struct nic *nic, const char *where, uint32_t threads, bool once,
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
