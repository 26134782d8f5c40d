/* SPDX-License-Identifier: BSD-3-Clause */
/* How the client's end and our own server store long packets. */
#include "client_end_rig.h"

#include <errno.h>
#include <string.h>

#include "base/tuning.h"
#include "test.h"

#define LONG_LOG2  5
#define LONG_SIZE  (1u << LONG_LOG2)
#define LONG_BYTES 1500
#define TURNS	   2000 /* of the ring */

static int set_up(void **state)
{
	static const struct memif_client_config with = {
		.id = 7, .log2_size = LONG_LOG2, .buffer_bytes = 2048};

	return ends_set_up_with(state, &with);
}

static int tear_down(void **state)
{
	store_force(STORE_WAYS);
	tuning_without("");
	return ends_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

/* Send until the ring is full; all packets begin with `first`. Return how many there were. */
static uint32_t fill_ring(struct memif_end *end, uint8_t first)
{
	uint32_t count = 0;
	uint8_t *place;

	while ((place = memif_end_place(end, LONG_BYTES)) != NULL) {
		fill(place, first, LONG_BYTES);
		memif_end_placed(end, LONG_BYTES);
		count++;
	}
	memif_end_push(end);
	return count;
}

static void empty_ring(struct memif_end *end, uint8_t first, uint32_t count)
{
	uint8_t room[ROOM];
	bool right;

	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(memif_end_receive(end, room, ROOM, ends_copy, &right), LONG_BYTES);
		assert_int_equal(room[0], first);
		assert_int_equal(room[LONG_BYTES - 1], (uint8_t)(first + LONG_BYTES - 1));
	}
	assert_int_equal(memif_end_receive(end, room, ROOM, ends_copy, &right), 0);
	memif_end_release(end);
}

/* A full ring gives all buffers back at once: the last of them comes first now, or the oldest. */
TEST(memif_end_place__takes_buffers_in_the_forced_way)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end;
	uint8_t *places[2][LONG_SIZE];

	for (int way = STORE_ROUND; way <= STORE_PAST; way++) {
		store_force((enum store_way)way);
		for (uint32_t round = 0; round < 2; round++) {
			for (uint32_t i = 0; i < LONG_SIZE; i++) {
				places[round][i] = memif_end_place(client, LONG_BYTES);
				assert_non_null(places[round][i]);
				assert_int_equal(client->placing, way);
				fill(places[round][i], (uint8_t)way, LONG_BYTES);
				memif_end_placed(client, LONG_BYTES);
			}
			assert_null(memif_end_place(client, LONG_BYTES));
			memif_end_push(client);
			empty_ring(&ends->server.end, (uint8_t)way, LONG_SIZE);
		}
		for (uint32_t i = 0; i < LONG_SIZE; i++)
			assert_ptr_equal(places[1][i],
					 places[0][way == STORE_ROUND ? i : LONG_SIZE - 1 - i]);
	}
}

TEST(memif_end_send__verified_data_in_each_way)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];

	for (int way = STORE_ROUND; way <= STORE_PAST; way++) {
		store_force((enum store_way)way);
		for (uint32_t i = 0; i < 5 * LONG_SIZE; i++) {
			fill(room, (uint8_t)(i + way), LONG_BYTES);
			assert_int_equal(memif_end_send(&ends->client.end, room, LONG_BYTES), 0);
			assert_int_equal(memif_end_send(&ends->server.end, room, LONG_BYTES), 0);
			memif_end_push(&ends->client.end);
			memif_end_push(&ends->server.end);
			memset(room, 0, sizeof(room));
			assert_int_equal(peer_receives(ends, room), LONG_BYTES);
			expect_bytes(room, (uint8_t)(i + way), LONG_BYTES);
			memset(room, 0, sizeof(room));
			assert_int_equal(client_receives(ends, room), LONG_BYTES);
			expect_bytes(room, (uint8_t)(i + way), LONG_BYTES);
			memif_end_release(&ends->server.end);
			memif_end_release(&ends->client.end);
		}
	}
}

/* Both directions try their ways while they send, and lose nothing. Whether trials come to a result
 * depends on the time that the other programs of the machine leave. */
TEST(memif_end_push__tries_the_ways)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end, *server = &ends->server.end;
	uint32_t tries = 0;

	for (uint32_t i = 0; i < TURNS; i++) {
		assert_int_equal(fill_ring(client, (uint8_t)i), LONG_SIZE);
		assert_int_equal(fill_ring(server, (uint8_t)i), LONG_SIZE);
		empty_ring(server, (uint8_t)i, LONG_SIZE);
		empty_ring(client, (uint8_t)i, LONG_SIZE);
		tries += client->meter.choice.tries && server->meter.choice.tries;
	}
	assert_true(tries > 0);
}

TEST(memif_end_push__without_choice_tries_nothing)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end, *server = &ends->server.end;

	assert_int_equal(tuning_without("store-choice"), 0);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(fill_ring(client, (uint8_t)i), LONG_SIZE);
		assert_int_equal(client->placing, STORE_ROUND);
		empty_ring(server, (uint8_t)i, LONG_SIZE);
	}
	assert_false(client->meter.choice.tries);
	assert_int_equal(client->meter.choice.trials, 0);
	assert_false(server->taker.choice.tries);
}

/* The other end's index is not trusted: a wrong one ends the connection, and no trial hangs. */
TEST(memif_end_push__survives_any_index_while_it_tries)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end;
	uint32_t taken;

	for (uint32_t i = 0; i < 4; i++) {
		fill_ring(client, 1);
		empty_ring(&ends->server.end, 1, LONG_SIZE);
	}
	assert_true(client->meter.choice.tries);
	/* The last ring of packets was taken after the last push. */
	taken = client->meter.taken;
	assert_non_null(memif_end_place(client, LONG_BYTES));
	memif_end_placed(client, LONG_BYTES);
	ends->to_server->tail = (uint16_t)(ends->to_server->tail + 40000);
	memif_end_push(client);
	assert_int_equal(client->meter.taken, taken);
	/* The client reads the index when it needs the buffers. */
	fill_ring(client, 1);
	assert_int_equal(client->state, MEMIF_STATE_BROKEN);
}
