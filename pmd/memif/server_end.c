/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles the client's messages: its memory, and the rings in it. */
#include "memif/server_end.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/own.h"
#include "memif/socket.h"
#include "ring.h"

const struct memif_limits memif_limits_user = {
	.bytes = UINT64_C(4) << 30, .log2_ring = MEMIF_LOG2_MAX, .chain = MEMIF_CHAIN_MAX};

const struct memif_limits memif_limits_isolated = {.bytes = UINT64_C(16) << 20,
						   .log2_ring = MEMIF_ISOLATED_LOG2_MAX,
						   .chain = 8,
						   .isolated = true};

static void server_init_end(struct memif_end *end, const struct memif_limits *limits)
{
	*end = (struct memif_end){
		.side = MEMIF_SERVER,
		.spreads = !limits->isolated,
		.chain_max = limits->chain,
		.wake_fd = -1,
		.doorbell_fd = -1,
		.rings_by_socket = limits->isolated,
	};
	memif_end_init_meters(end);
}

void memif_server_init(struct memif_server *server, const struct memif_limits *limits)
{
	*server = (struct memif_server){.limits = limits, .pairs = 1};
	server_init_end(&server->end, limits);
}

/* Return how many pairs of rings a client may make that does not tell its engines. */
static uint32_t server_pairs_announced(const struct memif_server *server)
{
	return RTE_MAX(server->queues, 1u);
}

/* Return how many pairs of rings this client may make. */
static uint32_t server_pairs_max(const struct memif_server *server)
{
	return server->queues > 0 && server->client_tells ? MEMIF_PAIRS_MAX
							  : server_pairs_announced(server);
}

static void server_set_state(struct memif_server *server, enum memif_state state)
{
	for (uint32_t i = 0; i < server->pairs; i++)
		memif_server_end(server, i)->state = state;
}

void memif_server_hello(const struct memif_server *server, struct memif_message *message,
			const char *name)
{
	const uint16_t last = (uint16_t)(server_pairs_announced(server) - 1);

	*message = (struct memif_message){
		.type = MEMIF_HELLO,
		.hello =
			{
				.min_version = MEMIF_VERSION,
				.max_version = MEMIF_VERSION,
				.max_region = MEMIF_REGIONS_MAX - 1,
				.max_ring_to_client = last,
				.max_ring_to_server = last,
				.max_log2_ring_size = server->limits->log2_ring,
			},
	};
	if (server->queues > 0)
		memif_pairs_write_name(message->hello.name, server->queues);
	else
		snprintf(message->hello.name, sizeof(message->hello.name), "%s", name);
}

/* Handle INIT. The interface number does not matter here: there is one interface. */
static int server_begin(struct memif_server *server, const struct memif_message *message)
{
	if (message->type != MEMIF_INIT || message->init.version != MEMIF_VERSION ||
	    message->init.mode != MEMIF_MODE_ETHERNET)
		return -EPROTO;
	server->client_tells = memif_pairs_read_name(message->init.name) > 0;
	server->end.state = MEMIF_STATE_SETTING_UP;
	return 0;
}

static int server_map(struct memif_server *server, uint64_t bytes, int fd)
{
	struct memif_region *region = &server->end.regions[server->end.region_count];
	struct stat file;
	void *memory;

	if (fd < 0 || !memif_socket_is_sealed(fd))
		return -EPROTO;
	/* Do not add the seal against growth: fcntl would need the file's lock, which the client
	 * may hold. */
	if (fstat(fd, &file) != 0 || file.st_size < 0 || (uint64_t)file.st_size != bytes)
		return -EPROTO;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	madvise(memory, bytes, MADV_DONTFORK);
	madvise(memory, bytes, MADV_DONTDUMP);
	/* Map pages before the first packets need them. An owner has many clients: the packets of
	 * the others must not wait for this. */
	if (!server->limits->isolated)
		memory_populate(memory, bytes, server->region_bytes);
	region->at = memory;
	region->bytes = bytes;
	server->end.region_count++;
	server->region_bytes += bytes;
	return 0;
}

static int server_add_region(struct memif_server *server, const struct memif_message *message,
			     int fd)
{
	const struct memif_add_region *add = &message->add_region;

	if (add->index != server->end.region_count ||
	    server->end.region_count == MEMIF_REGIONS_MAX || add->bytes == 0 ||
	    add->bytes > server->limits->bytes - server->region_bytes)
		return -EPROTO;
	return server_map(server, add->bytes, fd);
}

/* Return true if a message brings the right doorbell of a ring. `fd` is the descriptor that came
 * with it, or -1. */
static bool server_is_doorbell(const struct memif_end *end, bool to_server, int fd)
{
	/* We have that socket already. */
	if (!to_server && end->rings_by_socket)
		return fd < 0;
	/* A client that polls need not give a doorbell for its ring. */
	return fd < 0 ? !to_server : memif_socket_is_eventfd(fd);
}

/* Return the end that has a ring of this index; NULL: there is no memory for it. */
static struct memif_end *server_make_end(struct memif_server *server, uint16_t index)
{
	const uint32_t most = server_pairs_max(server);

	if (index > 0 && !server->more) {
		server->more = calloc(most - 1, sizeof(*server->more));
		if (!server->more)
			return NULL;
		for (uint32_t i = 0; i < most - 1; i++)
			server_init_end(&server->more[i], server->limits);
	}
	server->pairs = RTE_MAX(server->pairs, index + 1u);
	return memif_server_end(server, index);
}

static int server_add_ring(struct memif_server *server, const struct memif_message *message,
			   int *fd)
{
	const struct memif_add_ring *add = &message->add_ring;
	const bool to_server = add->flags & MEMIF_RING_TO_SERVER;
	const struct memif_region *region;
	struct memif_end *end;
	struct memif_ring *ring;
	size_t bytes;

	if (add->flags & ~MEMIF_RING_TO_SERVER || add->index >= server_pairs_max(server) ||
	    add->log2_size > server->limits->log2_ring || add->private_header_bytes != 0 ||
	    add->region >= server->end.region_count ||
	    add->offset % sizeof(struct memif_descriptor) != 0)
		return -EPROTO;
	end = server_make_end(server, add->index);
	if (!end)
		return -ENOMEM;
	ring = to_server ? &end->rx : &end->tx;
	if (ring->memory)
		return -EPROTO;
	region = &server->end.regions[add->region];
	bytes = sizeof(struct memif_ring_memory) +
		(sizeof(struct memif_descriptor) << add->log2_size);
	if (add->offset > region->bytes || bytes > region->bytes - add->offset)
		return -EPROTO;
	if (!server_is_doorbell(end, to_server, *fd))
		return -EPROTO;
	own_mark(*fd);
	if (*fd >= 0)
		*(to_server ? &end->wake_fd : &end->doorbell_fd) = *fd;
	*fd = -1;
	ring_init(ring, region->at + add->offset, UINT32_C(1) << add->log2_size, MEMIF_SERVER);
	return 0;
}

static bool ring_is_right(const struct memif_ring *ring)
{
	return ring->memory &&
	       __atomic_load_n(&ring->memory->cookie, __ATOMIC_RELAXED) == MEMIF_COOKIE;
}

/* Return the number of rings to us (`rx`) or from us. -EPROTO: one is missing before another, or
 * has not the right cookie. */
static int server_count_rings(struct memif_server *server, bool rx)
{
	int count = 0;

	for (uint32_t i = 0; i < server->pairs; i++) {
		const struct memif_end *end = memif_server_end(server, i);
		const struct memif_ring *ring = rx ? &end->rx : &end->tx;

		if (!ring->memory)
			continue;
		if ((uint32_t)count < i || !ring_is_right(ring))
			return -EPROTO;
		count++;
	}
	return count;
}

/* Give all ends the regions, in which they find their buffers. */
static void server_share_regions(struct memif_server *server)
{
	for (uint32_t i = 1; i < server->pairs; i++) {
		struct memif_end *end = memif_server_end(server, i);

		memcpy(end->regions, server->end.regions, sizeof(end->regions));
		end->region_count = server->end.region_count;
	}
}

static int server_connect(struct memif_server *server)
{
	const int to_us = server_count_rings(server, true);
	const int from_us = server_count_rings(server, false);

	if (to_us <= 0 || from_us <= 0)
		return -EPROTO;
	if ((uint32_t)RTE_MIN(to_us, from_us) < server->queues)
		return -ENOTSUP;
	/* Only a client that has made pairs with all engines of ours knows how many there are. */
	server->client_steers = server->client_tells && server->queues > 0 && to_us == from_us &&
				(uint32_t)to_us % server->queues == 0;
	server_share_regions(server);
	server_set_state(server, MEMIF_STATE_CONNECTED);
	for (int i = 0; i < to_us; i++)
		memif_end_listen(memif_server_end(server, (uint32_t)i), false);
	return 0;
}

/* Return true if a descriptor came with a message that takes none. */
static bool fd_is_odd(const struct memif_message *message, int fd)
{
	return fd >= 0 && message->type != MEMIF_ADD_REGION && message->type != MEMIF_ADD_RING;
}

static int server_answer(struct memif_server *server, const struct memif_message *message, int *fd,
			 struct memif_message *answer)
{
	/* Do not accept (and then have to close) descriptors that are not part of a connection. */
	if (fd_is_odd(message, *fd))
		return -EPROTO;
	if (message->type == MEMIF_DISCONNECT)
		return -ECONNRESET;
	*answer = (struct memif_message){.type = MEMIF_ACK};
	if (server->end.state == MEMIF_STATE_HELLO)
		return server_begin(server, message);
	if (server->end.state != MEMIF_STATE_SETTING_UP)
		return -EPROTO;
	switch (message->type) {
	case MEMIF_ADD_REGION:
		return server_add_region(server, message, *fd);
	case MEMIF_ADD_RING:
		return server_add_ring(server, message, fd);
	case MEMIF_CONNECT:
		answer->type = MEMIF_CONNECTED;
		return server_connect(server);
	default:
		return -EPROTO;
	}
}

int memif_server_take(struct memif_server *server, const struct memif_message *message, int fd,
		      struct memif_message *answer)
{
	const int rc = server_answer(server, message, &fd, answer);

	memif_socket_discard(fd);
	if (rc != 0 && rc != -ECONNRESET)
		server_set_state(server, MEMIF_STATE_BROKEN);
	return rc;
}

static bool server_copy(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
	return false;
}

int memif_server_receive(struct memif_server *server, uint8_t *room, size_t room_bytes)
{
	bool right;
	const int len = memif_end_receive(&server->end, room, room_bytes, server_copy, &right);

	if (likely(len != -EMSGSIZE))
		return len;
	server->end.state = MEMIF_STATE_BROKEN;
	return -EPROTO;
}

void memif_server_fini(struct memif_server *server)
{
	const uint32_t queues = server->queues;

	for (uint32_t i = 0; i < server->end.region_count; i++)
		memif_socket_unmap(server->end.regions[i].at, server->end.regions[i].bytes);
	for (uint32_t i = 0; i < server->pairs; i++)
		memif_end_drop_doorbells(memif_server_end(server, i));
	free(server->more);
	memif_server_init(server, server->limits);
	server->queues = queues;
	server->end.state = MEMIF_STATE_BROKEN;
}
