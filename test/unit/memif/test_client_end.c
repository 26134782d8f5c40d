/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end: its messages, and what it leaves to a server. */
#include "base/own.h"
#include "memif/client_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client_end_rig.h"
#include "memif/doorbell.h"
#include "test.h"

#define TIMEOUT_MS 30000

TEST_FIXTURE(ends_set_up, ends_tear_down);

TEST(memif_client_take__wants_a_hello, .bare = true)
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
		memif_client_init(&client, &ends_config);
		assert_int_equal(memif_client_take(&client, &odd[i], &answer, &fd), -EPROTO);
		assert_int_equal(client.end.state, MEMIF_STATE_BROKEN);
		memif_client_fini(&client);
	}
}

TEST(memif_client_take__keeps_to_the_servers_ring_size, .bare = true)
{
	struct memif_message hello = ends_hello(), answer;
	struct memif_client client;
	int fd;

	hello.hello.max_log2_ring_size = 2;
	memif_client_init(&client, &ends_config);
	assert_int_equal(memif_client_take(&client, &hello, &answer, &fd), 1);
	assert_int_equal(client.end.tx.size, 4);
	memif_client_fini(&client);
}

/* Return how many of the client's messages about rings bring a descriptor, up to CONNECT. */
static int describe_rings(struct memif_client *client)
{
	const struct memif_message ack = {.type = MEMIF_ACK};
	struct memif_message hello = ends_hello(), answer;
	int count = 0, fd;

	assert_int_equal(memif_client_take(client, &hello, &answer, &fd), 1);
	do {
		assert_int_equal(memif_client_take(client, &ack, &answer, &fd), 1);
		count += answer.type == MEMIF_ADD_RING && fd >= 0;
	} while (answer.type != MEMIF_CONNECT);
	return count;
}

/* The server has its end of the sockets from the same source as we. */
TEST(memif_client_take__sends_no_doorbell_that_is_a_socket, .bare = true)
{
	struct memif_client_config with = ends_config;
	struct memif_client client;
	struct pollfd end;
	int doorbell[2];

	with.socket_to_client = true;
	assert_int_equal(memif_doorbell_make(doorbell), 0);
	memif_client_init(&client, &with);
	own_mark(doorbell[0]);
	memif_end_take_doorbell(&client.end, doorbell[0]);
	assert_int_equal(describe_rings(&client), 1);
	assert_int_equal(client.end.wake_fd, doorbell[0]);
	assert_int_not_equal(client.end.doorbell_fd, doorbell[0]);
	memif_client_fini(&client);
	/* Another thread closes the client's end. */
	end = (struct pollfd){.fd = doorbell[1]};
	assert_int_equal(poll(&end, 1, -1), 1);
	assert_true(end.revents & POLLHUP);
	close(doorbell[1]);
}

TEST(memif_client_take__wants_the_doorbells_first, .bare = true)
{
	struct memif_client_config with = ends_config;
	struct memif_message hello = ends_hello(), answer;
	struct memif_client client;
	int fd;

	with.socket_to_client = true;
	memif_client_init(&client, &with);
	assert_int_equal(memif_client_take(&client, &hello, &answer, &fd), -ENOMEM);
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
	for (int i = 0; i < TIMEOUT_MS && file.st_blocks > 0; i++) {
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
	for (int i = 0; i < TIMEOUT_MS && file.st_blocks > 0; i++) {
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
