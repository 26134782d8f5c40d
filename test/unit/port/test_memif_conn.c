/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/memif_conn.c: ends that connect, disconnect and are refused. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "open_fds.h"
#include "memif/doorbell.h"
#include "memif/protocol.h"
#include "memif_ends.h"
#include "port/memif_caller.h"
#include "test.h"

#define RESTARTS 300
#define WAIT_MS	 5000

TEST_GROUP(ends_set_up, ends_tear_down);

TEST(memif_conn_look__ends_meet_in_either_order)
{
	struct port server, client;

	ends_open(&client, "client", ",id=3");
	port_conn_run(&client);
	ends_open(&server, "server", ",id=3");
	ends_run(&client, &server);
	ends_expect_traffic(&server, &client);
	ends_close(&client);
	ends_close(&server);
	assert_int_equal(access(ends_path, F_OK), -1);
}

TEST(memif_conn_look__meets_the_next_one)
{
	struct port server, client;

	ends_open(&server, "server", "");
	for (int i = 0; i < 3; i++) {
		ends_open(&client, "client", i == 1 ? ",rsize=4,bsize=512" : "");
		ends_run(&client, &server);
		ends_expect_traffic(&server, &client);
		ends_close(&client);
		ends_run(&server, &server);
		assert_false(port_connected(&server));
		assert_false(port_link_up(&server, false));
	}
	ends_open(&client, "client", "");
	ends_run(&client, &server);
	ends_close(&server);
	ends_run(&client, &client);
	assert_false(port_connected(&client));
	ends_open(&server, "server", "");
	ends_run(&client, &server);
	ends_expect_traffic(&server, &client);
	ends_close(&client);
	ends_close(&server);
}

static unsigned int maps_count(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned int count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memif_region") != NULL;
	fclose(maps);
	return count;
}

/* Wait until at most so many descriptors are open. Other threads close some, perhaps still those of
 * the previous test. */
static void expect_fds_at_most(unsigned int most)
{
	for (int i = 0; i < WAIT_MS && (fds_count() > most || maps_count() > 0); i++)
		usleep(1000);
	assert_true(fds_count() <= most);
	assert_int_equal(maps_count(), 0);
}

/* Restart either end, or both, several times; the other end connects again. */
TEST(memif_conn_look__leaves_nothing_behind_of_who_restarts)
{
	const unsigned int before = fds_count();
	struct port server, client;

	ends_open(&server, "server", "");
	ends_open(&client, "client", "");
	for (int i = 0; i < RESTARTS; i++) {
		ends_run(&client, &server);
		ends_expect_traffic(&server, &client);
		if (i % 3 != 0)
			ends_close(&server);
		if (i % 3 != 1)
			ends_close(&client);
		/* The end that stays may see it before the next one is there, or after. */
		if (i % 2 == 0 && i % 3 == 0)
			ends_run(&server, &server);
		if (i % 2 == 0 && i % 3 == 1)
			ends_run(&client, &client);
		if (i % 3 != 0)
			ends_open(&server, "server", "");
		if (i % 3 != 1)
			ends_open(&client, "client", "");
	}
	ends_close(&client);
	ends_close(&server);
	expect_fds_at_most(before);
}

TEST(memif_conn_look__breaks_with_who_keeps_no_rule)
{
	struct port server, client;
	struct memif_port *memif;
	uint8_t byte[64] = {0};
	bool right;

	ends_open(&server, "server", "");
	ends_open(&client, "client", "");
	ends_run(&client, &server);
	memif = client.ops_arg;
	/* Announce more than the ring has. */
	__atomic_store_n(&memif->client.end.tx.memory->head, 0x8000, __ATOMIC_RELEASE);
	memif = server.ops_arg;
	assert_int_equal(memif_end_receive(&memif->server.end, byte, sizeof(byte), NULL, &right),
			 -EPROTO);
	assert_false(port_connected(&server));
	ends_run(&server, &client);
	ends_run(&server, &client);
	ends_expect_traffic(&server, &client);
	ends_close(&client);
	ends_close(&server);
}

TEST(memif_conn_look__wakes_who_slept_before)
{
	struct port server, client, *ends[] = {&server, &client};

	ends_open(&server, "server", "");
	ends_open(&client, "client", "");
	assert_false(port_arm(&server));
	assert_false(port_arm(&client));
	ends_run(&client, &server);
	for (int i = 0; i < 2; i++) {
		struct pollfd wake = {.fd = port_wake_fd(ends[!i]), .events = POLLIN};

		assert_int_equal(poll(&wake, 1, 0), 0);
		assert_non_null(ends[i]->ops->place(ends[i]->ops_arg, 64));
		ends[i]->ops->placed(ends[i]->ops_arg, 64);
		ends[i]->ops->push(ends[i]->ops_arg);
		assert_int_equal(poll(&wake, 1, 0), 1);
	}
	ends_close(&client);
	ends_close(&server);
}

static bool has_something_to_see(const struct port *port)
{
	struct pollfd conn = {.fd = port_conn_fd(port), .events = POLLIN};

	return poll(&conn, 1, 0) == 1;
}

/* Each event is signalled once: a thread that sleeps on the descriptor neither misses one nor
 * spins. */
TEST(memif_conn_look__is_called_for_when_something_happens)
{
	struct port server, client;
	int fd;

	ends_open(&server, "server", "");
	ends_open(&client, "client", "");
	assert_false(has_something_to_see(&server));
	assert_int_equal(port_conn_ms(&server), -1);
	fd = ends_connect();
	assert_true(has_something_to_see(&server));
	port_conn_run(&server);
	assert_false(has_something_to_see(&server));
	close(fd);
	assert_true(has_something_to_see(&server));
	port_conn_run(&server);
	assert_false(has_something_to_see(&server));
	/* A client calls by itself until it has somebody. */
	assert_true(port_conn_ms(&client) > 0);
	ends_run(&client, &server);
	assert_int_equal(port_conn_ms(&client), -1);
	assert_false(has_something_to_see(&client) || has_something_to_see(&server));
	ends_close(&client);
	assert_true(has_something_to_see(&server));
	ends_close(&server);
}

/* A source of connections that reaches its server without the name of a socket. */
struct known_server {
	int calls, fd, doorbell_fd;
	bool link_up, lost;
};

static int known_call(void *arg, int *doorbell_fd)
{
	struct known_server *known = arg;
	int ends[2], doorbell[2];

	known->calls++;
	if (known->fd >= 0)
		return -EBUSY;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(memif_doorbell_make(doorbell), 0);
	known->fd = ends[0];
	known->doorbell_fd = doorbell[0];
	*doorbell_fd = doorbell[1];
	return ends[1];
}

static bool known_link_up(void *arg)
{
	return ((const struct known_server *)arg)->link_up;
}

static bool known_lost(void *arg)
{
	return ((const struct known_server *)arg)->lost;
}

TEST(memif_prepare_caller__goes_by_what_its_caller_says)
{
	static const struct memif_caller caller = {known_call, known_link_up, known_lost};
	static const uint8_t mac[6] = {2, 1};
	struct known_server known = {.fd = -1};
	struct memif_message message;
	struct port port = {.make_pool = ends_make_no_pool};

	assert_int_equal(memif_prepare_caller(&port, &caller, &known, mac, 1500), 0);
	assert_int_equal(port_open(&port), 0);
	/* It can be armed before there is a connection. */
	assert_true(port_interrupts(&port) && port_wake_fd(&port) >= 0);
	assert_false(port_arm(&port));
	assert_true(port_is_armed(&port));
	assert_memory_equal(port.mac, mac, sizeof(mac));
	assert_false(port_link_up(&port, true) || port_lost(&port));
	known.link_up = true;
	assert_true(port_link_up(&port, false));
	port_conn_run(&port);
	assert_int_equal(known.calls, 1);
	memif_server_hello(&((struct memif_server){.limits = &memif_limits_user}), &message, "x");
	assert_int_equal(send(known.fd, &message, sizeof(message), 0), sizeof(message));
	port_conn_run(&port);
	assert_int_equal(recv(known.fd, &message, sizeof(message), MSG_DONTWAIT), sizeof(message));
	assert_int_equal(message.type, MEMIF_INIT);
	/* The port calls the owner again when the connection has ended, but not when the server has
	 * ended. */
	shutdown(known.fd, SHUT_RDWR);
	port_conn_run(&port);
	port_conn_run(&port);
	assert_int_equal(known.calls, 2);
	known.lost = true;
	assert_true(port_lost(&port));
	port_lose(&port);
	assert_int_equal(port_conn_ms(&port), -1);
	port_conn_run(&port);
	assert_int_equal(known.calls, 2);
	close(known.fd);
	close(known.doorbell_fd);
	ends_close(&port);
}

/* A server that acknowledges for ever: a client that is not connected listens to so many. */
TEST(memif_conn_look__ends_what_does_not_end)
{
	struct memif_message message;
	struct memif_port *memif;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct port client;
	int fd;

	strcpy(addr.sun_path, ends_path);
	assert_int_equal(bind(listener, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	ends_open(&client, "client", "");
	memif = client.ops_arg;
	port_conn_run(&client);
	fd = accept(listener, NULL, NULL);
	memif_server_hello(&((struct memif_server){.limits = &memif_limits_user}), &message, "x");
	assert_int_equal(send(fd, &message, sizeof(message), 0), sizeof(message));
	message = (struct memif_message){.type = MEMIF_ACK};
	for (int i = 0; i < 5; i++) {
		assert_int_equal(send(fd, &message, sizeof(message), 0), sizeof(message));
		port_conn_run(&client);
		assert_true(memif->socket_fd >= 0);
	}
	assert_int_equal(send(fd, &message, sizeof(message), 0), sizeof(message));
	port_conn_run(&client);
	assert_int_equal(memif->socket_fd, -1);
	assert_int_equal(memif->complaints, 1u << MEMIF_NO_RULE);
	close(fd);
	close(listener);
	assert_int_equal(unlink(ends_path), 0);
	ends_close(&client);
}

TEST(memif_port_prepare__refuses_what_cannot_be)
{
	/* The last two: too few buffers, and too short, for a packet. */
	static const char *const odd[] = {"rsize=15",
					  "rsize=abc",
					  "bsize=0",
					  "bsize=4k",
					  "bsize=65536",
					  "id=4294967296",
					  "id=0x1",
					  "mac=02:00:00",
					  "mac=00:00:00:00:00:00",
					  "mac=01:00:00:00:00:01",
					  "socket-abstract=maybe",
					  "secret=0123456789012345678901234",
					  "bsize=64",
					  "rsize=4,bsize=256"};
	struct port port;
	char text[256];

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		memset(&port, 0, sizeof(port));
		snprintf(text, sizeof(text), "net_memif0,role=client,socket=%s,%s", ends_path,
			 odd[i]);
		assert_int_equal(port_prepare(&port, text, 0), -EINVAL);
		port_destroy(&port);
	}
	memset(&port, 0, sizeof(port));
	assert_int_equal(port_prepare(&port, "net_memif0,role=nobody", 0), -EINVAL);
}
