/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/link/memif_line.c: ends of a wire that meet, part, and are kept away. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/memif.h"
#include "memif/wire.h"
#include "memif_port.h"

#define ROUNDS 40

static char dir[] = "/tmp/uroce-line-XXXXXX";
static char path[64];

static int group_set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/wire", dir);
	return 0;
}

static int group_tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* A port without packet buffers: nothing is received here. */
static void open_port(struct port *port, const char *role, const char *more)
{
	char text[256];

	memset(port, 0, sizeof(*port));
	snprintf(text, sizeof(text), "net_memif0,role=%s,socket=%s%s", role, path, more);
	assert_int_equal(port_prepare(port, text, 0), 0);
	assert_int_equal(port->driver, PORT_WIRE);
	assert_int_equal(memif_port_open(port), 0);
	assert_true(memif_tends(port));
	assert_false(port_connected(port));
	assert_true(port_link_up(port, false));
}

static void close_port(struct port *port)
{
	struct memif_port *memif = port->ops_arg;

	port_close(port);
	close(memif->epoll_fd);
	close(memif->alarm_fd);
	free(memif);
}

/* As many looks as two ends need for all their messages, and some more. */
static void tend(struct port *a, struct port *b)
{
	for (int i = 0; i < ROUNDS; i++) {
		memif_tend(a);
		memif_tend(b);
	}
}

static void expect_traffic(struct port *a, struct port *b)
{
	struct port *ends[] = {a, b};

	assert_true(port_connected(a) && port_connected(b));
	for (int i = 0; i < 2; i++) {
		struct pollfd wake = {.fd = port_wake_fd(ends[!i]), .events = POLLIN};

		assert_false(port_arm(ends[!i]));
		assert_int_equal(poll(&wake, 1, 0), 0);
		memset(ends[i]->ops->place(ends[i]->ops_arg, 64), i, 64);
		ends[i]->ops->placed(ends[i]->ops_arg, 64);
		ends[i]->ops->push(ends[i]->ops_arg);
		/* It wakes who has asked for that, once, and the rest is seen by looking. */
		assert_int_equal(poll(&wake, 1, 0), 1);
		assert_true(port_arm(ends[!i]));
		assert_int_equal(poll(&wake, 1, 0), 0);
		port_disarm(ends[!i]);
		ends[i]->ops->push(ends[i]->ops_arg);
		assert_int_equal(poll(&wake, 1, 0), 0);
	}
}

static void memif_tend__ends_meet_in_either_order(void **state)
{
	struct port server, client;

	(void)state;
	open_port(&client, "client", ",id=3");
	memif_tend(&client);
	open_port(&server, "server", ",id=3");
	tend(&client, &server);
	expect_traffic(&server, &client);
	close_port(&client);
	close_port(&server);
	assert_int_equal(access(path, F_OK), -1);
}

static void memif_tend__meets_the_next_one(void **state)
{
	struct port server, client;

	(void)state;
	open_port(&server, "server", "");
	for (int i = 0; i < 3; i++) {
		open_port(&client, "client", i == 1 ? ",rsize=4,bsize=512" : "");
		tend(&client, &server);
		expect_traffic(&server, &client);
		close_port(&client);
		tend(&server, &server);
		assert_false(port_connected(&server));
		assert_false(port_link_up(&server, false));
	}
	open_port(&client, "client", "");
	tend(&client, &server);
	close_port(&server);
	tend(&client, &client);
	assert_false(port_connected(&client));
	open_port(&server, "server", "");
	tend(&client, &server);
	expect_traffic(&server, &client);
	close_port(&client);
	close_port(&server);
}

static void memif_tend__keeps_others_away(void **state)
{
	static const char *const others[] = {",id=2", ",secret=wrong", ""};
	struct port server, client, other;

	(void)state;
	open_port(&server, "server", ",secret=word");
	for (size_t i = 0; i < 3; i++) {
		open_port(&other, "client", others[i]);
		tend(&other, &server);
		assert_false(port_connected(&other));
		assert_false(port_connected(&server));
		close_port(&other);
	}
	open_port(&client, "client", ",secret=word");
	tend(&client, &server);
	open_port(&other, "client", ",secret=word");
	tend(&other, &server);
	assert_false(port_connected(&other));
	expect_traffic(&server, &client);
	/* Its turn comes. */
	close_port(&client);
	tend(&other, &server);
	expect_traffic(&server, &other);
	close_port(&other);
	close_port(&server);
}

static int connect_to(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, name);
	assert_int_equal(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void memif_tend__strangers_are_in_nobodys_way(void **state)
{
	struct memif_message message = {.type = MEMIF_CONNECT};
	struct port server, client;
	int silent[3 * MEMIF_STRANGERS_MAX];

	(void)state;
	open_port(&server, "server", "");
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		silent[i] = connect_to(path);
		memif_tend(&server);
		assert_int_equal(recv(silent[i], &message, sizeof(message), 0), sizeof(message));
		assert_int_equal(message.type, MEMIF_HELLO);
	}
	message.type = MEMIF_CONNECT;
	/* One that is still waited for, and says what makes no sense. */
	assert_true(send(silent[sizeof(silent) / sizeof(silent[0]) - 1], &message, 100,
			 MSG_NOSIGNAL) > 0);
	open_port(&client, "client", "");
	tend(&client, &server);
	expect_traffic(&server, &client);
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		close(silent[i]);
	tend(&client, &server);
	assert_true(port_connected(&server) && port_connected(&client));
	close_port(&client);
	close_port(&server);
}

static void memif_tend__breaks_with_who_keeps_no_rule(void **state)
{
	struct port server, client;
	struct memif_port *memif;
	uint8_t byte[64] = {0};
	bool right;

	(void)state;
	open_port(&server, "server", "");
	open_port(&client, "client", "");
	tend(&client, &server);
	memif = client.ops_arg;
	/* More than the ring has. */
	__atomic_store_n(&memif->client.to_server.memory->head, 0x8000, __ATOMIC_RELEASE);
	memif = server.ops_arg;
	assert_int_equal(memif_peer_receive_by(&memif->peer, byte, sizeof(byte), NULL, &right),
			 -EPROTO);
	assert_false(port_connected(&server));
	tend(&server, &client);
	tend(&server, &client);
	expect_traffic(&server, &client);
	close_port(&client);
	close_port(&server);
}

static void memif_port_suits__knows_its_arguments(void **state)
{
	static const struct {
		const char *text;
		bool suits;
	} ports[] = {
		{"net_memif0", true},
		{"net_memif0,role=server,socket=/run/x,socket-abstract=no,id=1,secret=x", true},
		{"net_memif0,bsize=2048,rsize=10,mac=02:00:00:00:00:01", true},
		{"net_memif0,zero-copy=yes", false},
		{"net_memif0,role=client,zero-copy=no", false},
	};
	struct devargs devargs;

	(void)state;
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		assert_int_equal(devargs_parse(ports[i].text, &devargs), 0);
		assert_int_equal(memif_port_suits(&devargs), ports[i].suits);
	}
}

static void memif_port_open__refuses_what_cannot_be(void **state)
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
	int rc;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		memset(&port, 0, sizeof(port));
		snprintf(text, sizeof(text), "net_memif0,role=client,socket=%s,%s", path, odd[i]);
		rc = port_prepare(&port, text, 0);
		assert_int_equal(rc == 0 ? memif_port_open(&port) : rc, -EINVAL);
	}
	memset(&port, 0, sizeof(port));
	assert_int_equal(port_prepare(&port, "net_memif0,role=nobody", 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memif_tend__ends_meet_in_either_order),
		cmocka_unit_test(memif_tend__meets_the_next_one),
		cmocka_unit_test(memif_tend__keeps_others_away),
		cmocka_unit_test(memif_tend__strangers_are_in_nobodys_way),
		cmocka_unit_test(memif_tend__breaks_with_who_keeps_no_rule),
		cmocka_unit_test(memif_port_suits__knows_its_arguments),
		cmocka_unit_test(memif_port_open__refuses_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
