/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of the interrupt thread for a memif port: frequent while a connection is being made, rare
 * later. */
#include "link/reconnect.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memif.h"

#define ROUND_MAKING_NS	 UINT64_C(500000)
#define ROUND_WAITING_NS UINT64_C(10000000)
#define ROUND_IDLE_NS	 UINT64_C(20000000)
#define MAKING_NS	 UINT64_C(1000000000) /* how long two ends may take over their connection */
#define RETRY_NS	 UINT64_C(50000000)

/* The kinds of descriptors that memif opens: a program's own of the same moment are rarely of them.
 */
static void seal_descriptor(int fd, void *arg)
{
	static const char *const kinds[] = {"socket:", "/memfd:", "anon_inode:"};
	char path[64];
	char target[64];
	ssize_t len;

	(void)arg;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return;
	target[len] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strncmp(target, kinds[i], strlen(kinds[i])) == 0)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
}

static bool reconnect_client_waits(const struct port *port)
{
	struct pollfd fd = {.fd = port->listen_fd, .events = POLLIN};

	return port->listen_fd >= 0 && poll(&fd, 1, 0) > 0;
}

void reconnect_round_begin(struct reconnect *reconnect, uint64_t now_ns)
{
	if (port_connected(reconnect->port))
		return;
	fd_list_read(&reconnect->before);
	if (reconnect_client_waits(reconnect->port))
		reconnect->making_until_ns = now_ns + MAKING_NS;
}

/* A client's driver tries once, when the port starts. One that waits for its server's answer is
 * left to wait. */
static void reconnect_retry(struct reconnect *reconnect, uint64_t now_ns)
{
	struct port *port = reconnect->port;

	if (!port->is_client || now_ns < reconnect->retry_at_ns)
		return;
	reconnect->retry_at_ns = now_ns + RETRY_NS;
	if (port->started && memif_has_connection(&port->devargs))
		return;
	if (port->started) {
		port->started = false;
		rte_eth_dev_stop(port->id);
	}
	if (port_start(port) == 0)
		reconnect->making_until_ns = now_ns + MAKING_NS;
}

uint64_t reconnect_round_end(struct reconnect *reconnect, uint64_t now_ns)
{
	const bool connected = port_connected(reconnect->port);

	if (!connected)
		reconnect_retry(reconnect, now_ns);
	if (reconnect->before.count > 0) {
		fd_list_new(&reconnect->before, seal_descriptor, NULL);
		fd_list_free(&reconnect->before);
	}
	if (connected)
		return ROUND_IDLE_NS;
	return now_ns < reconnect->making_until_ns ? ROUND_MAKING_NS : ROUND_WAITING_NS;
}
