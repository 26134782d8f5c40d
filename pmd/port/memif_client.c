/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif port's client role: connect to the server, and handle the server's messages. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "memif/socket.h"
#include "memif_port.h"

/* Make another program's text printable. */
static void printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text != '\0'; text++) {
		if (!isprint((unsigned char)*text))
			*text = '?';
	}
}

static void client_was_refused(struct memif_port *memif, const struct memif_message *message)
{
	char reason[sizeof(message->disconnect.reason)];

	if (memif->had_peer || memif->refused)
		return;
	memif->refused = true;
	memcpy(reason, message->disconnect.reason, sizeof(reason));
	printable(reason, sizeof(reason));
	log_warn("the server of memif socket %s refuses us: %s", memif->path, reason);
}

static int client_hear(struct memif_port *memif, const struct memif_message *message, int fd)
{
	struct memif_message answer;
	int answer_fd, rc;

	/* Servers send no descriptors. */
	memif_socket_discard(fd);
	if (fd >= 0)
		return -EPROTO;
	rc = memif_client_take(&memif->client, message, &answer, &answer_fd);
	if (rc == 1)
		return memif_socket_send_with(memif->socket_fd, &answer, sizeof(answer), answer_fd);
	if (rc == -ECONNRESET && message->type == MEMIF_DISCONNECT)
		client_was_refused(memif, message);
	if (rc == 0 && message->type == MEMIF_CONNECTED)
		rc = memif_conn_established(memif);
	return rc;
}

/* Return a connected socket, or -errno. */
static int client_connect(const struct memif_port *memif)
{
	struct sockaddr_un addr;
	const socklen_t len = memif_address(memif->path, memif->is_abstract, &addr);
	const int fd = memif_conn_socket();
	int rc;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, len) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Connect to the server, or ask the caller for connected sockets. An error is not final: `look` is
 * called again (client_retries). */
static void client_call(struct memif_port *memif)
{
	int fd, doorbell_fd = -1;

	/* Do not connect before the previous connection's descriptors are closed. */
	if (memif_socket_is_stuck())
		return;
	fd = memif->caller ? memif->caller->call(memif->caller_arg, &doorbell_fd)
			   : client_connect(memif);
	if (fd < 0)
		return;
	memif_end_take_doorbell(memif->end, doorbell_fd);
	memif->socket_fd = fd;
	if (memif_conn_watch(memif, fd) != 0)
		memif_conn_hang_up(memif, "No memory");
}

static void client_look(struct memif_port *memif)
{
	if (memif->socket_fd < 0 && !memif->given_up)
		client_call(memif);
	if (memif->socket_fd >= 0)
		memif_conn_hear(memif);
}

static bool client_retries(const struct memif_port *memif)
{
	return memif->socket_fd < 0 && !memif->given_up;
}

static void client_take_back(struct memif_port *memif)
{
	memif_client_take_back(&memif->client);
}

static void client_reset(struct memif_port *memif)
{
	memif_client_fini(&memif->client);
}

const struct memif_role memif_client_role = {
	.look = client_look,
	.retries = client_retries,
	.hear = client_hear,
	.take_back = client_take_back,
	.reset = client_reset,
	.not_permitted = MEMIF_NO_ROOM,
};
