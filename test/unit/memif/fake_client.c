/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/own.h"
#include "fake_client.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memif/doorbell.h"
#include "test.h"

#define RING_BYTES \
	(sizeof(struct memif_ring_memory) + CLIENT_RING * sizeof(struct memif_descriptor))
#define BUFFERS_AT 4096

int client_file(size_t bytes, int seals)
{
	const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static struct memif_ring_memory *make_ring(struct client *client, size_t at, size_t buffers_at)
{
	struct memif_ring_memory *ring = (struct memif_ring_memory *)(void *)(client->memory + at);

	ring->cookie = MEMIF_COOKIE;
	for (uint32_t i = 0; i < CLIENT_RING; i++)
		ring->descriptors[i] = (struct memif_descriptor){
			.length = CLIENT_BUFFER,
			.offset = (uint32_t)(buffers_at + i * CLIENT_BUFFER),
		};
	return ring;
}

void client_init(struct client *client)
{
	client->memory_fd = client_file(CLIENT_BYTES, F_SEAL_SHRINK);
	client->memory =
		mmap(NULL, CLIENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, client->memory_fd, 0);
	assert_true(client->memory != MAP_FAILED);
	client->to_server = make_ring(client, 0, BUFFERS_AT);
	client->to_client = make_ring(client, RING_BYTES, BUFFERS_AT + CLIENT_RING * CLIENT_BUFFER);
	client->wake_fd = -1;
	memif_server_init(&client->server, &memif_limits_isolated);
}

static void drop_doorbell(struct client *client)
{
	if (client->wake_fd >= 0)
		close(client->wake_fd);
	client->wake_fd = -1;
}

void client_fini(struct client *client)
{
	memif_server_fini(&client->server);
	drop_doorbell(client);
	munmap(client->memory, CLIENT_BYTES);
	close(client->memory_fd);
}

int client_say(struct client *client, const struct memif_message *message, int fd)
{
	struct memif_message answer;
	const int rc = memif_server_take(&client->server, message, fd < 0 ? -1 : dup(fd), &answer);

	if (rc == 0)
		assert_int_equal(answer.type,
				 message->type == MEMIF_CONNECT ? MEMIF_CONNECTED : MEMIF_ACK);
	return rc;
}

struct memif_message client_begin_message(void)
{
	return (struct memif_message){.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION}};
}

void client_anew(struct client *client)
{
	const struct memif_message init = client_begin_message();

	memif_server_fini(&client->server);
	memif_server_init(&client->server, &memif_limits_isolated);
	assert_int_equal(client_say(client, &init, -1), 0);
}

struct memif_message client_region(void)
{
	return (struct memif_message){.type = MEMIF_ADD_REGION,
				      .add_region = {.bytes = CLIENT_BYTES}};
}

struct memif_message client_ring(bool to_server)
{
	return (struct memif_message){
		.type = MEMIF_ADD_RING,
		.add_ring = {.flags = to_server ? MEMIF_RING_TO_SERVER : 0,
			     .offset = to_server ? 0 : RING_BYTES,
			     .log2_size = CLIENT_LOG2},
	};
}

void client_connect(struct client *client)
{
	const struct memif_message region = client_region(), to_server = client_ring(true),
				   to_client = client_ring(false),
				   connect = {.type = MEMIF_CONNECT};
	const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int doorbell[2];

	client_anew(client);
	drop_doorbell(client);
	assert_int_equal(memif_doorbell_make(doorbell), 0);
	client->wake_fd = doorbell[0];
	own_mark(doorbell[1]);
	memif_end_take_doorbell(&client->server.end, doorbell[1]);
	assert_int_equal(client_say(client, &region, client->memory_fd), 0);
	assert_int_equal(client_say(client, &to_server, event), 0);
	assert_int_equal(client_say(client, &to_client, -1), 0);
	assert_int_equal(client_say(client, &connect, -1), 0);
	assert_int_equal(client->server.end.state, MEMIF_STATE_CONNECTED);
	close(event);
}

void client_send(struct client *client, uint8_t first, uint32_t len)
{
	struct memif_ring_memory *ring = client->to_server;
	struct memif_descriptor *at = &ring->descriptors[ring->head % CLIENT_RING];

	for (uint32_t i = 0; i < len; i++)
		client->memory[at->offset + i] = (uint8_t)(first + i);
	at->length = len;
	at->flags = 0;
	__atomic_store_n(&ring->head, (uint16_t)(ring->head + 1), __ATOMIC_RELEASE);
}
