/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of several pairs of rings in one connection: pmd/memif/doorbell.c, and both ends together.
 */
#include "memif/doorbell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_client.h"
#include "memif/client_end.h"
#include "memif/server_end.h"
#include "open_fds.h"
#include "test.h"

#define BUFFER 256
#define LOG2   4

struct ends {
	struct memif_client client;
	struct memif_server server;
};

static struct memif_client_config config(uint8_t queues)
{
	return (struct memif_client_config){
		.log2_size = LOG2, .buffer_bytes = BUFFER, .queues = queues};
}

static void init(struct ends *ends, uint8_t server_queues, uint8_t client_queues)
{
	const struct memif_client_config with = config(client_queues);

	memif_client_init(&ends->client, &with);
	memif_server_init(&ends->server, &memif_limits_user);
	ends->server.queues = server_queues;
}

/* Pass the messages on, as over their socket, the first of which may have been changed. */
static void connect_from(struct ends *ends, struct memif_message *to_client)
{
	struct memif_message to_server;
	int fd;

	while (memif_client_take(&ends->client, to_client, &to_server, &fd) == 1)
		assert_int_equal(memif_server_take(&ends->server, &to_server, fd < 0 ? -1 : dup(fd),
						   to_client),
				 0);
	assert_int_equal(ends->client.end.state, MEMIF_STATE_CONNECTED);
	assert_int_equal(ends->server.end.state, MEMIF_STATE_CONNECTED);
}

static void connect_both(struct ends *ends)
{
	struct memif_message hello;

	memif_server_hello(&ends->server, &hello, "uroce");
	connect_from(ends, &hello);
}

static void fini(struct ends *ends)
{
	memif_client_fini(&ends->client);
	memif_server_fini(&ends->server);
}

static bool copy(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
	return true;
}

static void send_byte(struct memif_end *end, uint8_t byte)
{
	assert_int_equal(memif_end_send(end, &byte, 1), 0);
	memif_end_push(end);
}

static void expect_byte(struct memif_end *end, uint8_t byte)
{
	uint8_t room[BUFFER];
	bool right;

	assert_int_equal(memif_end_receive(end, room, sizeof(room), copy, &right), 1);
	assert_int_equal(room[0], byte);
	assert_int_equal(memif_end_receive(end, room, sizeof(room), copy, &right), 0);
	memif_end_release(end);
}

/* Each pair has rings of its own, in which nothing of another one arrives. */
static void expect_traffic(struct ends *ends, uint32_t pairs)
{
	assert_int_equal(ends->client.pairs, pairs);
	assert_int_equal(ends->server.pairs, pairs);
	for (uint32_t i = 0; i < pairs; i++) {
		send_byte(memif_client_end(&ends->client, i), (uint8_t)i);
		send_byte(memif_server_end(&ends->server, i), (uint8_t)(i + 100));
	}
	for (uint32_t i = 0; i < pairs; i++) {
		expect_byte(memif_server_end(&ends->server, i), (uint8_t)i);
		expect_byte(memif_client_end(&ends->client, i), (uint8_t)(i + 100));
	}
}

TEST(memif_pairs_read_name__knows_our_names_only)
{
	static const char *const others[] = {
		"",
		"DPDK 22.11.11",
		"uroced",
		"uroce, engines: 0",
		"uroce",
		"uroce, engines: 17",
		"uroce, engines: 4294967298",
		"uroce, engines: 2 ",
		"uroce, engines: 2uroce, engines: ",
	};
	char name[MEMIF_NAME_LEN];

	for (uint32_t queues = 0; queues <= MEMIF_QUEUES_MAX; queues++) {
		memif_pairs_write_name(name, queues);
		assert_int_equal(memif_pairs_read_name(name), queues);
	}
	/* What older ones send. */
	memif_pairs_write_name(name, 0);
	assert_string_equal(name, "uroce");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		memset(name, 0, sizeof(name));
		memcpy(name, others[i], RTE_MIN(strlen(others[i]), sizeof(name)));
		assert_int_equal(memif_pairs_read_name(name), 0);
	}
	/* Without an end. */
	memset(name, 'u', sizeof(name));
	assert_int_equal(memif_pairs_read_name(name), 0);
}

TEST(memif_pairs_client__each_engine_has_a_pair_with_each)
{
	for (uint32_t servers = 1; servers <= 5; servers++) {
		for (uint32_t clients = 1; clients <= 5; clients++) {
			bool has[5][5] = {{false}};

			for (uint32_t i = 0; i < servers * clients; i++) {
				const uint32_t client = memif_pairs_client(i, servers);
				const uint32_t server = memif_pairs_server(i, servers);

				assert_true(client < clients && server < servers);
				assert_false(has[client][server]);
				has[client][server] = true;
			}
		}
	}
}

TEST(memif_client_take__makes_a_pair_for_each_two_engines)
{
	static const uint8_t counts[][3] = {{1, 1, 1}, {2, 2, 4},  {1, 3, 3},
					    {3, 1, 3}, {4, 8, 32}, {8, 8, 64}};
	const unsigned int before = fds_count();
	struct ends ends;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		init(&ends, counts[i][0], counts[i][1]);
		connect_both(&ends);
		assert_int_equal(ends.client.server_queues, counts[i][0]);
		assert_true(ends.client.server_steers && ends.server.client_steers);
		expect_traffic(&ends, counts[i][2]);
		fini(&ends);
	}
	fds_wait(before);
}

/* A region of 4 GiB has no room for many rings of this size. */
TEST(memif_client_take__keeps_to_32_bits_of_memory)
{
	const struct memif_message ack = {.type = MEMIF_ACK};
	struct memif_message message, answer;
	struct ends ends;
	int fd;

	for (uint8_t queues = 3; queues <= 4; queues++) {
		init(&ends, 2, queues);
		ends.client.config.log2_size = MEMIF_LOG2_MAX;
		ends.client.config.buffer_bytes = 20000;
		memif_server_hello(&ends.server, &message, "uroce");
		/* 656 MB each: 8 would be more than 4 GiB. */
		if (queues == 4) {
			assert_int_equal(memif_client_take(&ends.client, &message, &answer, &fd),
					 -ENOTSUP);
		} else {
			assert_int_equal(memif_client_take(&ends.client, &message, &answer, &fd),
					 1);
			assert_int_equal(ends.client.pairs, 6);
			assert_true(ends.client.bytes <= UINT32_MAX);
			assert_int_equal(memif_client_take(&ends.client, &ack, &answer, &fd), 1);
			assert_int_equal(answer.add_region.bytes, ends.client.bytes);
		}
		fini(&ends);
	}
}

/* A port whose packets must pass one place has one engine, and one pair with another's one engine.
 */
TEST(memif_client_take__one_pair_with_who_wants_one)
{
	struct memif_message hello;
	struct ends ends;

	for (uint8_t queues = 0; queues < 2; queues++) {
		init(&ends, queues ? 0 : 1, queues ? 1 : 0);
		connect_both(&ends);
		assert_false(ends.client.server_steers || ends.server.client_steers);
		expect_traffic(&ends, 1);
		fini(&ends);
	}
	/* What other programs may do. */
	init(&ends, 4, 1);
	memif_server_hello(&ends.server, &hello, "uroce");
	assert_int_equal(hello.hello.max_ring_to_server, 3);
	assert_int_equal(hello.hello.max_ring_to_client, 3);
	fini(&ends);
}

/* Another program's two directions have limits of their own. */
TEST(memif_client_take__needs_a_pair_for_each_engine)
{
	static const struct {
		uint16_t to_client, to_server;
		bool enough;
	} cases[] = {{2, 63, false}, {63, 2, false}, {0, 0, false},
		     {3, 3, true},   {63, 3, true},  {UINT16_MAX, UINT16_MAX, true}};
	struct memif_message hello, answer;
	struct ends ends;
	int fd;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		init(&ends, 4, 4);
		memif_server_hello(&ends.server, &hello, "");
		strcpy(hello.hello.name, "DPDK 22.11.11");
		hello.hello.max_ring_to_client = cases[i].to_client;
		hello.hello.max_ring_to_server = cases[i].to_server;
		if (!cases[i].enough) {
			assert_int_equal(memif_client_take(&ends.client, &hello, &answer, &fd),
					 -ENOTSUP);
		} else {
			connect_from(&ends, &hello);
			assert_int_equal(ends.client.server_queues, 1);
			assert_false(ends.client.server_steers);
			expect_traffic(&ends, 4);
		}
		fini(&ends);
	}
}

/* A rule broken in one ring is found there. */
TEST(memif_end_receive__trusts_no_other_ring_either)
{
	uint8_t room[BUFFER];
	struct ends ends;
	bool right;

	init(&ends, 2, 2);
	connect_both(&ends);
	memif_client_end(&ends.client, 3)->tx.memory->head = 0x8000;
	assert_int_equal(memif_end_receive(memif_server_end(&ends.server, 3), room, sizeof(room),
					   copy, &right),
			 -EPROTO);
	memif_server_end(&ends.server, 2)->tx.memory->tail = 0x8000;
	assert_int_equal(memif_end_receive(memif_client_end(&ends.client, 2), room, sizeof(room),
					   copy, &right),
			 -EPROTO);
	assert_int_equal(ends.server.end.state, MEMIF_STATE_CONNECTED);
	fini(&ends);
}
