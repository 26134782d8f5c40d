/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of an isolated process. It is a memif client (port/memif_caller.h). The process makes
 * both ends of the memif connection and passes one of them to the owner over their socket. So the
 * process needs no directory that it may write to, and the owner knows whose connection it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/own.h"
#include "client.h"
#include "client_direct.h"
#include "net/link.h"
#include "port/memif_caller.h"

/* Pass a memif socket to the owner. If the owner cannot take a message now, the port tries again
 * later. */
static int isolated_call(void *arg)
{
	const struct share_message message = {.type = SHARE_MEMIF, .version = SHARE_VERSION};
	const struct share_client *client = arg;
	int ends[2];
	int rc;

	if (__atomic_load_n(&client->lost, __ATOMIC_RELAXED) || !own_is(client->socket))
		return -ENETDOWN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return -errno;
	rc = message_send(client->socket, &message, &ends[1], 1);
	close(ends[1]);
	if (rc == 0)
		return ends[0];
	close(ends[0]);
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

	/* Register before EAL starts, because EAL's plugins fill DPDK's table of operations. */
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
	link_init_remote(link, &client_link_remote, client, &message.addresses);
	rc = memif_prepare_caller(&link->port, &isolated_caller, client, message.welcome.mac,
				  message.welcome.mtu_bytes);
	if (rc == 0)
		rc = client_direct_prepare(client, link);
	link->port.make_pool = client_make_private_pool;
	link->port.tsc_hz = message.welcome.tsc_hz;
	link->port.own_qpn_first = facts->qpn_first;
	link->port.own_qpn_count = facts->qpn_count;
	return rc;
}
