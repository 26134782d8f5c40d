/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles the client's messages: its memory, and the rings in it. */
#include "memif/server_end.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "memif/socket.h"
#include "memory.h"
#include "ring.h"

const struct memif_limits memif_limits_user = {.bytes = UINT64_C(4) << 30,
					       .log2_ring = MEMIF_LOG2_MAX,
					       .chain = MEMIF_CHAIN_MAX,
					       .populates = true};

const struct memif_limits memif_limits_isolated = {.bytes = UINT64_C(16) << 20,
						   .log2_ring = MEMIF_ISOLATED_LOG2_MAX,
						   .chain = 8,
						   .isolated = true,
						   .socket_to_client = true};

const struct memif_limits memif_limits_direct = {.bytes = UINT64_C(4) << 20,
						 .log2_ring = MEMIF_DIRECT_LOG2,
						 .chain = 8,
						 .isolated = true,
						 .socket_to_client = true,
						 .socket_to_server = true,
						 .populates = true};

void memif_server_init(struct memif_server *server, const struct memif_limits *limits)
{
	*server = (struct memif_server){
		.limits = limits,
		.end = {.side = MEMIF_SERVER,
			.spreads = !limits->isolated,
			.chain_max = limits->chain,
			.wake_fd = -1,
			.bell_fd = -1,
			.wakes_by_socket = limits->socket_to_server,
			.rings_by_socket = limits->socket_to_client},
	};
	memif_end_init_meters(&server->end);
}

void memif_server_greet(const struct memif_server *server, struct memif_message *message,
			const char *name)
{
	*message = (struct memif_message){
		.type = MEMIF_HELLO,
		.hello =
			{
				.min_version = MEMIF_VERSION,
				.max_version = MEMIF_VERSION,
				.max_region = MEMIF_REGIONS_MAX - 1,
				.max_log2_ring_size = server->limits->log2_ring,
			},
	};
	snprintf(message->hello.name, sizeof(message->hello.name), "%s", name);
}

/* Handle INIT. The interface number does not matter here: there is one interface. */
static int server_begin(struct memif_server *server, const struct memif_message *message)
{
	if (message->type != MEMIF_INIT || message->init.version != MEMIF_VERSION ||
	    message->init.mode != MEMIF_MODE_ETHERNET)
		return -EPROTO;
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
	/* An owner has many clients: the packets of the others must not wait for this. */
	if (server->limits->populates)
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

/* Return true if a descriptor is a doorbell of the right kind. */
static bool server_is_bell(int fd, bool by_socket)
{
	return by_socket ? memif_socket_is_unix(fd, SOCK_STREAM) : memif_socket_is_eventfd(fd);
}

static int server_add_ring(struct memif_server *server, const struct memif_message *message,
			   int *fd)
{
	const struct memif_add_ring *add = &message->add_ring;
	const bool to_server = add->flags & MEMIF_RING_TO_SERVER;
	struct memif_end *end = &server->end;
	struct memif_ring *ring = to_server ? &end->rx : &end->tx;
	const struct memif_region *region;
	size_t bytes;

	if (add->flags & ~MEMIF_RING_TO_SERVER || add->index != 0 || ring->memory ||
	    add->log2_size > server->limits->log2_ring || add->private_header_bytes != 0 ||
	    add->region >= server->end.region_count ||
	    add->offset % sizeof(struct memif_descriptor) != 0)
		return -EPROTO;
	region = &server->end.regions[add->region];
	bytes = sizeof(struct memif_ring_memory) +
		(sizeof(struct memif_descriptor) << add->log2_size);
	if (add->offset > region->bytes || bytes > region->bytes - add->offset)
		return -EPROTO;
	/* A client that polls need not give a doorbell for its ring. */
	if ((to_server || *fd >= 0) &&
	    !server_is_bell(*fd, to_server ? end->wakes_by_socket : end->rings_by_socket))
		return -EPROTO;
	*(to_server ? &end->wake_fd : &end->bell_fd) = *fd;
	*fd = -1;
	ring_init(ring, region->at + add->offset, UINT32_C(1) << add->log2_size, MEMIF_SERVER);
	return 0;
}

static int server_connect(struct memif_server *server)
{
	if (!server->end.rx.memory || !server->end.tx.memory ||
	    __atomic_load_n(&server->end.rx.memory->cookie, __ATOMIC_RELAXED) != MEMIF_COOKIE ||
	    __atomic_load_n(&server->end.tx.memory->cookie, __ATOMIC_RELAXED) != MEMIF_COOKIE)
		return -EPROTO;
	server->end.state = MEMIF_STATE_CONNECTED;
	memif_end_listen(&server->end, false);
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
	if (server->end.state == MEMIF_STATE_GREETED)
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
		server->end.state = MEMIF_STATE_BROKEN;
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
	for (uint32_t i = 0; i < server->end.region_count; i++)
		memif_socket_unmap(server->end.regions[i].at, server->end.regions[i].bytes);
	memif_socket_discard(server->end.wake_fd);
	memif_socket_discard(server->end.bell_fd);
	memif_server_init(server, server->limits);
	server->end.state = MEMIF_STATE_BROKEN;
}
