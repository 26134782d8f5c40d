/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The isolated process's half. DPDK's memif driver connects to a socket by its name, in a directory
 * where its user may write. Few may where the owner's is, so the name is one of this process's own,
 * which needs no directory, and what the driver is connected to is passed to the owner. It exists
 * in every network namespace, were it an empty one, and the owner knows whose wire it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "base/log.h"
#include "client.h"
#include "config/settings.h"
#include "link/link.h"
#include "share/attach.h"

#define BACKLOG 8

/* What the driver is told; as long as it is in the kernel's sense, with the zero before it. */
static int isolate_listen(struct share_client *client, char *name, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint64_t random;
	socklen_t len;
	int rc;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, size, "uroce-%d-%016llx", getpid(), (unsigned long long)random);
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	client->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (client->listen_fd < 0)
		return -errno;
	rc = bind(client->listen_fd, (const struct sockaddr *)&address, len) == 0 &&
			     listen(client->listen_fd, BACKLOG) == 0
		     ? 0
		     : -errno;
	if (rc != 0)
		close(client->listen_fd);
	return rc;
}

static void isolate_describe_port(const struct settings *settings,
				  const struct share_welcome *welcome, const char *name,
				  struct settings *port)
{
	const uint8_t *mac = welcome->mac;

	*port = *settings;
	port->isolated[0] = '\0';
	port->kernel[0] = '\0';
	port->mtu = welcome->mtu_bytes;
	snprintf(port->port, sizeof(port->port),
		 "net_memif0,role=client,socket=%s,socket-abstract=yes,"
		 "mac=%02x:%02x:%02x:%02x:%02x:%02x",
		 name, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

int share_isolate(const struct settings *settings, int report_fd, struct share_facts *facts,
		  struct settings *port, struct share_client **out)
{
	struct share_message message;
	struct share_client *client;
	int fds[SHARE_FDS];
	char name[64];
	int rc;

	rc = attach_open(settings->isolated, 0, report_fd, &client, &message, fds);
	if (rc != 0)
		return attach_error(settings->isolated, rc);
	rc = isolate_listen(client, name, sizeof(name));
	if (rc != 0) {
		log_error("no socket for a memif wire: %s", strerror(-rc));
		close(client->socket);
		free(client);
		return rc;
	}
	attach_learn(client, &message, facts);
	/* DPDK's memif goes to and fro by one thread a process: link/gate.h. */
	facts->ports = 1;
	client->addresses = message.addresses;
	client->link_up = message.link_up;
	isolate_describe_port(settings, &message.welcome, name, port);
	*out = client;
	return 0;
}

static uint16_t isolated_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct share_client *client = arg;

	return rte_eth_rx_burst(client->port->id, 0, mbufs, n);
}

static uint16_t isolated_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct share_client *client = arg;

	return rte_eth_tx_burst(client->port->id, 0, mbufs, n);
}

static bool isolated_arm(void *arg)
{
	(void)arg;
	return false;
}

static bool isolated_link_up(void *arg)
{
	const struct share_client *client = arg;

	return __atomic_load_n(&client->link_up, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static bool isolated_connected(void *arg)
{
	const struct share_client *client = arg;
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(client->port->id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static bool isolated_lost(void *arg)
{
	struct share_client *client = arg;
	bool lost;

	client_listen(client);
	lost = __atomic_load_n(&client->lost, __ATOMIC_RELAXED);
	/* Nobody would take up another wire. */
	if (lost)
		client->port->is_client = false;
	return lost;
}

static void isolated_close(void *arg)
{
	struct share_client *client = arg;

	client->port->ops = NULL;
	port_close(client->port);
}

static const struct port_ops isolated_port_ops = {
	.rx_burst = isolated_rx_burst,
	.tx_burst = isolated_tx_burst,
	.arm = isolated_arm,
	.link_up = isolated_link_up,
	.connected = isolated_connected,
	.lost = isolated_lost,
	.close = isolated_close,
};

void share_isolate_link(struct share_client *client, struct link *link)
{
	struct port *port = &link->port;

	link->remote = &client_link_remote;
	link->remote_arg = client;
	link->addresses = client->addresses;
	client->port = port;
	port->ops = &isolated_port_ops;
	port->ops_arg = client;
}

/* Nobody else's: the name can be seen. */
static bool is_own(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == getpid();
}

void share_isolate_pass(struct share_client *client)
{
	const struct share_message message = {.type = SHARE_WIRE, .version = SHARE_VERSION};
	int fd;

	while ((fd = accept4(client->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		/* Where it cannot be passed, the driver sees its end, and tries again. */
		if (is_own(fd) && message_send(client->socket, &message, &fd, 1) != 0)
			log_debug("a memif wire was not passed on");
		close(fd);
	}
}
