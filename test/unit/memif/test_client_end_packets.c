/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between the client's end and our own server. */
#include "client_end_rig.h"

#include <errno.h>
#include <string.h>

#include "test.h"

TEST_FIXTURE(ends_set_up, ends_tear_down);

TEST(memif_end_send__arrives)
{
	struct ends *ends = *state;
	uint8_t packet[ROOM], room[ROOM];

	/* Shorter and longer than a buffer; the indices wrap. */
	for (uint32_t i = 0; i < 70000; i++) {
		const size_t len = 1 + i % (4 * BUFFER);

		if (i > 1000 && i % 97 != 0)
			continue;
		fill(packet, (uint8_t)i, len);
		assert_int_equal(memif_end_send(&ends->client.end, packet, len), 0);
		memif_end_push(&ends->client.end);
		assert_true(memif_end_waits(&ends->server.end));
		assert_int_equal(peer_receives(ends, room), len);
		expect_bytes(room, (uint8_t)i, len);
		memif_end_release(&ends->server.end);
		assert_int_equal(memif_end_send(&ends->server.end, packet, len), 0);
		memif_end_push(&ends->server.end);
		assert_true(memif_end_waits(&ends->client.end));
		assert_int_equal(client_receives(ends, room), len);
		expect_bytes(room, (uint8_t)i, len);
		memif_end_release(&ends->client.end);
	}
	assert_int_equal(client_receives(ends, room), 0);
	assert_int_equal(peer_receives(ends, room), 0);
}

/* A packet that takes another way may follow these. */
TEST(memif_end_has_taken__what_the_server_has_read)
{
	struct ends *ends = *state;
	struct memif_end *end = &ends->client.end;
	uint8_t bytes[BUFFER] = {0};
	uint16_t sent = memif_end_sent(end);

	assert_true(memif_end_has_taken(end, sent));
	/* Over the end of the ring, and of the index. */
	for (int i = 0; i < 3 * UINT16_MAX; i++) {
		assert_int_equal(memif_end_send(end, bytes, sizeof(bytes)), 0);
		memif_end_push(end);
		sent = memif_end_sent(end);
		assert_false(memif_end_has_taken(end, sent));
		assert_int_equal(peer_receives(ends, bytes), sizeof(bytes));
		memif_end_release(&ends->server.end);
		assert_true(memif_end_has_taken(end, sent));
	}
	/* An old mark: all has been taken. */
	assert_true(memif_end_has_taken(end, (uint16_t)(sent + 1)));
	end->state = MEMIF_STATE_BROKEN;
	assert_true(memif_end_has_taken(end, (uint16_t)(sent + 1)));
}

/* Return how many packets of an end the other end has not taken. */
static uint32_t waiting(const struct memif_end *end)
{
	uint32_t given, taken, dropped;

	assert_true(memif_end_tell_taken(end, &given, &taken, &dropped));
	assert_int_equal(dropped, 0);
	assert_int_equal((given - taken) % 65536, 0);
	return (given - taken) / 65536;
}

TEST(memif_end_tell_taken__of_both_roles)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end, *server = &ends->server.end;
	uint8_t bytes[BUFFER] = {0};
	uint32_t given, taken, dropped;

	/* Over the end of the ring, and of the index. */
	for (int i = 0; i < UINT16_MAX; i++) {
		assert_int_equal(waiting(client), 0);
		assert_int_equal(waiting(server), 0);
		for (uint32_t n = 1; n <= 2; n++) {
			assert_int_equal(memif_end_send(client, bytes, sizeof(bytes)), 0);
			assert_int_equal(memif_end_send(server, bytes, sizeof(bytes)), 0);
			assert_int_equal(waiting(client), n);
			assert_int_equal(waiting(server), n);
		}
		memif_end_push(client);
		memif_end_push(server);
		for (uint32_t n = 2; n-- > 0;) {
			assert_int_equal(peer_receives(ends, bytes), sizeof(bytes));
			memif_end_release(server);
			assert_int_equal(waiting(client), n);
			assert_int_equal(client_receives(ends, bytes), sizeof(bytes));
			memif_end_release(client);
			assert_int_equal(waiting(server), n);
		}
	}
	/* An index that cannot be. */
	*(uint16_t *)(uintptr_t)client->tx.theirs = (uint16_t)(client->tx.own + 1);
	assert_false(memif_end_tell_taken(client, &given, &taken, &dropped));
	client->state = MEMIF_STATE_BROKEN;
	assert_false(memif_end_tell_taken(client, &given, &taken, &dropped));
}

TEST(memif_end_tell_unread__to_the_client)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end, *server = &ends->server.end;

	memif_end_tell_unread(client, 5);
	assert_int_equal(memif_end_unread(client), 0);
	assert_int_equal(memif_end_unread(server), 0);
	memif_end_tell_unread(server, UINT64_MAX);
	assert_true(memif_end_unread(client) == UINT64_MAX);
	memif_end_tell_unread(server, 6);
	assert_int_equal(memif_end_unread(client), 6);
	server->state = MEMIF_STATE_BROKEN;
	memif_end_tell_unread(server, 0);
	assert_int_equal(memif_end_unread(client), 6);
	client->state = MEMIF_STATE_BROKEN;
	assert_int_equal(memif_end_unread(client), 0);
}

/* A client cannot tell the server anything, and an end without a connection has no memory. */
TEST(memif_end_tell_dropped__to_the_client)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end, *server = &ends->server.end;
	uint32_t given, taken, dropped;

	memif_end_tell_dropped(server, UINT32_MAX);
	memif_end_tell_dropped(client, 5);
	assert_true(memif_end_tell_taken(client, &given, &taken, &dropped));
	assert_int_equal(dropped, UINT32_MAX);
	assert_true(memif_end_tell_taken(server, &given, &taken, &dropped));
	assert_int_equal(dropped, 0);
	server->state = MEMIF_STATE_BROKEN;
	memif_end_tell_dropped(server, 7);
	assert_true(memif_end_tell_taken(client, &given, &taken, &dropped));
	assert_int_equal(dropped, UINT32_MAX);
}

TEST(memif_end_has_received__what_had_arrived)
{
	struct ends *ends = *state;
	struct memif_end *end = &ends->client.end;
	uint8_t bytes[BUFFER] = {0};
	uint16_t arrived = memif_end_arrived(end);

	assert_true(memif_end_has_received(end, arrived));
	for (int i = 0; i < 3; i++)
		assert_int_equal(memif_end_send(&ends->server.end, bytes, sizeof(bytes)), 0);
	assert_int_equal(memif_end_arrived(end), arrived);
	memif_end_push(&ends->server.end);
	arrived = memif_end_arrived(end);
	for (int i = 0; i < 3; i++) {
		assert_false(memif_end_has_received(end, arrived));
		assert_int_equal(client_receives(ends, bytes), sizeof(bytes));
	}
	assert_true(memif_end_has_received(end, arrived));
}

TEST(memif_end_place__is_seen_when_pushed)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];

	fill(memif_end_place(&ends->client.end, 200), 5, 200);
	memif_end_placed(&ends->client.end, 200);
	assert_int_equal(peer_receives(ends, room), 0);
	memif_end_push(&ends->client.end);
	assert_int_equal(peer_receives(ends, room), 200);
	expect_bytes(room, 5, 200);
	fill(memif_end_place(&ends->server.end, 100), 9, 100);
	memif_end_placed(&ends->server.end, 100);
	assert_int_equal(client_receives(ends, room), 0);
	memif_end_push(&ends->server.end);
	assert_int_equal(client_receives(ends, room), 100);
	expect_bytes(room, 9, 100);
}

/* An expected packet may never come, and there may be no room for it. */
TEST(memif_end_expect__changes_nothing)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];

	for (uint32_t i = 0; i < 3 * SIZE; i++) {
		for (uint32_t ahead = 0; ahead < 2 * SIZE; ahead++) {
			memif_end_expect(&ends->client.end, ahead, ROOM);
			memif_end_expect(&ends->server.end, ahead, ROOM);
		}
		fill(room, (uint8_t)i, 100);
		assert_int_equal(memif_end_send(&ends->client.end, room, 100), 0);
		assert_int_equal(memif_end_send(&ends->server.end, room, 100), 0);
		if (i % (SIZE / 2) != 0)
			continue;
		memif_end_push(&ends->client.end);
		memif_end_push(&ends->server.end);
		while (peer_receives(ends, room) > 0)
			expect_bytes(room, room[0], 100);
		assert_int_equal(room[0], i);
		while (client_receives(ends, room) > 0)
			expect_bytes(room, room[0], 100);
		assert_int_equal(room[0], i);
		memif_end_release(&ends->server.end);
		memif_end_release(&ends->client.end);
	}
}

TEST(memif_end_place__has_as_many_as_the_ring)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];
	uint8_t *places[SIZE];

	assert_null(memif_end_place(&ends->client.end, BUFFER + 1));
	for (uint32_t i = 0; i < SIZE; i++) {
		assert_true(memif_end_has_room(&ends->client.end));
		places[i] = memif_end_place(&ends->client.end, BUFFER);
		assert_non_null(places[i]);
		for (uint32_t k = 0; k < i; k++)
			assert_ptr_not_equal(places[k], places[i]);
		memif_end_placed(&ends->client.end, 64);
	}
	assert_false(memif_end_has_room(&ends->client.end));
	assert_null(memif_end_place(&ends->client.end, 1));
	memif_end_push(&ends->client.end);
	assert_int_equal(peer_receives(ends, room), 64);
	assert_null(memif_end_place(&ends->client.end, 1));
	memif_end_release(&ends->server.end);
	/* The one that came back. */
	assert_ptr_equal(memif_end_place(&ends->client.end, 1), places[0]);
}

TEST(memif_end_place__has_as_many_as_are_ready)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];

	for (uint32_t i = 0; i < SIZE; i++) {
		assert_non_null(memif_end_place(&ends->server.end, BUFFER));
		assert_null(memif_end_place(&ends->server.end, BUFFER + 1));
		memif_end_placed(&ends->server.end, 64);
	}
	assert_false(memif_end_has_room(&ends->server.end));
	memif_end_push(&ends->server.end);
	assert_int_equal(client_receives(ends, room), 64);
	assert_false(memif_end_has_room(&ends->server.end));
	memif_end_release(&ends->client.end);
	assert_true(memif_end_has_room(&ends->server.end));
}

TEST(memif_end_send__does_not_fit)
{
	struct ends *ends = *state;
	uint8_t packet[ROOM] = {0};

	assert_int_equal(memif_end_send(&ends->client.end, packet, SIZE * BUFFER + 1), -EMSGSIZE);
	assert_int_equal(memif_end_send(&ends->server.end, packet, SIZE * BUFFER + 1), -EMSGSIZE);
	assert_int_equal(memif_end_send(&ends->client.end, packet, 4 * BUFFER), 0);
	assert_int_equal(memif_end_send(&ends->client.end, packet, (SIZE - 3) * BUFFER), -EAGAIN);
	assert_int_equal(memif_end_send(&ends->server.end, packet, 4 * BUFFER), 0);
	assert_int_equal(memif_end_send(&ends->server.end, packet, (SIZE - 3) * BUFFER), -EAGAIN);
}

/* A packet longer than the buffer is lost, and no other. */
TEST(memif_end_receive__goes_on_after_too_long_ones)
{
	struct ends *ends = *state;
	uint8_t packet[ROOM] = {0}, room[100];
	bool right;

	for (int i = 0; i < 2; i++) {
		const size_t len = i == 0 ? 3 * BUFFER : 101;

		memif_end_send(&ends->client.end, packet, len);
		memif_end_send(&ends->client.end, packet, 50);
		memif_end_push(&ends->client.end);
		assert_int_equal(memif_end_receive(&ends->server.end, room, 100, ends_copy, &right),
				 -EMSGSIZE);
		assert_int_equal(memif_end_receive(&ends->server.end, room, 100, ends_copy, &right),
				 50);
		memif_end_send(&ends->server.end, packet, len);
		memif_end_send(&ends->server.end, packet, 50);
		memif_end_push(&ends->server.end);
		assert_int_equal(memif_end_receive(&ends->client.end, room, 100, ends_copy, &right),
				 -EMSGSIZE);
		assert_int_equal(memif_end_receive(&ends->client.end, room, 100, ends_copy, &right),
				 50);
	}
}

TEST(memif_end_receive__waits_for_the_rest)
{
	struct ends *ends = *state;
	uint8_t packet[ROOM], room[ROOM];

	fill(packet, 1, 2 * BUFFER);
	memif_end_send(&ends->client.end, packet, 2 * BUFFER);
	__atomic_store_n(&ends->to_server->head, 1, __ATOMIC_RELEASE);
	assert_int_equal(peer_receives(ends, room), 0);
	memif_end_push(&ends->client.end);
	assert_int_equal(peer_receives(ends, room), 2 * BUFFER);
	expect_bytes(room, 1, 2 * BUFFER);
	memif_end_send(&ends->server.end, packet, 2 * BUFFER);
	__atomic_store_n(&ends->to_client->tail, 1, __ATOMIC_RELEASE);
	assert_int_equal(client_receives(ends, room), 0);
	memif_end_push(&ends->server.end);
	assert_int_equal(client_receives(ends, room), 2 * BUFFER);
	expect_bytes(room, 1, 2 * BUFFER);
}

/* A packet whose rest is missing keeps no thread awake, and is not looked at again. */
TEST(memif_end_waits__not_for_a_packet_whose_rest_does_not_come)
{
	struct ends *ends = *state;
	uint8_t packet[ROOM], room[ROOM];

	fill(packet, 1, 3 * BUFFER);
	memif_end_send(&ends->client.end, packet, 3 * BUFFER);
	memif_end_send(&ends->server.end, packet, 3 * BUFFER);
	for (uint16_t there = 1; there <= 3; there++) {
		__atomic_store_n(&ends->to_server->head, there, __ATOMIC_RELEASE);
		__atomic_store_n(&ends->to_client->tail, there, __ATOMIC_RELEASE);
		assert_true(memif_end_waits(&ends->server.end));
		assert_true(memif_end_waits(&ends->client.end));
		if (there == 3)
			break;
		/* The result shows if the packet was looked at again. */
		for (int i = 0; i < 2; i++) {
			assert_int_equal(peer_receives(ends, room), 0);
			assert_int_equal(client_receives(ends, room), 0);
			assert_false(memif_end_waits(&ends->server.end));
			assert_false(memif_end_waits(&ends->client.end));
			memset(room, 0, sizeof(room));
		}
		assert_int_equal(peer_receives(ends, room), 0);
		assert_int_equal(client_receives(ends, room), 0);
		assert_int_equal(room[0], 0);
	}
	assert_int_equal(peer_receives(ends, room), 3 * BUFFER);
	expect_bytes(room, 1, 3 * BUFFER);
	assert_int_equal(client_receives(ends, room), 3 * BUFFER);
	expect_bytes(room, 1, 3 * BUFFER);
	assert_false(memif_end_waits(&ends->server.end));
	assert_false(memif_end_waits(&ends->client.end));
}

/* A server takes no longer ones, and would end the connection. */
TEST(memif_end_send__keeps_to_what_servers_take)
{
	static const struct memif_client_config small = {
		.id = 7, .log2_size = 8, .buffer_bytes = 16};
	struct ends *ends = *state;
	uint8_t packet[ROOM] = {0}, room[ROOM];
	const size_t most = MEMIF_CHAIN_MAX * small.buffer_bytes;

	assert_int_equal(ends_tear_down(state), 0);
	assert_int_equal(ends_set_up_with(state, &small), 0);
	ends = *state;
	assert_int_equal(memif_end_send(&ends->client.end, packet, most + 1), -EMSGSIZE);
	assert_int_equal(memif_end_send(&ends->server.end, packet, most + 1), -EMSGSIZE);
	assert_int_equal(memif_end_send(&ends->client.end, packet, most), 0);
	assert_int_equal(memif_end_send(&ends->server.end, packet, most), 0);
	memif_end_push(&ends->client.end);
	memif_end_push(&ends->server.end);
	assert_int_equal(peer_receives(ends, room), most);
	assert_int_equal(client_receives(ends, room), most);
}

TEST(memif_end_push__tells_who_sleeps)
{
	struct ends *ends = *state;
	uint8_t packet[64] = {0};

	for (int on = 0; on < 2; on++) {
		memif_end_listen(&ends->server.end, on);
		memif_end_listen(&ends->client.end, on);
		memif_end_send(&ends->client.end, packet, sizeof(packet));
		assert_int_equal(memif_end_push(&ends->client.end), on);
		memif_end_send(&ends->server.end, packet, sizeof(packet));
		assert_int_equal(memif_end_push(&ends->server.end), on);
	}
}
