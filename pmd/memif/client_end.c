/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a client's memory and the rings in it, and the messages that describe both to the
 * server. */
#include "memif/client_end.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "memif/bell.h"
#include "memif/socket.h"
#include "memory.h"
#include "ring.h"

#define MEMORY_NAME "memif_region"

void memif_client_init(struct memif_client *client, const struct memif_client_config *config)
{
	*client = (struct memif_client){
		.config = *config,
		.memory_fd = -1,
		.server_wake_fd = -1,
		.server_bell_fd = -1,
		.end = {.side = MEMIF_CLIENT,
			.spreads = true,
			.chain_max = MEMIF_CHAIN_MAX,
			.wake_fd = -1,
			.bell_fd = -1,
			.wakes_by_socket = config->socket_to_client,
			.rings_by_socket = config->socket_to_server},
	};
	memif_end_init_meters(&client->end);
}

static size_t ring_bytes(uint32_t size)
{
	return RTE_CACHE_LINE_ROUNDUP(sizeof(struct memif_ring_memory) +
				      size * sizeof(struct memif_descriptor));
}

static void client_lay_out(struct memif_client *client, struct memif_ring *ring, size_t at,
			   uint32_t size, uint32_t first_buffer)
{
	const struct memif_buffers *buffers = &client->end.buffers;

	ring_init(ring, client->memory + at, size, MEMIF_CLIENT);
	ring->memory->cookie = MEMIF_COOKIE;
	for (uint32_t i = 0; i < size; i++)
		ring->memory->descriptors[i] = (struct memif_descriptor){
			.length = buffers->bytes,
			.offset = buffers->offset + (first_buffer + i) * buffers->stride,
		};
}

/* Map a file that cannot shrink: an access to removed pages would kill the server. The seals also
 * keep other processes from growing the file, and from adding a seal that forbids us to free its
 * pages. */
static int client_map(struct memif_client *client)
{
	client->memory_fd = memfd_create(MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (client->memory_fd < 0 || ftruncate(client->memory_fd, (off_t)client->bytes) != 0 ||
	    fcntl(client->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	client->memory =
		mmap(NULL, client->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, client->memory_fd, 0);
	if (client->memory == MAP_FAILED) {
		client->memory = NULL;
		return -errno;
	}
	madvise(client->memory, client->bytes, MADV_DONTFORK);
	memory_populate(client->memory, client->bytes, 0);
	return 0;
}

/* Fill the stock of free buffers: the first buffer is used first. */
static int client_make_stock(struct memif_buffers *buffers, uint32_t size)
{
	buffers->stock = calloc(size, sizeof(*buffers->stock));
	buffers->placed = calloc(size, sizeof(*buffers->placed));
	if (!buffers->stock || !buffers->placed)
		return -ENOMEM;
	for (uint32_t i = 0; i < size; i++)
		buffers->stock[i] = size - 1 - i;
	buffers->stock_first = 0;
	buffers->stock_count = size;
	return 0;
}

/* Make the doorbells. Both ends have the same eventfd open, but each has its own end of a socket.
 */
static int client_make_bells(struct memif_client *client)
{
	struct memif_end *end = &client->end;
	int rc = 0;

	if (end->wakes_by_socket)
		rc = memif_bell_make(&end->wake_fd, &client->server_bell_fd);
	else
		end->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rc == 0 && end->rings_by_socket)
		rc = memif_bell_make(&client->server_wake_fd, &end->bell_fd);
	else if (rc == 0)
		end->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	own_mark(end->wake_fd);
	own_mark(end->bell_fd);
	return rc == 0 && end->wake_fd >= 0 && end->bell_fd >= 0 ? 0 : -ENOMEM;
}

/* Close the server's ends of the doorbells: the server has them now, or never will. */
static void client_leave_bells(struct memif_client *client)
{
	memif_socket_discard(client->server_wake_fd);
	memif_socket_discard(client->server_bell_fd);
	client->server_wake_fd = client->server_bell_fd = -1;
}

static int client_make(struct memif_client *client, uint8_t log2_size)
{
	const uint32_t size = UINT32_C(1) << log2_size;
	struct memif_end *end = &client->end;
	struct memif_buffers *buffers = &end->buffers;
	int rc;

	buffers->bytes = client->config.buffer_bytes;
	buffers->stride = RTE_CACHE_LINE_ROUNDUP(buffers->bytes);
	buffers->offset = (uint32_t)(2 * ring_bytes(size));
	client->bytes = buffers->offset + 2 * (size_t)size * buffers->stride;
	rc = client_map(client);
	if (rc != 0)
		return rc;
	buffers->first = client->memory + buffers->offset;
	client_lay_out(client, &end->tx, 0, size, 0);
	client_lay_out(client, &end->rx, ring_bytes(size), size, size);
	/* Each ring's receiver sets this flag if it wants no notifications. A server that leaves it
	 * clear on its ring gets one each time that we publish packets. */
	end->rx.memory->flags = MEMIF_QUIET;
	rc = client_make_bells(client);
	return rc == 0 ? client_make_stock(buffers, size) : rc;
}

static int client_greeted(struct memif_client *client, const struct memif_message *message,
			  struct memif_message *answer)
{
	const struct memif_hello *hello = &message->hello;
	int rc;

	if (message->type != MEMIF_HELLO || hello->min_version > MEMIF_VERSION ||
	    hello->max_version < MEMIF_VERSION)
		return -EPROTO;
	rc = client_make(client, RTE_MIN(client->config.log2_size, hello->max_log2_ring_size));
	if (rc != 0)
		return rc;
	answer->type = MEMIF_INIT;
	answer->init.version = MEMIF_VERSION;
	answer->init.id = client->config.id;
	answer->init.mode = MEMIF_MODE_ETHERNET;
	memcpy(answer->init.secret, client->config.secret, sizeof(answer->init.secret));
	snprintf(answer->init.name, sizeof(answer->init.name), "uroce");
	return 1;
}

static void client_tell_ring(const struct memif_client *client, const struct memif_ring *ring,
			     uint16_t flags, struct memif_message *answer)
{
	answer->type = MEMIF_ADD_RING;
	answer->add_ring.flags = flags;
	answer->add_ring.offset = (uint32_t)((const uint8_t *)ring->memory - client->memory);
	answer->add_ring.log2_size = (uint8_t)__builtin_ctz(ring->size);
}

/* Make all receive buffers ready. The server sets both of its indices to zero when it connects, so
 * this comes after. */
static void client_post_all(struct memif_client *client)
{
	client->end.buffers.posted = (uint16_t)client->end.rx.size;
	ring_show(&client->end.rx, client->end.buffers.posted);
}

/* Write the next message, after the server has acknowledged the one before. */
static int client_tell(struct memif_client *client, struct memif_message *answer, int *answer_fd)
{
	switch (client->step) {
	case MEMIF_CLIENT_REGION:
		answer->type = MEMIF_ADD_REGION;
		answer->add_region.bytes = client->bytes;
		*answer_fd = client->memory_fd;
		return 1;
	case MEMIF_CLIENT_RING_TO_SERVER:
		client_tell_ring(client, &client->end.tx, MEMIF_RING_TO_SERVER, answer);
		*answer_fd =
			client->end.rings_by_socket ? client->server_wake_fd : client->end.bell_fd;
		return 1;
	case MEMIF_CLIENT_RING_TO_CLIENT:
		client_tell_ring(client, &client->end.rx, 0, answer);
		*answer_fd =
			client->end.wakes_by_socket ? client->server_bell_fd : client->end.wake_fd;
		return 1;
	case MEMIF_CLIENT_CONNECT:
		answer->type = MEMIF_CONNECT;
		snprintf(answer->connect.name, sizeof(answer->connect.name), "uroce");
		return 1;
	default:
		return -EPROTO;
	}
}

static int client_answer(struct memif_client *client, const struct memif_message *message,
			 struct memif_message *answer, int *answer_fd)
{
	int rc;

	if (message->type == MEMIF_DISCONNECT)
		return -ECONNRESET;
	if (client->end.state == MEMIF_STATE_BROKEN)
		return -EPROTO;
	if (client->step == MEMIF_CLIENT_HELLO) {
		rc = client_greeted(client, message, answer);
		client->step = MEMIF_CLIENT_INIT;
		client->end.state = MEMIF_STATE_SETTING_UP;
		return rc;
	}
	if ((client->step == MEMIF_CLIENT_CONNECT || client->step == MEMIF_CLIENT_ACKNOWLEDGED) &&
	    message->type == MEMIF_CONNECTED) {
		client->step = MEMIF_CLIENT_DONE;
		client->end.state = MEMIF_STATE_CONNECTED;
		client_leave_bells(client);
		client_post_all(client);
		return 0;
	}
	/* Each step takes one acknowledgement, so a server can make us handle only a few
	 * messages. */
	if (message->type != MEMIF_ACK || client->step >= MEMIF_CLIENT_ACKNOWLEDGED)
		return -EPROTO;
	client->step++;
	return client->step == MEMIF_CLIENT_ACKNOWLEDGED ? 0
							 : client_tell(client, answer, answer_fd);
}

int memif_client_take(struct memif_client *client, const struct memif_message *message,
		      struct memif_message *answer, int *answer_fd)
{
	int rc;

	*answer = (struct memif_message){.type = MEMIF_ACK};
	*answer_fd = -1;
	rc = client_answer(client, message, answer, answer_fd);
	if (rc < 0 && rc != -ECONNRESET)
		client->end.state = MEMIF_STATE_BROKEN;
	return rc;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void memif_client_take_back(struct memif_client *client)
{
	if (!client->memory)
		return;
	memif_socket_remove(client->memory, client->bytes);
	client->memory = NULL;
}

void memif_client_fini(struct memif_client *client)
{
	const struct memif_client_config config = client->config;

	if (client->memory)
		munmap(client->memory, client->bytes);
	/* Eventfds may be in an epoll set of the server, which can delay close(2). So another
	 * thread closes them. */
	close_fd(client->memory_fd);
	client_leave_bells(client);
	memif_socket_discard(client->end.wake_fd);
	memif_socket_discard(client->end.bell_fd);
	free(client->end.buffers.stock);
	free(client->end.buffers.placed);
	memif_client_init(client, &config);
}
