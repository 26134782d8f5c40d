/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client tells its server: the memory that it makes, and where in it the rings are. */
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
#include "memif/socket.h"
#include "memory.h"

#define MEMORY_NAME "memif_region"

void memif_client_init(struct memif_client *client, const struct memif_client_config *config)
{
	*client = (struct memif_client){
		.config = *config, .memory_fd = -1, .wake_fd = -1, .bell_fd = -1};
}

static size_t ring_bytes(uint32_t size)
{
	return RTE_CACHE_LINE_ROUNDUP(sizeof(struct memif_ring_memory) +
				      size * sizeof(struct memif_descriptor));
}

static uint32_t client_offset(const struct memif_client *client, uint32_t buffer)
{
	return (uint32_t)(client->buffers_at + (size_t)buffer * client->stride);
}

static void client_lay_out(struct memif_client *client, struct memif_ring *ring, size_t at,
			   uint32_t size, uint32_t first_buffer)
{
	*ring = (struct memif_ring){
		.memory = (struct memif_ring_memory *)(void *)(client->memory + at), .size = size};
	ring->memory->cookie = MEMIF_COOKIE;
	for (uint32_t i = 0; i < size; i++)
		ring->memory->descriptors[i] = (struct memif_descriptor){
			.length = client->config.buffer_bytes,
			.offset = client_offset(client, first_buffer + i),
		};
}

/* A file that stays as long as it is: the server would be killed for what is not there any more.
 * Nor does anybody else make it longer, or forbid that its pages are taken back. */
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
	memory_have(client->memory, client->bytes, 0);
	return 0;
}

static int client_make(struct memif_client *client, uint8_t log2_size)
{
	const uint32_t size = UINT32_C(1) << log2_size;
	int rc;

	client->stride = RTE_CACHE_LINE_ROUNDUP((uint32_t)client->config.buffer_bytes);
	client->buffers_at = 2 * ring_bytes(size);
	client->bytes = client->buffers_at + 2 * (size_t)size * client->stride;
	rc = client_map(client);
	if (rc != 0)
		return rc;
	client_lay_out(client, &client->to_server, 0, size, 0);
	client_lay_out(client, &client->to_client, ring_bytes(size), size, size);
	/* Whoever takes from a ring says so here; a server that says nothing is told of each
	 * packet. */
	client->to_client.memory->flags = MEMIF_QUIET;
	client->stock = calloc(size, sizeof(*client->stock));
	client->placed = calloc(size, sizeof(*client->placed));
	client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	client->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	own_mark(client->wake_fd);
	own_mark(client->bell_fd);
	if (!client->stock || !client->placed || client->wake_fd < 0 || client->bell_fd < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < size; i++)
		client->stock[i] = size - 1 - i;
	client->stock_count = size;
	return 0;
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

/* The server sets both of its indices to zero when it connects: buffers are laid ready after that.
 */
static void client_post_all(struct memif_client *client)
{
	client->posted = (uint16_t)client->to_client.size;
	__atomic_store_n(&client->to_client.memory->head, client->posted, __ATOMIC_RELEASE);
}

/* The next step, once the one before was acknowledged. */
static int client_tell(struct memif_client *client, struct memif_message *answer, int *answer_fd)
{
	switch (client->step) {
	case MEMIF_CLIENT_REGION:
		answer->type = MEMIF_ADD_REGION;
		answer->add_region.bytes = client->bytes;
		*answer_fd = client->memory_fd;
		return 1;
	case MEMIF_CLIENT_RING_TO_SERVER:
		client_tell_ring(client, &client->to_server, MEMIF_RING_TO_SERVER, answer);
		*answer_fd = client->bell_fd;
		return 1;
	case MEMIF_CLIENT_RING_TO_CLIENT:
		client_tell_ring(client, &client->to_client, 0, answer);
		*answer_fd = client->wake_fd;
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
	if (client->step == MEMIF_CLIENT_HELLO) {
		rc = client_greeted(client, message, answer);
		client->step = MEMIF_CLIENT_INIT;
		return rc;
	}
	if ((client->step == MEMIF_CLIENT_CONNECT || client->step == MEMIF_CLIENT_ACKNOWLEDGED) &&
	    message->type == MEMIF_CONNECTED) {
		client->step = MEMIF_CLIENT_CONNECTED;
		client_post_all(client);
		return 0;
	}
	/* Each step is acknowledged once: so a server has us read a few messages, and no more. */
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
		client->step = MEMIF_CLIENT_BROKEN;
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
	/* Eventfds may be in an epoll set of the server's: another thread closes them. */
	close_fd(client->memory_fd);
	memif_socket_discard(client->wake_fd);
	memif_socket_discard(client->bell_fd);
	free(client->stock);
	free(client->placed);
	memif_client_init(client, &config);
}
