/* SPDX-License-Identifier: BSD-3-Clause */
#include "memif/server_end.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_client.h"
#include "open_fds.h"
#include "test.h"

static int setup(void **state)
{
	struct client *client = test_malloc(sizeof(*client));

	client_init(client);
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

/* The first test: no descriptor of another test is being closed meanwhile. */
TEST(memif_server_take__keeps_no_descriptor)
{
	const struct memif_message leave = {.type = MEMIF_DISCONNECT};
	const unsigned int before = fds_count();
	struct client *client = *state;

	client_connect(client);
	assert_int_equal(client_say(client, &leave, -1), -ECONNRESET);
	client_anew(client);
	fds_wait(before + 1); /* the client's end of its doorbell */
}

TEST(memif_server_hello__says_what_is_taken)
{
	struct memif_server server;
	struct memif_message message;

	memif_server_init(&server, &memif_limits_isolated);
	memif_server_hello(&server, &message,
			   "a name that is longer than the room there is for it");
	assert_int_equal(message.type, MEMIF_HELLO);
	assert_int_equal(message.hello.min_version, MEMIF_VERSION);
	assert_int_equal(message.hello.max_version, MEMIF_VERSION);
	assert_int_equal(message.hello.max_log2_ring_size, MEMIF_ISOLATED_LOG2_MAX);
	assert_int_equal(message.hello.max_ring_to_client, 0);
	assert_int_equal(message.hello.max_ring_to_server, 0);
	assert_int_equal(message.hello.name[MEMIF_NAME_LEN - 1], '\0');
}

TEST(memif_server_take__wants_version_and_mode)
{
	struct client *client = *state;
	struct memif_message init = client_begin_message();

	init.init.version++;
	assert_int_equal(client_say(client, &init, -1), -EPROTO);
	init = client_begin_message();
	init.init.mode = 1;
	memif_server_init(&client->server, &memif_limits_isolated);
	assert_int_equal(client_say(client, &init, -1), -EPROTO);
}

TEST(memif_server_take__wants_a_begin)
{
	struct client *client = *state;
	const struct memif_message region = client_region(), init = client_begin_message();

	assert_int_equal(client_say(client, &region, client->memory_fd), -EPROTO);
	assert_int_equal(client->server.end.region_count, 0);
	memif_server_init(&client->server, &memif_limits_isolated);
	assert_int_equal(client_say(client, &init, -1), 0);
	assert_int_equal(client_say(client, &init, -1), -EPROTO);
}

TEST(memif_server_take__connects)
{
	struct client *client = *state;

	client_connect(client);
	assert_true(client->server.end.wake_fd >= 0);
	assert_int_equal(client->to_server->flags, MEMIF_QUIET);
}

TEST(memif_server_take__wants_memory_that_stays)
{
	struct client *client = *state;
	const struct memif_message region = client_region();
	int pipes[2];
	int fd;

	client_anew(client);
	assert_int_equal(client_say(client, &region, -1), -EPROTO);
	client_anew(client);
	fd = client_file(CLIENT_BYTES, F_SEAL_GROW);
	assert_int_equal(client_say(client, &region, fd), -EPROTO);
	close(fd);
	/* The file must have exactly the right size: we would free what lies beyond. */
	for (int pages = -1; pages <= 1; pages += 2) {
		client_anew(client);
		fd = client_file((size_t)(CLIENT_BYTES + pages * 4096), F_SEAL_SHRINK);
		assert_int_equal(client_say(client, &region, fd), -EPROTO);
		close(fd);
	}
	client_anew(client);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(client_say(client, &region, pipes[0]), -EPROTO);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(client->server.end.region_count, 0);
}

TEST(memif_server_take__refuses_huge_pages)
{
	struct client *client = *state;
	struct memif_message region = client_region();
	const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	client_anew(client);
	if (fd < 0)
		skip();
	assert_int_equal(ftruncate(fd, 1 << 21), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	region.add_region.bytes = 1 << 21;
	assert_int_equal(client_say(client, &region, fd), -EPROTO);
	close(fd);
}

/* A region that is a file of that length. */
static int say_region(struct client *client, struct memif_message *region, uint64_t bytes)
{
	const int fd = client_file(bytes, F_SEAL_SHRINK);
	int rc;

	region->add_region.bytes = bytes;
	rc = client_say(client, region, fd);
	close(fd);
	return rc;
}

TEST(memif_server_take__bounds_regions)
{
	struct client *client = *state;
	struct memif_message region = client_region();

	client_anew(client);
	assert_int_equal(say_region(client, &region, 0), -EPROTO);
	client_anew(client);
	assert_int_equal(say_region(client, &region, memif_limits_isolated.bytes + 4096), -EPROTO);
	client_anew(client);
	assert_int_equal(say_region(client, &region, memif_limits_isolated.bytes / 2 + 4096), 0);
	region.add_region.index = 1;
	/* Together they are too much. */
	assert_int_equal(say_region(client, &region, memif_limits_isolated.bytes / 2), -EPROTO);
	client_anew(client);
	for (uint16_t i = 0; i < MEMIF_REGIONS_MAX; i++) {
		region.add_region.index = i;
		assert_int_equal(say_region(client, &region, 4096), 0);
	}
	region.add_region.index = MEMIF_REGIONS_MAX;
	assert_int_equal(say_region(client, &region, 4096), -EPROTO);
}

/* The server populates the client's memory up to a limit: the engine waits meanwhile, and a hole in
 * the client's file becomes memory. */
TEST(memif_server_take__makes_some_pages_present)
{
	static const uint64_t bytes = 12 << 20;
	struct client *client = *state;
	struct memif_message region = client_region();
	const struct memif_message init = client_begin_message();
	uint64_t had = 0;

	memif_server_fini(&client->server);
	memif_server_init(&client->server, &memif_limits_user);
	assert_int_equal(client_say(client, &init, -1), 0);
	region.add_region.bytes = bytes;
	for (uint16_t i = 0; i < MEMIF_REGIONS_MAX; i++) {
		const int fd = client_file(bytes, F_SEAL_SHRINK);
		struct stat file;

		region.add_region.index = i;
		assert_int_equal(client_say(client, &region, fd), 0);
		assert_int_equal(fstat(fd, &file), 0);
		had += (uint64_t)file.st_blocks * 512;
		close(fd);
	}
	/* The memory may be in pages of 2 MiB. */
	assert_in_range(had, 0, 18 << 20);
}

TEST(memif_server_take__wants_regions_in_order)
{
	struct client *client = *state;
	struct memif_message region = client_region();

	client_anew(client);
	region.add_region.index = 1;
	assert_int_equal(client_say(client, &region, client->memory_fd), -EPROTO);
}

/* A ring that is changed in one thing, and must be refused for it. */
static void refuse_ring(struct client *client, const struct memif_message *ring, int fd)
{
	const struct memif_message region = client_region();

	client_anew(client);
	assert_int_equal(client_say(client, &region, client->memory_fd), 0);
	assert_int_equal(client_say(client, ring, fd), -EPROTO);
	assert_int_equal(client->server.end.state, MEMIF_STATE_BROKEN);
}

TEST(memif_server_take__bounds_rings)
{
	struct client *client = *state;
	const uint32_t bytes =
		sizeof(struct memif_ring_memory) + CLIENT_RING * sizeof(struct memif_descriptor);
	const int event = eventfd(0, EFD_CLOEXEC);
	struct memif_message ring;

	ring = client_ring(true);
	ring.add_ring.flags |= 2;
	refuse_ring(client, &ring, event);
	ring = client_ring(true);
	ring.add_ring.index = 1;
	refuse_ring(client, &ring, event);
	ring = client_ring(true);
	ring.add_ring.region = 1;
	refuse_ring(client, &ring, event);
	ring = client_ring(true);
	ring.add_ring.private_header_bytes = 8;
	refuse_ring(client, &ring, event);
	ring = client_ring(true);
	ring.add_ring.offset = 8;
	refuse_ring(client, &ring, event);
	ring.add_ring.offset = CLIENT_BYTES - bytes + 16;
	refuse_ring(client, &ring, event);
	ring.add_ring.offset = CLIENT_BYTES + 16;
	refuse_ring(client, &ring, event);
	ring.add_ring.offset = UINT32_MAX - 15;
	refuse_ring(client, &ring, event);
	ring = client_ring(true);
	ring.add_ring.log2_size = MEMIF_ISOLATED_LOG2_MAX;
	refuse_ring(client, &ring, event);
	ring.add_ring.log2_size = MEMIF_ISOLATED_LOG2_MAX + 1;
	refuse_ring(client, &ring, event);
	ring.add_ring.log2_size = UINT8_MAX;
	refuse_ring(client, &ring, event);
	close(event);
}

TEST(memif_server_take__takes_a_ring_at_the_end)
{
	struct client *client = *state;
	const struct memif_message region = client_region();
	struct memif_message ring = client_ring(false);

	client_anew(client);
	ring.add_ring.offset =
		CLIENT_BYTES - (uint32_t)(sizeof(struct memif_ring_memory) +
					  CLIENT_RING * sizeof(struct memif_descriptor));
	assert_int_equal(client_say(client, &region, client->memory_fd), 0);
	assert_int_equal(client_say(client, &ring, -1), 0);
}

TEST(memif_server_take__wants_doorbells)
{
	struct client *client = *state;
	const struct memif_message ring = client_ring(true), other = client_ring(false);
	const int event = eventfd(0, EFD_CLOEXEC);
	int pipes[2], pair[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	refuse_ring(client, &ring, -1);
	refuse_ring(client, &ring, pipes[1]);
	refuse_ring(client, &ring, client->memory_fd);
	refuse_ring(client, &ring, pair[0]);
	/* The server has the socket of this ring's doorbell already. A client could have a copy of
	 * what it gives. */
	refuse_ring(client, &other, pipes[1]);
	refuse_ring(client, &other, pair[0]);
	refuse_ring(client, &other, event);
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(pair[i]);
	}
	close(event);
}

/* Say one of a client's rings to a server with other limits. */
static int say_ring(struct client *client, const struct memif_limits *limits, bool to_server,
		    int fd)
{
	const struct memif_message init = client_begin_message(), region = client_region(),
				   ring = client_ring(to_server);

	memif_server_fini(&client->server);
	memif_server_init(&client->server, limits);
	assert_int_equal(client_say(client, &init, -1), 0);
	assert_int_equal(client_say(client, &region, client->memory_fd), 0);
	return client_say(client, &ring, fd);
}

/* A user's own programs have eventfds, as memif has them everywhere. Two isolated programs wake
 * each other by sockets only. */
TEST(memif_server_take__wants_other_doorbells_of_others)
{
	struct client *client = *state;
	const int event = eventfd(0, EFD_CLOEXEC);
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (int to_server = 0; to_server < 2; to_server++) {
		const struct memif_end *end = &client->server.end;

		assert_int_equal(say_ring(client, &memif_limits_user, to_server, event), 0);
		assert_true((to_server ? end->wake_fd : end->doorbell_fd) >= 0);
		assert_int_equal(say_ring(client, &memif_limits_user, to_server, pair[0]), -EPROTO);
	}
	/* The doorbell to an isolated client is a socket, which it has already. */
	assert_int_equal(say_ring(client, &memif_limits_isolated, false, event), -EPROTO);
	assert_int_equal(say_ring(client, &memif_limits_isolated, false, pair[0]), -EPROTO);
	assert_int_equal(say_ring(client, &memif_limits_isolated, false, -1), 0);
	/* A client that polls need not give a doorbell. */
	assert_int_equal(say_ring(client, &memif_limits_user, false, -1), 0);
	close(event);
	close(pair[0]);
	close(pair[1]);
}

TEST(memif_server_take__takes_a_ring_once)
{
	struct client *client = *state;
	const struct memif_message region = client_region(), ring = client_ring(false);

	client_anew(client);
	assert_int_equal(client_say(client, &region, client->memory_fd), 0);
	assert_int_equal(client_say(client, &ring, -1), 0);
	assert_int_equal(client_say(client, &ring, -1), -EPROTO);
}

TEST(memif_server_take__connects_only_with_both_rings)
{
	struct client *client = *state;
	const struct memif_message region = client_region(), ring = client_ring(false),
				   connect = {.type = MEMIF_CONNECT};

	client_anew(client);
	assert_int_equal(client_say(client, &region, client->memory_fd), 0);
	assert_int_equal(client_say(client, &ring, -1), 0);
	assert_int_equal(client_say(client, &connect, -1), -EPROTO);
}

/* Begin a connection of a client that may make several rings, with four engines of ours. */
static void begin_several(struct client *client, const char *name)
{
	const struct memif_message region = client_region();
	struct memif_message init = client_begin_message();

	memif_server_fini(&client->server);
	memif_server_init(&client->server, &memif_limits_user);
	client->server.queues = 4;
	strcpy(init.init.name, name);
	assert_int_equal(client_say(client, &init, -1), 0);
	assert_int_equal(client_say(client, &region, client->memory_fd), 0);
}

/* Describe a ring; all may lie in the same memory. */
static int describe_ring(struct client *client, bool to_server, uint16_t index)
{
	const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct memif_message ring = client_ring(to_server);
	int rc;

	ring.add_ring.index = index;
	rc = client_say(client, &ring, event);
	close(event);
	return rc;
}

static void say_rings(struct client *client, bool to_server, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++)
		assert_int_equal(describe_ring(client, to_server, i), 0);
}

TEST(memif_server_take__takes_several_rings)
{
	/* rings to us and from us; the client's name; does it send to the right engine? */
	static const struct {
		uint16_t to_us, from_us;
		const char *name;
		bool steers;
		int rc;
	} cases[] = {{4, 4, "uroce, engines: 1", true, 0},
		     {64, 64, "uroce, engines: 8", true, 0},
		     {6, 6, "uroce, engines: 2", false, 0},
		     {8, 4, "uroce, engines: 2", false, 0},
		     {4, 4, "DPDK 22.11.11", false, 0},
		     /* Not one for each engine of ours. */
		     {1, 1, "uroce", false, -ENOTSUP},
		     {3, 3, "DPDK 22.11.11", false, -ENOTSUP},
		     {4, 3, "libmemif", false, -ENOTSUP},
		     {3, 4, "uroce, engines: 1", false, -ENOTSUP}};
	const struct memif_message connect = {.type = MEMIF_CONNECT};
	const unsigned int before = fds_count();
	struct client *client = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_several(client, cases[i].name);
		say_rings(client, false, cases[i].from_us);
		say_rings(client, true, cases[i].to_us);
		assert_int_equal(client_say(client, &connect, -1), cases[i].rc);
		if (cases[i].rc != 0)
			continue;
		assert_int_equal(client->server.pairs, RTE_MAX(cases[i].to_us, cases[i].from_us));
		assert_int_equal(client->server.client_steers, cases[i].steers);
		for (uint32_t k = 0; k < client->server.pairs; k++) {
			const struct memif_end *end = memif_server_end(&client->server, k);

			assert_int_equal(end->state, MEMIF_STATE_CONNECTED);
			assert_int_equal(end->rx.memory != NULL, k < cases[i].to_us);
			assert_int_equal(end->tx.memory != NULL, k < cases[i].from_us);
			assert_int_equal(end->region_count, 1);
		}
	}
	memif_server_fini(&client->server);
	fds_wait(before);
}

TEST(memif_server_take__bounds_the_number_of_rings)
{
	struct client *client = *state;

	for (int to_server = 0; to_server < 2; to_server++) {
		begin_several(client, "uroce, engines: 8");
		say_rings(client, to_server, MEMIF_PAIRS_MAX);
		assert_int_equal(describe_ring(client, to_server, MEMIF_PAIRS_MAX), -EPROTO);
		/* Another program: one for each engine of ours. */
		begin_several(client, "DPDK 22.11.11");
		say_rings(client, to_server, 4);
		assert_int_equal(describe_ring(client, to_server, 4), -EPROTO);
		begin_several(client, "uroce");
		assert_int_equal(describe_ring(client, to_server, UINT16_MAX), -EPROTO);
		/* Once each. */
		begin_several(client, "uroce");
		say_rings(client, to_server, 2);
		assert_int_equal(describe_ring(client, to_server, 1), -EPROTO);
		assert_int_equal(memif_server_end(&client->server, 1)->state, MEMIF_STATE_BROKEN);
	}
}

/* No ring may be missing before another, and each has the cookie. */
TEST(memif_server_take__connects_only_with_all_rings)
{
	const struct memif_message connect = {.type = MEMIF_CONNECT};
	struct client *client = *state;

	for (int to_server = 0; to_server < 2; to_server++) {
		begin_several(client, "uroce");
		say_rings(client, !to_server, 3);
		assert_int_equal(describe_ring(client, to_server, 0), 0);
		assert_int_equal(describe_ring(client, to_server, 2), 0);
		assert_int_equal(client_say(client, &connect, -1), -EPROTO);
		begin_several(client, "uroce");
		say_rings(client, !to_server, 3);
		assert_int_equal(describe_ring(client, to_server, 1), 0);
		assert_int_equal(client_say(client, &connect, -1), -EPROTO);
		begin_several(client, "uroce");
		say_rings(client, true, 2);
		say_rings(client, false, 2);
		(to_server ? client->to_server : client->to_client)->cookie++;
		assert_int_equal(client_say(client, &connect, -1), -EPROTO);
		(to_server ? client->to_server : client->to_client)->cookie--;
	}
}

TEST(memif_server_take__wants_the_cookie)
{
	struct client *client = *state;
	const struct memif_message region = client_region(), to_server = client_ring(true),
				   to_client = client_ring(false),
				   connect = {.type = MEMIF_CONNECT};
	const int event = eventfd(0, EFD_CLOEXEC);

	client_anew(client);
	assert_int_equal(client_say(client, &region, client->memory_fd), 0);
	assert_int_equal(client_say(client, &to_server, event), 0);
	assert_int_equal(client_say(client, &to_client, -1), 0);
	client->to_client->cookie++;
	assert_int_equal(client_say(client, &connect, -1), -EPROTO);
	close(event);
}

TEST(memif_server_take__changes_nothing_once_connected)
{
	static const uint16_t types[] = {0,
					 MEMIF_ACK,
					 MEMIF_HELLO,
					 MEMIF_INIT,
					 MEMIF_ADD_REGION,
					 MEMIF_ADD_RING,
					 MEMIF_CONNECT,
					 MEMIF_CONNECTED,
					 MEMIF_DISCONNECT + 1,
					 UINT16_MAX};
	struct client *client = *state;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const struct memif_message message = {.type = types[i]};

		client_connect(client);
		assert_int_equal(client_say(client, &message, client->memory_fd), -EPROTO);
		assert_int_equal(client->server.end.region_count, 1);
		assert_int_equal(client->server.end.state, MEMIF_STATE_BROKEN);
		client_anew(client);
	}
}

TEST(memif_server_take__lets_it_leave)
{
	struct client *client = *state;
	const struct memif_message leave = {.type = MEMIF_DISCONNECT};
	uint8_t room[CLIENT_BUFFER];

	client_connect(client);
	client_send(client, 0, 20);
	assert_int_equal(client_say(client, &leave, -1), -ECONNRESET);
	assert_int_equal(memif_server_receive(&client->server, room, sizeof(room)), 20);
}

TEST(memif_server_take__wants_no_descriptor_with_other_messages)
{
	static const uint16_t types[] = {MEMIF_DISCONNECT, MEMIF_ACK, MEMIF_CONNECT};
	const struct memif_message init = client_begin_message();
	const unsigned int before = fds_count();
	struct client *client = *state;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const struct memif_message message = {.type = types[i]};

		client_anew(client);
		assert_int_equal(client_say(client, &message, client->memory_fd), -EPROTO);
		assert_int_equal(client->server.end.state, MEMIF_STATE_BROKEN);
	}
	memif_server_init(&client->server, &memif_limits_isolated);
	assert_int_equal(client_say(client, &init, client->memory_fd), -EPROTO);
	fds_wait(before);
}
