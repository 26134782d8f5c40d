/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/memif_server.c: clients that are accepted, and clients that are refused. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "open_fds.h"
#include "memif/socket.h"
#include "memif/protocol.h"
#include "memif_ends.h"
#include "port/memif_caller.h"
#include "test.h"

TEST_GROUP(ends_set_up, ends_tear_down);

static bool stuck;

bool __real_memif_socket_is_stuck(void);
bool __wrap_memif_socket_is_stuck(void);

bool __wrap_memif_socket_is_stuck(void)
{
	return TEST_FILE_RUNS() ? stuck : __real_memif_socket_is_stuck();
}

static const struct memif_port *memif_of(const struct port *port)
{
	return port->ops_arg;
}

/* Return true if the server has sent its first message. */
static bool gets_hello(int fd)
{
	struct memif_message message;

	return recv(fd, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message) &&
	       message.type == MEMIF_HELLO;
}

static void say(int fd, const struct memif_message *message, int passed_fd)
{
	assert_int_equal(memif_socket_send_with(fd, message, sizeof(*message), passed_fd), 0);
}

/* Connect to the server, send the first messages, and stay silent. */
static int begin(struct port *server)
{
	const struct memif_message message = {
		.type = MEMIF_INIT,
		.init = {.version = MEMIF_VERSION, .mode = MEMIF_MODE_ETHERNET},
	};
	const int fd = ends_connect();

	port_conn_run(server);
	assert_true(gets_hello(fd));
	say(fd, &message, -1);
	port_conn_run(server);
	return fd;
}

/* The first test: another thread closes the descriptors of clients later. */
TEST(memif_open__leaves_nothing_behind)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct port port = {0};
	unsigned int before;
	char text[128];

	snprintf(text, sizeof(text), "net_memif0,role=server,socket=%s", ends_path);
	port.make_pool = ends_make_no_pool;
	assert_int_equal(port_prepare(&port, text, 0), 0);
	/* Somebody else was faster, and says no hello. */
	strcpy(addr.sun_path, ends_path);
	assert_int_equal(bind(other, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(other, 1), 0);
	before = fds_count();
	assert_int_equal(port_open(&port), -EADDRINUSE);
	port_destroy(&port);
	assert_int_equal(fds_count(), before);
	close(other);
	assert_int_equal(unlink(ends_path), 0);
}

TEST(memif_conn_look__keeps_others_away)
{
	static const char *const others[] = {",id=2", ",secret=wrong", ""};
	struct port server, client, other;

	ends_open(&server, "server", ",secret=word");
	for (size_t i = 0; i < 3; i++) {
		ends_open(&other, "client", others[i]);
		ends_run(&other, &server);
		assert_false(port_connected(&other));
		assert_false(port_connected(&server));
		ends_close(&other);
	}
	ends_open(&client, "client", ",secret=word");
	ends_run(&client, &server);
	ends_open(&other, "client", ",secret=word");
	ends_run(&other, &server);
	assert_false(port_connected(&other));
	ends_expect_traffic(&server, &client);
	/* When the first client has gone, the server accepts the second one. */
	ends_close(&client);
	ends_run(&other, &server);
	ends_expect_traffic(&server, &other);
	ends_close(&other);
	ends_close(&server);
}

TEST(memif_conn_look__pending_clients_do_not_disturb_the_connection)
{
	struct memif_message message = {.type = MEMIF_CONNECT};
	struct port server, client;
	int silent[3 * MEMIF_PENDING_CLIENTS_MAX];

	ends_open(&server, "server", "");
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		silent[i] = ends_connect();
		port_conn_run(&server);
		assert_int_equal(recv(silent[i], &message, sizeof(message), 0), sizeof(message));
		assert_int_equal(message.type, MEMIF_HELLO);
	}
	message.type = MEMIF_CONNECT;
	/* A client that the server still waits for sends an invalid message. */
	assert_true(send(silent[sizeof(silent) / sizeof(silent[0]) - 1], &message, 100,
			 MSG_NOSIGNAL) > 0);
	ends_open(&client, "client", "");
	ends_run(&client, &server);
	ends_expect_traffic(&server, &client);
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		close(silent[i]);
	ends_run(&client, &server);
	assert_true(port_connected(&server) && port_connected(&client));
	ends_close(&client);
	ends_close(&server);
}

static bool is_let_go(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) == 0;
}

/* Wherever there was room for it. */
TEST(memif_conn_look__drops_the_oldest_pending_client)
{
	struct port server;
	int silent[MEMIF_PENDING_CLIENTS_MAX + 2];

	ends_open(&server, "server", "");
	for (int i = 0; i < MEMIF_PENDING_CLIENTS_MAX + 2; i++) {
		/* The first one leaves by itself, so there is room for one more. */
		if (i == MEMIF_PENDING_CLIENTS_MAX)
			close(silent[0]);
		port_conn_run(&server);
		silent[i] = ends_connect();
		port_conn_run(&server);
		assert_true(gets_hello(silent[i]));
	}
	assert_true(is_let_go(silent[1]));
	for (int i = 2; i < MEMIF_PENDING_CLIENTS_MAX + 2; i++)
		assert_false(is_let_go(silent[i]));
	for (int i = 1; i < MEMIF_PENDING_CLIENTS_MAX + 2; i++)
		close(silent[i]);
	ends_close(&server);
}

TEST(memif_conn_look__pauses_without_descriptors)
{
	struct rlimit before, few;
	struct port server;
	struct pollfd conn;
	int fd;

	ends_open(&server, "server", "");
	fd = ends_connect();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	port_conn_run(&server);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	conn = (struct pollfd){.fd = port_conn_fd(&server), .events = POLLIN};
	assert_true(memif_of(&server)->pauses);
	assert_false(gets_hello(fd));
	/* The server checks a waiting client again after a while, a limited number of times. */
	assert_int_equal(poll(&conn, 1, 0), 0);
	assert_true(port_conn_ms(&server) > 0);
	port_conn_run(&server);
	assert_false(memif_of(&server)->pauses);
	assert_true(gets_hello(fd));
	close(fd);
	ends_close(&server);
}

TEST(memif_conn_look__takes_nobody_when_stuck)
{
	struct port server, client;
	int fd;

	ends_open(&server, "server", "");
	ends_open(&client, "client", "");
	fd = ends_connect();
	stuck = true;
	ends_run(&server, &client);
	assert_true(memif_of(&server)->pauses);
	assert_false(gets_hello(fd));
	assert_int_equal(memif_of(&client)->socket_fd, -1);
	stuck = false;
	ends_run(&server, &client);
	assert_true(gets_hello(fd));
	ends_expect_traffic(&server, &client);
	close(fd);
	ends_close(&client);
	ends_close(&server);
}

TEST(memif_conn_look__waits_for_a_client_for_a_while)
{
	struct port server, client;
	struct memif_port *memif;
	int fd;

	ends_open(&server, "server", "");
	ends_open(&client, "client", "");
	memif = server.ops_arg;
	fd = begin(&server);
	assert_int_equal(memif->server.end.state, MEMIF_STATE_SETTING_UP);
	/* Make the connection look fresh, however slow this test is. */
	for (int i = 0; i < 4; i++) {
		memif->taken_ms += 3600000;
		port_conn_run(&client);
		port_conn_run(&server);
		memif->taken_ms -= 3600000;
	}
	assert_false(port_connected(&client));
	memif->taken_ms -= 3600000;
	ends_run(&client, &server);
	ends_expect_traffic(&server, &client);
	close(fd);
	ends_close(&client);
	ends_close(&server);
}

/* The next client knocks before the last one has gone, and says who it is before that is seen. */
TEST(memif_conn_look__lets_in_who_restarts)
{
	struct port server, old, new;

	ends_open(&server, "server", "");
	ends_open(&old, "client", "");
	ends_run(&server, &old);
	ends_open(&new, "client", "");
	port_conn_run(&new);
	port_conn_run(&server);
	port_conn_run(&new);
	ends_close(&old);
	ends_run(&server, &new);
	ends_expect_traffic(&server, &new);
	assert_int_equal(memif_of(&server)->complaints, 0);
	ends_close(&new);
	ends_close(&server);
}

/* A program may end while the server has no CPU, also when it has just said who it is. */
TEST(memif_conn_look__does_not_complain_of_who_leaves_at_once)
{
	struct port server, client;

	ends_open(&server, "server", "");
	ends_open(&client, "client", "");
	port_conn_run(&client);
	port_conn_run(&server);
	port_conn_run(&client);
	ends_close(&client);
	port_conn_run(&server);
	port_conn_run(&server);
	assert_int_equal(memif_of(&server)->complaints, 0);
	ends_open(&client, "client", "");
	ends_run(&server, &client);
	ends_expect_traffic(&server, &client);
	ends_close(&client);
	ends_close(&server);
}

TEST(memif_conn_look__says_what_is_wrong)
{
	static const struct {
		const char *arguments;
		enum memif_complaint complaint;
	} others[] = {
		{",id=2,secret=word", MEMIF_WRONG_ID},
		{",secret=wrong", MEMIF_WRONG_SECRET},
		{",secret=word", MEMIF_SECOND},
	};
	struct port server, client, other;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		ends_open(&server, "server", ",secret=word");
		ends_open(&client, "client", ",secret=word");
		ends_run(&server, &client);
		assert_int_equal(memif_of(&server)->complaints, 0);
		ends_open(&other, "client", others[i].arguments);
		ends_run(&server, &other);
		assert_int_equal(memif_of(&server)->complaints, 1u << others[i].complaint);
		ends_close(&other);
		ends_close(&client);
		ends_close(&server);
	}
}

TEST(memif_conn_look__says_that_memory_is_not_sealed)
{
	struct memif_message message = {.type = MEMIF_ADD_REGION, .add_region = {.bytes = 4096}};
	const int memory = memfd_create("test", MFD_CLOEXEC);
	struct port server;
	int fd;

	assert_int_equal(ftruncate(memory, 4096), 0);
	ends_open(&server, "server", "");
	fd = begin(&server);
	say(fd, &message, memory);
	port_conn_run(&server);
	assert_int_equal(memif_of(&server)->complaints, 1u << MEMIF_UNSEALED);
	assert_int_equal(memif_of(&server)->socket_fd, -1);
	close(fd);
	fd = ends_connect();
	port_conn_run(&server);
	/* A client that connects only to see if there is a server is no reason to complain. */
	close(fd);
	port_conn_run(&server);
	assert_int_equal(memif_of(&server)->complaints, 1u << MEMIF_UNSEALED);
	close(memory);
	ends_close(&server);
}
