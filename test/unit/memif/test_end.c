/* SPDX-License-Identifier: BSD-3-Clause */
#include "memif/server_end.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_client.h"
#include "test.h"

#define ROOM   1024
#define ROUNDS 200000

static int setup(void **state)
{
	struct client *client = test_malloc(sizeof(*client));

	client_init(client);
	client_connect(client);
	*state = client;
	return 0;
}

static int teardown(void **state)
{
	client_fini(*state);
	test_free(*state);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static void lay_ready(struct client *client, uint16_t count)
{
	client->to_client->head = (uint16_t)(client->to_client->head + count);
}

TEST(memif_server_receive__copies)
{
	struct client *client = *state;
	uint8_t room[ROOM];

	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 0);
	assert_false(memif_end_waits(&client->server.end));
	/* Go around the ring more than once. */
	for (uint32_t i = 0; i < 3 * CLIENT_RING; i++) {
		client_send(client, (uint8_t)i, 100 + i);
		assert_true(memif_end_waits(&client->server.end));
		assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)),
				 100 + i);
		for (uint32_t k = 0; k < 100 + i; k++)
			assert_int_equal(room[k], (uint8_t)(i + k));
		memif_end_release(&client->server.end);
		assert_int_equal(client->to_server->tail, i + 1);
	}
}

TEST(memif_server_receive__index_wraps)
{
	struct client *client = *state;
	uint8_t room[ROOM];

	for (uint32_t i = 0; i < 70000; i++) {
		client_send(client, (uint8_t)i, 14);
		assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 14);
		assert_int_equal(room[0], (uint8_t)i);
	}
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 0);
}

TEST(memif_server_receive__joins_chains)
{
	struct client *client = *state;
	uint8_t room[ROOM];

	client_send(client, 0, 100);
	client_send(client, 100, 50);
	client_send(client, 7, 20);
	client->to_server->descriptors[0].flags = MEMIF_MORE;
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 150);
	for (uint32_t i = 0; i < 150; i++)
		assert_int_equal(room[i], (uint8_t)i);
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 20);
	assert_int_equal(room[0], 7);
}

static void refuse(struct client *client)
{
	uint8_t room[ROOM];

	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), -EPROTO);
	assert_int_equal(client->server.end.state, MEMIF_STATE_BROKEN);
	/* The end stays broken, whatever comes. */
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), -EPROTO);
	assert_int_equal(memif_end_send(&client->server.end, room, 20), -EPROTO);
	assert_false(memif_end_waits(&client->server.end));
}

TEST(memif_server_receive__refuses_endless_chains)
{
	struct client *client = *state;

	for (uint32_t i = 0; i < CLIENT_RING; i++) {
		client_send(client, 0, 20);
		client->to_server->descriptors[i].flags = MEMIF_MORE;
	}
	refuse(client);
}

TEST(memif_server_receive__refuses_half_chains)
{
	struct client *client = *state;

	client_send(client, 0, 20);
	client->to_server->descriptors[0].flags = MEMIF_MORE;
	refuse(client);
}

TEST(memif_server_receive__refuses_more_than_the_ring_has)
{
	struct client *client = *state;

	client->to_server->head = CLIENT_RING + 1;
	refuse(client);
}

TEST(memif_server_receive__refuses_what_went_back)
{
	struct client *client = *state;

	client->to_server->head = UINT16_MAX;
	refuse(client);
}

TEST(memif_server_receive__refuses_other_regions)
{
	struct client *client = *state;

	client_send(client, 0, 20);
	client->to_server->descriptors[0].region = 1;
	refuse(client);
}

TEST(memif_server_receive__refuses_what_is_outside)
{
	struct client *client = *state;

	client_send(client, 0, 20);
	client->to_server->descriptors[0].offset = CLIENT_BYTES - 19;
	refuse(client);
}

TEST(memif_server_receive__refuses_what_wraps)
{
	struct client *client = *state;

	client_send(client, 0, 20);
	client->to_server->descriptors[0].offset = UINT32_MAX - 10;
	refuse(client);
}

TEST(memif_server_receive__refuses_too_long_ones)
{
	struct client *client = *state;

	client_send(client, 0, 20);
	client->to_server->descriptors[0].length = ROOM + 1;
	refuse(client);
}

TEST(memif_server_receive__refuses_lengths_outside)
{
	struct client *client = *state;

	client_send(client, 0, 20);
	client->to_server->descriptors[0].length = UINT32_MAX;
	refuse(client);
}

TEST(memif_server_receive__refuses_empty_ones)
{
	struct client *client = *state;

	client_send(client, 0, 20);
	client->to_server->descriptors[0].length = 0;
	refuse(client);
}

TEST(memif_server_receive__takes_the_last_bytes)
{
	struct client *client = *state;
	uint8_t room[ROOM];

	client_send(client, 0, 20);
	client->to_server->descriptors[0].offset = CLIENT_BYTES - 20;
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 20);
}

/* The server never reads its own indices back from shared memory. */
TEST(memif_server_receive__does_not_believe_tail)
{
	struct client *client = *state;
	uint8_t room[ROOM];

	client_send(client, 1, 20);
	client_send(client, 2, 20);
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 20);
	memif_end_release(&client->server.end);
	client->to_server->tail = 0;
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 20);
	assert_int_equal(room[0], 2);
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 0);
}

TEST(memif_end_send__copies)
{
	struct client *client = *state;
	const uint8_t packet[] = "any packet";

	assert_int_equal(memif_end_send(&client->server.end, packet, sizeof(packet)), -EAGAIN);
	lay_ready(client, 2);
	client->to_client->flags = MEMIF_QUIET;
	client->to_client->descriptors[0].flags = MEMIF_MORE;
	for (uint16_t i = 0; i < 2; i++) {
		const struct memif_descriptor *at = &client->to_client->descriptors[i];

		assert_int_equal(memif_end_send(&client->server.end, packet, sizeof(packet)), 0);
		assert_int_equal(client->to_client->tail, i);
		/* The other end polls, so it needs no notification. */
		assert_false(memif_end_push(&client->server.end));
		assert_int_equal(client->to_client->tail, i + 1);
		assert_int_equal(at->length, sizeof(packet));
		assert_int_equal(at->flags, 0);
		assert_memory_equal(client->memory + at->offset, packet, sizeof(packet));
	}
	assert_int_equal(memif_end_send(&client->server.end, packet, sizeof(packet)), -EAGAIN);
}

TEST(memif_end_send__keeps_to_the_buffer)
{
	struct client *client = *state;
	uint8_t packet[CLIENT_BUFFER + 1] = {0};

	lay_ready(client, 1);
	assert_int_equal(memif_end_send(&client->server.end, packet, sizeof(packet)), -EMSGSIZE);
	assert_int_equal(client->to_client->tail, 0);
	assert_int_equal(memif_end_send(&client->server.end, packet, CLIENT_BUFFER), 0);
}

TEST(memif_end_send__refuses_what_is_outside)
{
	struct client *client = *state;
	const uint8_t packet[20] = {0};

	lay_ready(client, 1);
	client->to_client->descriptors[0].offset = CLIENT_BYTES - CLIENT_BUFFER + 1;
	assert_int_equal(memif_end_send(&client->server.end, packet, sizeof(packet)), -EPROTO);
	assert_int_equal(client->server.end.state, MEMIF_STATE_BROKEN);
}

TEST(memif_end_send__refuses_too_many_buffers)
{
	struct client *client = *state;
	const uint8_t packet[20] = {0};

	lay_ready(client, CLIENT_RING + 1);
	assert_int_equal(memif_end_send(&client->server.end, packet, sizeof(packet)), -EPROTO);
}

TEST(memif_end_listen__asks_for_signals)
{
	struct client *client = *state;

	memif_end_listen(&client->server.end, true);
	assert_int_equal(client->to_server->flags, 0);
	memif_end_listen(&client->server.end, false);
	assert_int_equal(client->to_server->flags, MEMIF_QUIET);
}

TEST(memif_end_is_asleep__while_the_other_end_listens)
{
	struct client *client = *state;
	const uint8_t packet[] = "any packet";

	lay_ready(client, 2);
	for (uint16_t on = 0; on < 2; on++) {
		client->to_client->flags = on ? 0 : MEMIF_QUIET;
		assert_int_equal(memif_end_send(&client->server.end, packet, sizeof(packet)), 0);
		memif_end_publish(&client->server.end);
		assert_int_equal(client->to_client->tail, on + 1);
		assert_int_equal(memif_end_is_asleep(&client->server.end), on);
	}
	client->server.end.state = MEMIF_STATE_BROKEN;
	assert_false(memif_end_is_asleep(&client->server.end));
}

/*
 * A client that writes anything anywhere, for the most part near what would be right. The region
 * ends where nothing is mapped, and so does the room: a byte too far is a fault.
 */
TEST(memif_server_receive__survives_anything)
{
	const size_t page = (size_t)getpagesize();
	const unsigned int seed = (unsigned int)getpid();
	struct client *client = *state;
	uint8_t *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *room = pages + page - ROOM;
	uint32_t received = 0, sent = 0;

	print_message("seed %u\n", seed);
	srandom(seed);
	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct memif_ring_memory *ring =
			random() % 2 ? client->to_server : client->to_client;
		struct memif_descriptor *at = &ring->descriptors[random() % CLIENT_RING];
		int len;

		switch (random() % 8) {
		case 0:
			at->length = (uint32_t)random() % (CLIENT_BYTES + 64);
			break;
		case 1:
			at->offset = (uint32_t)random() % (CLIENT_BYTES + 64);
			break;
		case 2:
			at->flags = (uint16_t)random();
			break;
		case 3:
			at->region = (uint16_t)(random() % 16 == 0);
			break;
		case 4:
			memset(client->memory + random() % CLIENT_BYTES, (int)random(), 1);
			break;
		default:
			ring->head = (uint16_t)(ring->head + random() % 3);
		}
		len = memif_server_receive(&client->server, room, ROOM);
		assert_true(len == -EPROTO || (len >= 0 && len <= ROOM));
		received += len > 0;
		memif_end_expect(&client->server.end, (uint32_t)random() % (2 * CLIENT_RING), ROOM);
		len = memif_end_send(&client->server.end, room, (size_t)random() % ROOM + 1);
		assert_true(len == 0 || len == -EPROTO || len == -EAGAIN || len == -EMSGSIZE);
		sent += len == 0;
		memif_end_push(&client->server.end);
		memif_end_release(&client->server.end);
		if (client->server.end.state == MEMIF_STATE_BROKEN) {
			client_fini(client);
			client_init(client);
			client_connect(client);
		}
	}
	print_message("%u received, %u sent\n", received, sent);
	assert_true(received > ROUNDS / 100 && sent > ROUNDS / 100);
	munmap(pages, 2 * page);
}
