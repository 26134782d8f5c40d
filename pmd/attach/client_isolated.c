/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of an isolated process. It is a memif client (port/memif_caller.h). The owner makes both
 * ends of the sockets of the memif connection, and passes one end of each to the process over their
 * socket. So the process needs no directory that it may write to, the owner knows whose connection
 * it is, and neither can keep the other from reading.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "base/own.h"
#include "client.h"
#include "client_direct.h"
#include "net/link.h"
#include "port/memif_caller.h"

void client_isolated_answer(struct share_client *client, const struct share_message *message,
			    const int *fds)
{
	struct client_memif *memif = &client->memif;

	memif->asked = false;
	if (message->result != 0 || fds[SHARE_MEMIF_FD_SOCKET] < 0)
		return;
	memif->given = true;
	memcpy(memif->fds, fds, sizeof(memif->fds));
	client_mark_sockets(fds);
}

/* Ask the owner for a memif connection, unless it has been asked. If it cannot take a message now,
 * the port asks again later. */
static void isolated_ask_locked(struct share_client *client)
{
	const struct share_message message = {.type = SHARE_MEMIF, .version = SHARE_VERSION};

	if (!client->memif.asked)
		client->memif.asked = message_send(client->socket, &message, NULL, 0) == 0;
}

void client_isolated_renew_locked(struct share_client *client)
{
	struct client_memif *memif = &client->memif;

	if (memif->given && client_has_sockets(memif->fds)) {
		for (int i = 0; i < SHARE_MEMIF_FDS; i++)
			memif_socket_discard(memif->fds[i]);
	}
	*memif = (struct client_memif){.renewed = true};
	isolated_ask_locked(client);
}

bool client_isolated_was_answered(struct share_client *client)
{
	struct client_memif *memif = &client->memif;
	bool answered;

	if (likely(!__atomic_load_n(&memif->renewed, __ATOMIC_RELAXED)) ||
	    pthread_mutex_trylock(&client->lock) != 0)
		return false;
	answered = memif->given;
	if (answered)
		memif->renewed = false;
	pthread_mutex_unlock(&client->lock);
	return answered;
}

static int isolated_call_locked(struct share_client *client, int *doorbell_fd)
{
	struct client_memif *memif = &client->memif;

	if (client->lost || !own_is(client->socket))
		return -ENETDOWN;
	/* Sockets of the last owner lead nowhere. */
	if (client->away.presence != CLIENT_HERE)
		return -EAGAIN;
	if (!memif->given) {
		isolated_ask_locked(client);
		return -EAGAIN;
	}
	memif->given = false;
	if (!client_has_sockets(memif->fds))
		return -EAGAIN;
	*doorbell_fd = memif->fds[SHARE_MEMIF_FD_DOORBELL];
	return memif->fds[SHARE_MEMIF_FD_SOCKET];
}

/* Return the socket of the connection that the owner has made. */
static int isolated_call(void *arg, int *doorbell_fd)
{
	struct share_client *client = arg;
	int rc;

	client_listen(client);
	/* A thread that asks the owner keeps the lock until the answer comes. */
	if (pthread_mutex_trylock(&client->lock) != 0)
		return -EAGAIN;
	rc = isolated_call_locked(client, doorbell_fd);
	pthread_mutex_unlock(&client->lock);
	return rc;
}

static bool isolated_link_up(void *arg)
{
	const struct share_client *client = arg;

	return __atomic_load_n(&client->link_up, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static bool isolated_lost(void *arg)
{
	struct share_client *client = arg;

	client_listen(client);
	return __atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static const struct memif_caller isolated_caller = {
	.call = isolated_call,
	.link_up = isolated_link_up,
	.lost = isolated_lost,
};

int share_isolate(struct link *link, const char *socket_path, int report_fd,
		  struct share_facts *facts)
{
	struct share_message message;
	struct share_client *client;
	int fds[SHARE_FDS];
	int rc;

	/* Register before EAL starts (for telemetry), because EAL's plugins fill DPDK's table of
	 * operations. */
	rc = client_register_ops();
	if (rc == 0)
		rc = attach_open(socket_path, 0, report_fd, 1, &client, &message, fds);
	if (rc != 0)
		return attach_error(socket_path, rc);
	attach_learn(client, &message, facts);
	/* Offer only this port, because a program names the socket of the port that it wants. */
	facts->ports = 1;
	client->addresses = message.addresses;
	client->link_up = message.link_up;
	client->port = &link->port;
	link_init_remote(link, &client_link_remote, client, &message.addresses);
	rc = memif_prepare_caller(&link->port, &isolated_caller, client, message.welcome.mac,
				  message.welcome.mtu_bytes);
	if (rc == 0)
		rc = client_direct_prepare(client, link);
	if (rc != 0) {
		port_destroy(&link->port);
		attach_end(client);
		return attach_error(socket_path, rc);
	}
	link->port.make_pool = client_make_private_pool;
	link->port.passed_on = true;
	link->port.tsc_hz = message.welcome.tsc_hz;
	link->port.own_qpn_first = facts->qpn_first;
	link->port.own_qpn_count = facts->qpn_count;
	/* The answer will be there when the port is opened. No other thread uses the client yet. */
	isolated_ask_locked(client);
	return 0;
}
