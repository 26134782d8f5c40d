/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end, with a server that breaks the rules. */
#include "client_end_rig.h"

#include <errno.h>
#include <stdlib.h>

#include "test.h"

#define ROUNDS 200000

TEST_FIXTURE(ends_set_up, ends_tear_down);

/* Buffers that were ready stay so: what is sent over several is measured by how many there are. */
TEST(memif_end_send__refuses_what_went_back)
{
	struct ends *ends = *state;
	uint8_t packet[ROOM] = {0};

	for (uint32_t i = 0; i < SIZE; i++)
		ends->to_client->descriptors[i].length = 1;
	ends->to_client->head = 1;
	assert_true(memif_end_has_room(&ends->server.end));
	ends->to_client->head = 0;
	assert_int_equal(memif_end_send(&ends->server.end, packet, sizeof(packet)), -EPROTO);
	assert_int_equal(ends->server.end.state, MEMIF_STATE_BROKEN);
}

/* A faulty server may do this after it has begun a packet. */
TEST(memif_end_receive__client_refuses_what_went_back)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];

	ends->to_client->descriptors[0].flags = MEMIF_MORE;
	ends->to_client->descriptors[1].flags = MEMIF_MORE;
	ends->to_client->tail = 2;
	assert_int_equal(client_receives(ends, room), 0);
	ends->to_client->tail = 1;
	assert_int_equal(client_receives(ends, room), -EPROTO);
}

static void expect_broken(struct ends *ends)
{
	uint8_t room[ROOM];

	assert_int_equal(ends->client.end.state, MEMIF_STATE_BROKEN);
	assert_int_equal(client_receives(ends, room), -EPROTO);
	assert_int_equal(memif_end_send(&ends->client.end, room, 64), -EPROTO);
	assert_null(memif_end_place(&ends->client.end, 64));
	assert_false(memif_end_push(&ends->client.end));
	assert_false(memif_end_waits(&ends->client.end));
}

TEST(memif_end_receive__client_refuses_more_than_is_ready)
{
	static const uint16_t tails[] = {SIZE + 1, UINT16_MAX, 0x8000};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct ends *ends = *state;
		uint8_t room[ROOM];

		ends->to_client->tail = tails[i];
		assert_int_equal(client_receives(ends, room), -EPROTO);
		expect_broken(ends);
		ends_connect_again(*state);
	}
}

TEST(memif_end_receive__client_refuses_long_lengths)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];

	ends->to_client->descriptors[0].length = BUFFER + 1;
	ends->to_client->tail = 1;
	assert_int_equal(client_receives(ends, room), -EPROTO);
	expect_broken(ends);
}

TEST(memif_end_receive__client_refuses_endless_chains)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];

	for (uint32_t i = 0; i < SIZE; i++)
		ends->to_client->descriptors[i].flags = MEMIF_MORE;
	ends->to_client->tail = SIZE;
	assert_int_equal(client_receives(ends, room), -EPROTO);
	expect_broken(ends);
}

/* The client keeps the places of its buffers itself and ignores what the server writes there. */
TEST(memif_end_receive__client_believes_no_place)
{
	struct ends *ends = *state;
	uint8_t packet[64], room[ROOM];

	fill(packet, 3, sizeof(packet));
	memif_end_send(&ends->server.end, packet, sizeof(packet));
	ends->to_client->descriptors[0].offset = UINT32_MAX;
	ends->to_client->descriptors[0].region = UINT16_MAX;
	memif_end_push(&ends->server.end);
	assert_int_equal(client_receives(ends, room), 64);
	expect_bytes(room, 3, 64);
}

TEST(memif_end_place__refuses_what_was_not_sent)
{
	static const uint16_t tails[] = {SIZE + 1, UINT16_MAX, 1};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct ends *ends = *state;

		/* Full, and none of it shown yet: nothing can have been read. */
		for (uint32_t k = 0; k < SIZE; k++) {
			assert_non_null(memif_end_place(&ends->client.end, 64));
			memif_end_placed(&ends->client.end, 64);
		}
		ends->to_server->tail = tails[i];
		assert_null(memif_end_place(&ends->client.end, 64));
		expect_broken(ends);
		ends_connect_again(*state);
	}
}

/* Whatever the server writes, nothing outside our memory is touched (ASan), and no buffer is had
 * twice. */
TEST(memif_client__survives_anything)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];
	unsigned int seed = 1;

	for (int i = 0; i < ROUNDS; i++) {
		struct memif_ring_memory *ring =
			rand_r(&seed) % 2 ? ends->to_server : ends->to_client;
		uint8_t *at =
			(uint8_t *)ring + (unsigned int)rand_r(&seed) % (sizeof(*ring) + SIZE * 16);

		switch (rand_r(&seed) % 6) {
		case 0:
			*at = (uint8_t)rand_r(&seed);
			break;
		case 1:
			ring->tail++;
			break;
		case 2:
			client_receives(ends, room);
			break;
		case 3:
			memif_end_release(&ends->client.end);
			memif_end_expect(&ends->client.end, (uint32_t)rand_r(&seed) % (2 * SIZE),
					 ROOM);
			break;
		case 4:
			memif_end_send(&ends->client.end, room,
				       1 + (size_t)rand_r(&seed) % (3 * BUFFER));
			break;
		default:
			memif_end_push(&ends->client.end);
		}
		assert_true(ends->client.end.buffers.cache_count <= SIZE);
		if (ends->client.end.state == MEMIF_STATE_BROKEN) {
			ends_connect_again(*state);
			ends = *state;
		}
	}
}
