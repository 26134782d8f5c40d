/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of the interrupt thread for a memif port: frequent while a connection is being made, rare
 * later. */
#include "link/reconnect.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "link/gate.h"
#include "memif.h"

#define ROUND_MAKING_NS	 UINT64_C(500000)
#define ROUND_WAITING_NS UINT64_C(10000000)
#define ROUND_IDLE_NS	 UINT64_C(20000000)
#define MAKING_NS	 UINT64_C(1000000000) /* how long two ends may take over their connection */
#define RETRY_NS	 UINT64_C(50000000)

/* EAL's interrupt thread makes itself a new set of descriptors when a connection adds one to it. */
static bool is_of_interrupts(int fd)
{
	char path[64], line[128];
	bool found = false;
	int watched;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && !found && fgets(line, sizeof(line), info))
		found = sscanf(line, "tfd: %d", &watched) == 1 && watched == gate_fd();
	if (info)
		fclose(info);
	return found;
}

static bool is_sealed(int fd)
{
	const int flags = fcntl(fd, F_GETFD);

	return flags < 0 || flags & FD_CLOEXEC;
}

/* The program's own of the same moment stay as the program made them. */
static void seal_opened(int fd, void *arg)
{
	const struct port *port = arg;

	if (!is_sealed(fd) && memif_owns(&port->devargs, fd))
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* What can be nobody else's, new or not: made anew, it mostly gets the number it had. */
static void seal_known(int fd, void *arg)
{
	const struct port *port = arg;

	if (!is_sealed(fd) && (memif_owns_socket(&port->devargs, fd) || is_of_interrupts(fd)))
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void reconnect_seal(struct reconnect *reconnect)
{
	const struct fd_list none = {.count = 0};

	if (reconnect->before.count > 0)
		fd_list_new(&reconnect->before, seal_opened, reconnect->port);
	fd_list_free(&reconnect->before);
	fd_list_new(&none, seal_known, reconnect->port);
}

void reconnect_init(struct reconnect *reconnect, struct port *port)
{
	*reconnect = (struct reconnect){.port = port, .probe_fd = -1};
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

static void reconnect_ask(struct reconnect *reconnect, uint64_t now_ns)
{
	struct port *port = reconnect->port;

	if (now_ns < reconnect->retry_at_ns)
		return;
	reconnect->retry_at_ns = now_ns + RETRY_NS;
	/* A driver that waits for its server's answer is left to wait. */
	if (port->started && memif_has_connection(&port->devargs))
		return;
	if (port->started) {
		port->started = false;
		rte_eth_dev_stop(port->id);
	}
	reconnect->probe_fd = memif_probe(&port->devargs);
	if (reconnect->probe_fd >= 0)
		reconnect->making_until_ns = now_ns + MAKING_NS;
}

/* A client's driver tries once, when the port starts, and for as long as it takes: so the port
 * starts when the server is known to be awake. */
static void reconnect_hear(struct reconnect *reconnect, uint64_t now_ns)
{
	const int answer = memif_probe_answer(reconnect->probe_fd);

	if (answer == 0)
		return;
	close(reconnect->probe_fd);
	reconnect->probe_fd = -1;
	if (answer > 0 && port_start(reconnect->port) == 0)
		reconnect->making_until_ns = now_ns + MAKING_NS;
}

static void reconnect_retry(struct reconnect *reconnect, uint64_t now_ns)
{
	if (!reconnect->port->is_client)
		return;
	if (reconnect->probe_fd < 0)
		reconnect_ask(reconnect, now_ns);
	else
		reconnect_hear(reconnect, now_ns);
}

uint64_t reconnect_round_end(struct reconnect *reconnect, uint64_t now_ns)
{
	const bool connected = port_connected(reconnect->port);

	if (!connected)
		reconnect_retry(reconnect, now_ns);
	/* A round that begins and ends with the same connection opens nothing. */
	if (reconnect->before.count > 0 || !connected)
		reconnect_seal(reconnect);
	if (connected)
		return ROUND_IDLE_NS;
	return now_ns < reconnect->making_until_ns ? ROUND_MAKING_NS : ROUND_WAITING_NS;
}
