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
#include "memif/socket.h"
#include "ring.h"

#define MEMORY_NAME "memif_region"

static void client_init_end(struct memif_end *end, const struct memif_client_config *config)
{
	*end = (struct memif_end){
		.side = MEMIF_CLIENT,
		.spreads = true,
		.chain_max = MEMIF_CHAIN_MAX,
		.wake_fd = -1,
		.doorbell_fd = -1,
		.wakes_by_socket = config->socket_to_client,
	};
	memif_end_init_meters(end);
}

void memif_client_init(struct memif_client *client, const struct memif_client_config *config)
{
	*client = (struct memif_client){
		.config = *config,
		.memory_fd = -1,
		.pairs = 1,
	};
	client_init_end(&client->end, config);
}

static size_t ring_bytes(uint32_t size)
{
	return RTE_CACHE_LINE_ROUNDUP(sizeof(struct memif_ring_memory) +
				      size * sizeof(struct memif_descriptor));
}

static void client_lay_out(uint8_t *at, const struct memif_buffers *buffers,
			   struct memif_ring *ring, uint32_t size, uint32_t first_buffer)
{
	ring_init(ring, at, size, MEMIF_CLIENT);
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
	madvise(client->memory, client->bytes, MADV_DONTDUMP);
	memory_populate(client->memory, client->bytes, 0);
	return 0;
}

/* Fill the cache of free buffers: the first buffer is used first. */
static int client_make_cache(struct memif_buffers *buffers, uint32_t size)
{
	buffers->cache = calloc(size, sizeof(*buffers->cache));
	buffers->placed = calloc(size, sizeof(*buffers->placed));
	if (!buffers->cache || !buffers->placed)
		return -ENOMEM;
	for (uint32_t i = 0; i < size; i++)
		buffers->cache[i] = size - 1 - i;
	buffers->cache_first = 0;
	buffers->cache_count = size;
	return 0;
}

/* Make the doorbells that are eventfds, which both ends have open. */
static int client_make_doorbells(struct memif_end *end)
{
	if (!end->wakes_by_socket)
		end->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	end->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	own_mark(end->wake_fd);
	own_mark(end->doorbell_fd);
	return end->wake_fd >= 0 && end->doorbell_fd >= 0 ? 0 : -ENOMEM;
}

static uint32_t client_stride(const struct memif_client *client)
{
	return RTE_CACHE_LINE_ROUNDUP(client->config.buffer_bytes);
}

/* Return the bytes of a pair of rings and its buffers. */
static size_t pair_bytes(const struct memif_client *client, uint32_t size)
{
	return 2 * (ring_bytes(size) + (size_t)size * client_stride(client));
}

/* Return how many pairs of rings of this size we may make for a server that tells so many engines.
 */
static uint32_t client_pairs_max(const struct memif_client *client, const struct memif_hello *hello,
				 uint32_t told, uint32_t size)
{
	const uint32_t room = RTE_MIN(UINT32_MAX / pair_bytes(client, size), MEMIF_PAIRS_MAX);

	/* The limits that a uroce announces are for other programs. */
	if (told > 0)
		return room;
	return RTE_MIN(room, RTE_MIN(hello->max_ring_to_client, hello->max_ring_to_server) + 1u);
}

/* Choose the number of pairs. 0; -ENOTSUP: there are not enough for our engines. */
static int client_choose_pairs(struct memif_client *client, const struct memif_hello *hello,
			       uint32_t size)
{
	const uint32_t told = memif_pairs_read_name(hello->name);
	const uint32_t queues = client->config.queues;
	const bool tells = told > 0 && queues > 0;
	const uint32_t pairs = RTE_MAX(queues, 1u) * (tells ? told : 1);

	if (pairs > client_pairs_max(client, hello, told, size))
		return -ENOTSUP;
	client->server_queues = tells ? told : 1;
	client->pairs = pairs;
	client->server_steers = tells;
	return 0;
}

/* Lay out the rings of a pair. All rings come first, then the buffers of each pair. */
static int client_make_end(struct memif_client *client, uint32_t pair, uint32_t size)
{
	struct memif_end *end = memif_client_end(client, pair);
	struct memif_buffers *buffers = &end->buffers;
	uint8_t *rings = client->memory + 2 * ring_bytes(size) * pair;
	int rc;

	buffers->bytes = client->config.buffer_bytes;
	buffers->stride = client_stride(client);
	buffers->offset = (uint32_t)(2 * (ring_bytes(size) * client->pairs +
					  (size_t)size * buffers->stride * pair));
	buffers->first = client->memory + buffers->offset;
	client_lay_out(rings, buffers, &end->tx, size, 0);
	client_lay_out(rings + ring_bytes(size), buffers, &end->rx, size, size);
	/* Each ring's receiver sets this flag if it wants no notifications. A server that leaves it
	 * clear on its ring gets one each time that we publish packets. */
	end->rx.memory->flags = MEMIF_QUIET;
	rc = client_make_doorbells(end);
	return rc == 0 ? client_make_cache(buffers, size) : rc;
}

static void client_set_state(struct memif_client *client, enum memif_state state)
{
	for (uint32_t i = 0; i < client->pairs; i++)
		memif_client_end(client, i)->state = state;
}

/* Make the ends of all pairs but the first. */
static int client_make_more(struct memif_client *client)
{
	if (client->pairs == 1)
		return 0;
	client->more = calloc(client->pairs - 1, sizeof(*client->more));
	if (!client->more) {
		client->pairs = 1;
		return -ENOMEM;
	}
	for (uint32_t i = 1; i < client->pairs; i++)
		client_init_end(memif_client_end(client, i), &client->config);
	return 0;
}

static int client_make(struct memif_client *client, const struct memif_hello *hello)
{
	const uint8_t log2_size = RTE_MIN(client->config.log2_size, hello->max_log2_ring_size);
	const uint32_t size = UINT32_C(1) << log2_size;
	int rc;

	rc = client_choose_pairs(client, hello, size);
	client->bytes = client->pairs * pair_bytes(client, size);
	if (rc == 0)
		rc = client_make_more(client);
	if (rc == 0)
		rc = client_map(client);
	for (uint32_t i = 0; i < client->pairs && rc == 0; i++)
		rc = client_make_end(client, i, size);
	return rc;
}

static int client_take_hello(struct memif_client *client, const struct memif_message *message,
			     struct memif_message *answer)
{
	const struct memif_hello *hello = &message->hello;
	int rc;

	if (message->type != MEMIF_HELLO || hello->min_version > MEMIF_VERSION ||
	    hello->max_version < MEMIF_VERSION)
		return -EPROTO;
	rc = client_make(client, hello);
	if (rc != 0)
		return rc;
	answer->type = MEMIF_INIT;
	answer->init.version = MEMIF_VERSION;
	answer->init.id = client->config.id;
	answer->init.mode = MEMIF_MODE_ETHERNET;
	memcpy(answer->init.secret, client->config.secret, sizeof(answer->init.secret));
	memif_pairs_write_name(answer->init.name, client->config.queues);
	return 1;
}

static void client_tell_ring(const struct memif_client *client, const struct memif_ring *ring,
			     uint16_t flags, struct memif_message *answer)
{
	answer->type = MEMIF_ADD_RING;
	answer->add_ring.flags = flags;
	answer->add_ring.index = (uint16_t)client->told;
	answer->add_ring.offset = (uint32_t)((const uint8_t *)ring->memory - client->memory);
	answer->add_ring.log2_size = (uint8_t)__builtin_ctz(ring->size);
}

/* Make all receive buffers ready. The server sets both of its indices to zero when it connects, so
 * this comes after. */
static void client_post_all(struct memif_client *client)
{
	for (uint32_t i = 0; i < client->pairs; i++) {
		struct memif_end *end = memif_client_end(client, i);

		end->buffers.posted = (uint16_t)end->rx.size;
		ring_show(&end->rx, end->buffers.posted);
	}
}

/* Write the next message, after the server has acknowledged the one before. */
static int client_tell(struct memif_client *client, struct memif_message *answer, int *answer_fd)
{
	const struct memif_end *end = memif_client_end(client, client->told);

	switch (client->step) {
	case MEMIF_CLIENT_REGION:
		answer->type = MEMIF_ADD_REGION;
		answer->add_region.bytes = client->bytes;
		*answer_fd = client->memory_fd;
		return 1;
	case MEMIF_CLIENT_RING_TO_SERVER:
		client_tell_ring(client, &end->tx, MEMIF_RING_TO_SERVER, answer);
		*answer_fd = end->doorbell_fd;
		return 1;
	case MEMIF_CLIENT_RING_TO_CLIENT:
		client_tell_ring(client, &end->rx, 0, answer);
		*answer_fd = end->wakes_by_socket ? -1 : end->wake_fd;
		return 1;
	case MEMIF_CLIENT_CONNECT:
		answer->type = MEMIF_CONNECT;
		snprintf(answer->connect.name, sizeof(answer->connect.name), "uroce");
		return 1;
	default:
		return -EPROTO;
	}
}

static bool client_tells_rings(const struct memif_client *client)
{
	return client->step == MEMIF_CLIENT_RING_TO_SERVER ||
	       client->step == MEMIF_CLIENT_RING_TO_CLIENT;
}

/* Go on to the next ring of the same direction, or to the next step. */
static void client_advance(struct memif_client *client)
{
	if (client_tells_rings(client) && client->told + 1 < client->pairs) {
		client->told++;
		return;
	}
	client->told = 0;
	client->step++;
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
		rc = client_take_hello(client, message, answer);
		client->step = MEMIF_CLIENT_INIT;
		client_set_state(client, MEMIF_STATE_SETTING_UP);
		return rc;
	}
	if ((client->step == MEMIF_CLIENT_CONNECT || client->step == MEMIF_CLIENT_ACKNOWLEDGED) &&
	    message->type == MEMIF_CONNECTED) {
		client->step = MEMIF_CLIENT_DONE;
		client_set_state(client, MEMIF_STATE_CONNECTED);
		client_post_all(client);
		return 0;
	}
	/* Each step takes one acknowledgement, so a server can make us handle only a few
	 * messages. */
	if (message->type != MEMIF_ACK || client->step >= MEMIF_CLIENT_ACKNOWLEDGED)
		return -EPROTO;
	client_advance(client);
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
		client_set_state(client, MEMIF_STATE_BROKEN);
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

static void client_fini_end(struct memif_end *end)
{
	memif_end_drop_doorbells(end);
	free(end->buffers.cache);
	free(end->buffers.placed);
}

void memif_client_fini(struct memif_client *client)
{
	const struct memif_client_config config = client->config;

	if (client->memory)
		munmap(client->memory, client->bytes);
	close_fd(client->memory_fd);
	for (uint32_t i = 0; i < client->pairs; i++)
		client_fini_end(memif_client_end(client, i));
	free(client->more);
	memif_client_init(client, &config);
}
