/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end, with our own server at the other; and one that breaks the rules. */
#include "base/own.h"
#include "memif/client_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tuning.h"
#include "memif/bell.h"
#include "memif/server_end.h"
#include "test.h"

#define LOG2   4
#define SIZE   (1u << LOG2)
#define BUFFER 256
#define ROOM   8192
#define ROUNDS 200000

#define PATIENCE_MS 30000

struct ends {
	struct memif_client client;
	struct memif_server server;
	/* The memory as the server has it, which may write what it likes there. */
	struct memif_ring_memory *to_server, *to_client;
};

static const struct memif_client_config config = {
	.id = 7, .log2_size = LOG2, .buffer_bytes = BUFFER};

static struct memif_message hello(void)
{
	struct memif_server server;
	struct memif_message message;

	memif_server_init(&server, &memif_limits_user);
	memif_server_greet(&server, &message, "test");
	return message;
}

/* Pass the messages one after the other, as over their socket. */
static void connect_both(struct ends *ends)
{
	struct memif_message to_client = hello(), to_server;
	int fd;

	while (memif_client_take(&ends->client, &to_client, &to_server, &fd) == 1) {
		if (to_server.type == MEMIF_INIT)
			assert_int_equal(to_server.init.id, 7);
		assert_int_equal(memif_server_take(&ends->server, &to_server, fd < 0 ? -1 : dup(fd),
						   &to_client),
				 0);
	}
	assert_int_equal(ends->client.end.state, MEMIF_STATE_CONNECTED);
	assert_int_equal(ends->server.end.state, MEMIF_STATE_CONNECTED);
	ends->to_server = ends->server.end.rx.memory;
	ends->to_client = ends->server.end.tx.memory;
}

static int setup_with(void **state, const struct memif_client_config *with)
{
	struct ends *ends = test_calloc(1, sizeof(*ends));

	memif_client_init(&ends->client, with);
	memif_server_init(&ends->server, &memif_limits_user);
	connect_both(ends);
	*state = ends;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, &config);
}

static int teardown(void **state)
{
	struct ends *ends = *state;

	memif_client_fini(&ends->client);
	memif_server_fini(&ends->server);
	test_free(ends);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Make a new connection in the same memory: cmocka remembers what a fixture has allocated. */
static void connect_again(struct ends *ends)
{
	memif_client_fini(&ends->client);
	memif_server_fini(&ends->server);
	memif_client_init(&ends->client, &config);
	memif_server_init(&ends->server, &memif_limits_user);
	connect_both(ends);
}

static bool copy(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
	return true;
}

static void fill(uint8_t *bytes, uint8_t first, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(first + i);
}

static void expect_bytes(const uint8_t *bytes, uint8_t first, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], (uint8_t)(first + i));
}

static int client_receives(struct ends *ends, uint8_t *room)
{
	bool right;

	return memif_end_receive(&ends->client.end, room, ROOM, copy, &right);
}

static int peer_receives(struct ends *ends, uint8_t *room)
{
	bool right;

	return memif_end_receive(&ends->server.end, room, ROOM, copy, &right);
}

TEST(memif_client_take__wants_a_greeting, .bare = true)
{
	static const struct memif_message odd[] = {
		{.type = MEMIF_ACK},
		{.type = MEMIF_CONNECTED},
		{.type = MEMIF_HELLO, .hello = {.min_version = 0x0300, .max_version = 0x0300}},
		{.type = MEMIF_HELLO, .hello = {.min_version = 0x0100, .max_version = 0x0100}},
	};
	struct memif_message answer;
	struct memif_client client;
	int fd;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		memif_client_init(&client, &config);
		assert_int_equal(memif_client_take(&client, &odd[i], &answer, &fd), -EPROTO);
		assert_int_equal(client.end.state, MEMIF_STATE_BROKEN);
		memif_client_fini(&client);
	}
}

TEST(memif_client_take__keeps_to_the_servers_ring_size, .bare = true)
{
	struct memif_message greeting = hello(), answer;
	struct memif_client client;
	int fd;

	greeting.hello.max_log2_ring_size = 2;
	memif_client_init(&client, &config);
	assert_int_equal(memif_client_take(&client, &greeting, &answer, &fd), 1);
	assert_int_equal(client.end.tx.size, 4);
	memif_client_fini(&client);
}

/* Return how many of the client's messages about rings bring a descriptor, up to CONNECT. */
static int describe_rings(struct memif_client *client)
{
	const struct memif_message ack = {.type = MEMIF_ACK};
	struct memif_message greeting = hello(), answer;
	int count = 0, fd;

	assert_int_equal(memif_client_take(client, &greeting, &answer, &fd), 1);
	do {
		assert_int_equal(memif_client_take(client, &ack, &answer, &fd), 1);
		count += answer.type == MEMIF_ADD_RING && fd >= 0;
	} while (answer.type != MEMIF_CONNECT);
	return count;
}

/* The server has its end of the sockets from the same source as we. */
TEST(memif_client_take__sends_no_doorbell_that_is_a_socket, .bare = true)
{
	struct memif_client_config with = config;
	struct memif_client client;
	struct pollfd end;
	int bell[2];

	for (int both = 0; both < 2; both++) {
		with.socket_to_client = true;
		with.socket_to_server = both;
		assert_int_equal(memif_bell_make(bell), 0);
		memif_client_init(&client, &with);
		own_mark(bell[0]);
		memif_end_take_bell(&client.end, bell[0]);
		assert_int_equal(describe_rings(&client), !both);
		assert_int_equal(client.end.wake_fd, bell[0]);
		assert_int_equal(client.end.bell_fd == bell[0], both);
		memif_client_fini(&client);
		/* Another thread closes the client's end. */
		end = (struct pollfd){.fd = bell[1]};
		assert_int_equal(poll(&end, 1, -1), 1);
		assert_true(end.revents & POLLHUP);
		close(bell[1]);
	}
}

TEST(memif_client_take__wants_the_doorbells_first, .bare = true)
{
	struct memif_client_config with = config;
	struct memif_message greeting = hello(), answer;
	struct memif_client client;
	int fd;

	with.socket_to_client = true;
	memif_client_init(&client, &with);
	assert_int_equal(memif_client_take(&client, &greeting, &answer, &fd), -ENOMEM);
	memif_client_fini(&client);
}

TEST(memif_client_take__is_sent_away)
{
	const struct memif_message goodbye = {.type = MEMIF_DISCONNECT};
	struct ends *ends = *state;
	struct memif_message answer;
	int fd;

	assert_int_equal(memif_client_take(&ends->client, &goodbye, &answer, &fd), -ECONNRESET);
}

TEST(memif_client_take__wants_nothing_once_connected)
{
	const struct memif_message acks[] = {{.type = MEMIF_ACK}, {.type = MEMIF_CONNECTED}};
	struct ends *ends = *state;
	struct memif_message answer;
	int fd;

	for (int i = 0; i < 2; i++) {
		ends->client.step = MEMIF_CLIENT_DONE;
		assert_int_equal(memif_client_take(&ends->client, &acks[i], &answer, &fd), -EPROTO);
	}
}

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
		assert_int_equal(memif_end_receive(&ends->server.end, room, 100, copy, &right),
				 -EMSGSIZE);
		assert_int_equal(memif_end_receive(&ends->server.end, room, 100, copy, &right), 50);
		memif_end_send(&ends->server.end, packet, len);
		memif_end_send(&ends->server.end, packet, 50);
		memif_end_push(&ends->server.end);
		assert_int_equal(memif_end_receive(&ends->client.end, room, 100, copy, &right),
				 -EMSGSIZE);
		assert_int_equal(memif_end_receive(&ends->client.end, room, 100, copy, &right), 50);
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

	assert_int_equal(teardown(state), 0);
	assert_int_equal(setup_with(state, &small), 0);
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
		connect_again(*state);
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
		connect_again(*state);
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
		assert_true(ends->client.end.buffers.stock_count <= SIZE);
		if (ends->client.end.state == MEMIF_STATE_BROKEN) {
			connect_again(*state);
			ends = *state;
		}
	}
}

/* The server keeps descriptor and mapping: it has the file, but none of our pages. */
TEST(memif_client_take_back__leaves_the_server_no_pages)
{
	struct ends *ends = *state;
	const int kept = dup(ends->client.memory_fd);
	const off_t bytes = (off_t)ends->client.bytes;
	struct stat file;

	assert_true(kept >= 0);
	assert_int_equal(fstat(kept, &file), 0);
	assert_true(file.st_blocks > 0);
	/* A server cannot prevent their removal either, nor enlarge the file. */
	assert_int_equal(fcntl(kept, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	assert_int_equal(ftruncate(kept, 2 * bytes), -1);
	memif_client_take_back(&ends->client);
	/* Another thread releases the pages. */
	for (int i = 0; i < PATIENCE_MS && file.st_blocks > 0; i++) {
		usleep(1000);
		assert_int_equal(fstat(kept, &file), 0);
	}
	assert_int_equal(file.st_blocks, 0);
	/* The file keeps its size, so the mapping is still good. */
	assert_int_equal(file.st_size, bytes);
	assert_int_equal(__atomic_load_n(&ends->to_client->cookie, __ATOMIC_RELAXED), 0);
	close(kept);
}

/* The program has called mlockall. */
TEST(memif_client_take_back__takes_what_is_locked)
{
	struct ends *ends = *state;
	const int kept = dup(ends->client.memory_fd);
	struct stat file;

	assert_true(kept >= 0);
	assert_int_equal(mlock(ends->client.memory, 1), 0);
	memif_client_take_back(&ends->client);
	assert_int_equal(fstat(kept, &file), 0);
	for (int i = 0; i < PATIENCE_MS && file.st_blocks > 0; i++) {
		usleep(1000);
		assert_int_equal(fstat(kept, &file), 0);
	}
	assert_int_equal(file.st_blocks, 0);
	close(kept);
}

/* A last acknowledgement, from a program that ends: its peer waits for it. */
TEST(memif_client_fini__leaves_the_server_what_it_was_sent)
{
	struct ends *ends = *state;
	uint8_t packet[BUFFER], room[ROOM];

	fill(packet, 7, sizeof(packet));
	assert_int_equal(memif_end_send(&ends->client.end, packet, sizeof(packet)), 0);
	memif_end_push(&ends->client.end);
	memif_client_fini(&ends->client);
	/* Another thread would have released the buffer by now. */
	usleep(100000);
	assert_int_equal(peer_receives(ends, room), sizeof(packet));
	expect_bytes(room, 7, sizeof(packet));
}

#define LONG_LOG2  5
#define LONG_SIZE  (1u << LONG_LOG2)
#define LONG_BYTES 1500
#define TURNS	   2000 /* of the ring */

static int setup_long(void **state)
{
	static const struct memif_client_config with = {
		.id = 7, .log2_size = LONG_LOG2, .buffer_bytes = 2048};

	return setup_with(state, &with);
}

static int teardown_long(void **state)
{
	store_force(STORE_WAYS);
	tuning_without("");
	return teardown(state);
}

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
		assert_int_equal(memif_end_receive(end, room, ROOM, copy, &right), LONG_BYTES);
		assert_int_equal(room[0], first);
		assert_int_equal(room[LONG_BYTES - 1], (uint8_t)(first + LONG_BYTES - 1));
	}
	assert_int_equal(memif_end_receive(end, room, ROOM, copy, &right), 0);
	memif_end_release(end);
}

/* A full ring gives all buffers back at once: the last of them comes first now, or the oldest. */
TEST(memif_end_place__takes_buffers_in_the_forced_way, .setup = setup_long,
     .teardown = teardown_long)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end;
	uint8_t *places[2][LONG_SIZE];

	for (int way = 0; way < STORE_WAYS; way++) {
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

TEST(memif_end_send__verified_data_in_each_way, .setup = setup_long, .teardown = teardown_long)
{
	struct ends *ends = *state;
	uint8_t room[ROOM];

	for (int way = 0; way < STORE_WAYS; way++) {
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
TEST(memif_end_push__tries_the_ways, .setup = setup_long, .teardown = teardown_long)
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

TEST(memif_end_push__without_choice_tries_nothing, .setup = setup_long, .teardown = teardown_long)
{
	struct ends *ends = *state;
	struct memif_end *client = &ends->client.end, *server = &ends->server.end;

	assert_int_equal(tuning_without("store-choice"), 0);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(fill_ring(client, (uint8_t)i), LONG_SIZE);
		assert_int_equal(client->placing, STORE_RECENT);
		empty_ring(server, (uint8_t)i, LONG_SIZE);
	}
	assert_false(client->meter.choice.tries);
	assert_int_equal(client->meter.choice.trials, 0);
	assert_false(server->taker.choice.tries);
}

/* The other end's index is not trusted: a wrong one ends the connection, and no trial hangs. */
TEST(memif_end_push__survives_any_index_while_it_tries, .setup = setup_long,
     .teardown = teardown_long)
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
