/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of the server: it serves its clients in turn, and sleeps while no test is open. */
#include "serving.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "control_conn.h"
#include "nic.h"

/* Interval between polls of the sockets during tests: each poll costs system calls. */
#define LOOK_NS	     UINT64_C(5000000)
#define IDLE_WAIT_MS 1

void serving_init(struct serving *serving, struct nic *nic, const volatile sig_atomic_t *stop)
{
	memset(serving, 0, sizeof(*serving));
	serving->nic = nic;
	serving->stop = stop;
	pthread_mutex_init(&serving->lock, NULL);
	for (int i = 0; i < SERVING_CLIENTS_MAX; i++)
		serving->clients[i].fd = -1;
}

void serving_hand(struct serving *serving, int fd)
{
	__atomic_fetch_add(&serving->load, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&serving->lock);
	serving->handed[serving->handed_count++] = fd;
	pthread_mutex_unlock(&serving->lock);
}

uint32_t serving_load(const struct serving *serving)
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

/* Without a test no queue needs polling. So sleep, and poll all sockets afterwards. */
bool serving_poll(struct serving *serving, int wait_fd)
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

void serving_end(struct serving *serving)
{
	serving_take_handed(serving);
	while (serving->count > 0)
		serving_drop(serving, 0);
}
