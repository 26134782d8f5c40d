/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client says over its socket: its memory, and where in it the rings are. */
#include "memif/server_end.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "memif/socket.h"
#include "memory.h"

void memif_peer_init(struct memif_peer *peer)
{
	*peer = (struct memif_peer){.wake_fd = -1, .bell_fd = -1};
}

void memif_peer_init_wire(struct memif_peer *peer)
{
	memif_peer_init(peer);
	peer->is_wire = true;
}

void memif_peer_greet(struct memif_message *message, const char *name)
{
	*message = (struct memif_message){
		.type = MEMIF_HELLO,
		.hello =
			{
				.min_version = MEMIF_VERSION,
				.max_version = MEMIF_VERSION,
				.max_region = MEMIF_REGIONS_MAX - 1,
				.max_log2_ring_size = MEMIF_LOG2_RING_MAX,
			},
	};
	snprintf(message->hello.name, sizeof(message->hello.name), "%s", name);
}

/* Which interface it wants does not matter: there is one. */
static int peer_begin(struct memif_peer *peer, const struct memif_message *message)
{
	if (message->type != MEMIF_INIT || message->init.version != MEMIF_VERSION ||
	    message->init.mode != MEMIF_MODE_ETHERNET)
		return -EPROTO;
	peer->state = MEMIF_STATE_SETTING_UP;
	return 0;
}

static int peer_map(struct memif_peer *peer, uint64_t bytes, int fd)
{
	struct memif_region *region = &peer->regions[peer->region_count];
	struct stat file;
	void *memory;

	if (fd < 0 || !memif_socket_is_sealed(fd))
		return -EPROTO;
	/* The seal against growth is not added: the client may hold the lock that is for. */
	if (fstat(fd, &file) != 0 || file.st_size < 0 || (uint64_t)file.st_size != bytes)
		return -EPROTO;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	madvise(memory, bytes, MADV_DONTFORK);
	/* Not of strangers, of whom there may be many, and whose packets wait for none of them. */
	if (peer->is_wire)
		memory_have(memory, bytes, peer->region_bytes);
	region->at = memory;
	region->bytes = bytes;
	peer->region_count++;
	peer->region_bytes += bytes;
	return 0;
}

static int peer_add_region(struct memif_peer *peer, const struct memif_message *message, int fd)
{
	const struct memif_add_region *add = &message->add_region;

	const uint64_t bytes_max = peer->is_wire ? MEMIF_WIRE_BYTES_MAX : MEMIF_BYTES_MAX;

	if (add->index != peer->region_count || peer->region_count == MEMIF_REGIONS_MAX ||
	    add->bytes == 0 || add->bytes > bytes_max - peer->region_bytes)
		return -EPROTO;
	return peer_map(peer, add->bytes, fd);
}

static int peer_add_ring(struct memif_peer *peer, const struct memif_message *message, int *fd)
{
	const struct memif_add_ring *add = &message->add_ring;
	const bool to_server = add->flags & MEMIF_RING_TO_SERVER;
	const uint8_t log2_max = peer->is_wire ? MEMIF_WIRE_LOG2_MAX : MEMIF_LOG2_RING_MAX;
	struct memif_ring *ring = to_server ? &peer->to_server : &peer->to_client;
	const struct memif_region *region;
	size_t bytes;

	if (add->flags & ~MEMIF_RING_TO_SERVER || add->index != 0 || ring->memory ||
	    add->log2_size > log2_max || add->private_header_bytes != 0 ||
	    add->region >= peer->region_count || add->offset % sizeof(struct memif_descriptor) != 0)
		return -EPROTO;
	region = &peer->regions[add->region];
	bytes = sizeof(struct memif_ring_memory) +
		(sizeof(struct memif_descriptor) << add->log2_size);
	if (add->offset > region->bytes || bytes > region->bytes - add->offset)
		return -EPROTO;
	if ((to_server || *fd >= 0) && !memif_socket_is_eventfd(*fd))
		return -EPROTO;
	/* An isolated client polls: its eventfd is of no use, and would be one to be made to wait
	 * at. */
	if (to_server || peer->is_wire) {
		*(to_server ? &peer->wake_fd : &peer->bell_fd) = *fd;
		*fd = -1;
	}
	ring->memory = (struct memif_ring_memory *)(void *)(region->at + add->offset);
	ring->size = UINT32_C(1) << add->log2_size;
	ring->own = 0;
	ring->seen = 0;
	return 0;
}

static int peer_connect(struct memif_peer *peer)
{
	if (!peer->to_server.memory || !peer->to_client.memory ||
	    __atomic_load_n(&peer->to_server.memory->cookie, __ATOMIC_RELAXED) != MEMIF_COOKIE ||
	    __atomic_load_n(&peer->to_client.memory->cookie, __ATOMIC_RELAXED) != MEMIF_COOKIE)
		return -EPROTO;
	peer->state = MEMIF_STATE_CONNECTED;
	memif_peer_listen(peer, false);
	return 0;
}

/* Whether a descriptor came with a message that takes none. */
static bool fd_is_odd(const struct memif_message *message, int fd)
{
	return fd >= 0 && message->type != MEMIF_ADD_REGION && message->type != MEMIF_ADD_RING;
}

static int peer_answer(struct memif_peer *peer, const struct memif_message *message, int *fd,
		       struct memif_message *answer)
{
	/* Nobody has us close more than takes part in a connection. */
	if (fd_is_odd(message, *fd))
		return -EPROTO;
	if (message->type == MEMIF_DISCONNECT)
		return -ECONNRESET;
	*answer = (struct memif_message){.type = MEMIF_ACK};
	if (peer->state == MEMIF_STATE_GREETED)
		return peer_begin(peer, message);
	if (peer->state != MEMIF_STATE_SETTING_UP)
		return -EPROTO;
	switch (message->type) {
	case MEMIF_ADD_REGION:
		return peer_add_region(peer, message, *fd);
	case MEMIF_ADD_RING:
		return peer_add_ring(peer, message, fd);
	case MEMIF_CONNECT:
		answer->type = MEMIF_CONNECTED;
		return peer_connect(peer);
	default:
		return -EPROTO;
	}
}

int memif_peer_take(struct memif_peer *peer, const struct memif_message *message, int fd,
		    struct memif_message *answer)
{
	const int rc = peer_answer(peer, message, &fd, answer);

	memif_socket_discard(fd);
	if (rc != 0 && rc != -ECONNRESET)
		peer->state = MEMIF_STATE_BROKEN;
	return rc;
}

void memif_peer_fini(struct memif_peer *peer)
{
	for (uint32_t i = 0; i < peer->region_count; i++)
		memif_socket_unmap(peer->regions[i].at, peer->regions[i].bytes);
	memif_socket_discard(peer->wake_fd);
	memif_socket_discard(peer->bell_fd);
	memif_peer_init(peer);
	peer->state = MEMIF_STATE_BROKEN;
}
