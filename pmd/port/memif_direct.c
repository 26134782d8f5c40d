/* SPDX-License-Identifier: BSD-3-Clause */
/* The two roles of a memif port whose sockets were made by a third program: client and server.
 * There is one connection, from the beginning. Either end may be hostile to the other. */
#include "memif/socket.h"
#include "memif_port.h"
#include "port/memif_direct.h"

static int direct_open(struct memif_port *memif)
{
	return memif_conn_watch(memif, memif->socket_fd);
}

static int direct_hello(struct memif_port *memif)
{
	struct memif_message hello;
	const int rc = direct_open(memif);

	if (rc != 0)
		return rc;
	memif_server_hello(&memif->server, &hello, "uroce");
	return memif_socket_send(memif->socket_fd, &hello, sizeof(hello));
}

static void direct_look(struct memif_port *memif)
{
	if (memif->socket_fd >= 0)
		memif_conn_hear(memif);
}

static bool direct_retries(const struct memif_port *memif)
{
	(void)memif;
	return false;
}

static int direct_hear_server(struct memif_port *memif, const struct memif_message *message, int fd)
{
	return memif_client_role.hear(memif, message, fd);
}

static int direct_hear_client(struct memif_port *memif, const struct memif_message *message, int fd)
{
	return memif_server_role.hear(memif, message, fd);
}

static void direct_take_back(struct memif_port *memif)
{
	memif_client_role.take_back(memif);
}

static void direct_reset_client(struct memif_port *memif)
{
	memif_client_role.reset(memif);
}

static void direct_reset_server(struct memif_port *memif)
{
	memif_server_fini(&memif->server);
}

bool memif_direct_waits(const struct port *port)
{
	const struct memif_port *memif = port->ops_arg;

	return memif_end_waits(memif->end);
}

const struct memif_role memif_direct_client_role = {
	.open = direct_open,
	.look = direct_look,
	.retries = direct_retries,
	.hear = direct_hear_server,
	.take_back = direct_take_back,
	.reset = direct_reset_client,
	.not_permitted = MEMIF_NO_RULE,
};

const struct memif_role memif_direct_server_role = {
	.open = direct_hello,
	.look = direct_look,
	.retries = direct_retries,
	.hear = direct_hear_client,
	.reset = direct_reset_server,
	.not_permitted = MEMIF_UNSEALED,
};
