/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/memif_direct.c: two ports with the ends of the same sockets. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "memif/doorbell.h"
#include "memif/socket.h"
#include "memif_ends.h"
#include "memif_port.h"
#include "port/memif_direct.h"
#include "test.h"

#define ROOM   (UINT64_C(4) << 20)
#define ROUNDS 40

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

static int wake_fds[2]; /* of the processes' own ports */

static int setup(TEST_STATE)
{
	for (int i = 0; i < 2; i++)
		wake_fds[i] = epoll_create1(EPOLL_CLOEXEC);
	return wake_fds[1] < 0;
}

static int teardown(TEST_STATE)
{
	for (int i = 0; i < 2; i++)
		close(wake_fds[i]);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Make a port without packet buffers: nothing is received here. */
static void open_end(struct port *port, bool is_server, int fd, int doorbell_fd)
{
	const struct memif_direct_config config = {.is_server = is_server,
						   .socket_fd = fd,
						   .doorbell_fd = doorbell_fd,
						   .wake_epoll_fd = wake_fds[is_server],
						   .mac = mac,
						   .mtu_bytes = 1500};

	memset(port, 0, sizeof(*port));
	assert_int_equal(memif_prepare_direct(port, &config), 0);
	port->make_pool = ends_make_no_pool;
	assert_int_equal(port_open(port), 0);
	assert_false(port_connected(port));
	assert_false(port_lost(port));
}

static void make_sockets(int ends[2], int doorbell[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(memif_doorbell_make(doorbell), 0);
	own_mark(doorbell[0]);
	own_mark(doorbell[1]);
}

/* Open a client and a server, and let them connect. */
static void open_pair(struct port ports[2])
{
	int ends[2], doorbell[2];

	make_sockets(ends, doorbell);
	for (int i = 0; i < 2; i++)
		open_end(&ports[i], i == 1, ends[i], doorbell[i]);
	ends_run(&ports[0], &ports[1]);
}

static bool try_send(struct port *port)
{
	uint8_t *place = port->ops->place(port->ops_arg, 64);

	if (!place)
		return false;
	memset(place, 1, 64);
	port->ops->placed(port->ops_arg, 64);
	port->ops->push(port->ops_arg);
	return true;
}

TEST(memif_prepare_direct__connects_once)
{
	struct port ports[2];

	open_pair(ports);
	for (int i = 0; i < 2; i++) {
		assert_true(port_connected(&ports[i]));
		assert_false(memif_direct_waits(&ports[!i]));
		assert_true(try_send(&ports[i]));
		assert_true(memif_direct_waits(&ports[!i]));
		assert_int_equal(port_conn_ms(&ports[i]), -1);
	}
	ends_close(&ports[0]);
	/* The packet can still be received. */
	assert_true(memif_direct_waits(&ports[1]) && !port_lost(&ports[1]));
	for (int i = 0; i < ROUNDS; i++)
		port_conn_run(&ports[1]);
	assert_true(port_lost(&ports[1]));
	assert_false(port_connected(&ports[1]) || try_send(&ports[1]));
	assert_int_equal(port_conn_ms(&ports[1]), -1);
	ends_close(&ports[1]);
}

static bool is_woken(bool server)
{
	struct pollfd wake = {.fd = wake_fds[server], .events = POLLIN};

	return poll(&wake, 1, 0) == 1;
}

/* Take the notifications, as the process's own port does when it is armed. */
static bool clear_doorbell(const struct port *port)
{
	const struct memif_port *memif = port->ops_arg;

	return memif_doorbell_clear(memif->end->wake_fd);
}

/* An end that slept before there was a connection looks once. Then packets wake it while it is
 * armed. */
TEST(memif_prepare_direct__wakes_who_is_armed)
{
	struct port ports[2];
	int ends[2], doorbell[2];

	make_sockets(ends, doorbell);
	for (int i = 0; i < 2; i++) {
		open_end(&ports[i], i == 1, ends[i], doorbell[i]);
		assert_int_equal(port_wake_fd(&ports[i]), wake_fds[i]);
		assert_false(port_arm(&ports[i]));
	}
	ends_run(&ports[0], &ports[1]);
	for (int i = 0; i < 2; i++) {
		assert_true(is_woken(i));
		assert_true(clear_doorbell(&ports[i]));
		assert_false(is_woken(i));
		/* It is armed since it was opened. */
		assert_true(try_send(&ports[!i]));
		assert_true(is_woken(i));
		assert_true(clear_doorbell(&ports[i]));
		assert_true(port_arm(&ports[i]));
		port_disarm(&ports[i]);
		assert_true(try_send(&ports[!i]));
		assert_false(is_woken(i));
	}
	ends_close(&ports[0]);
	ends_close(&ports[1]);
}

/* The other end fills its doorbell, and asks for notifications all the time. Our end is blocking.
 */
TEST(memif_prepare_direct__never_waits_for_the_other)
{
	struct port ports[2];

	for (int i = 0; i < 2; i++) {
		struct memif_port *memif, *other;
		int fd;

		open_pair(ports);
		memif = ports[i].ops_arg;
		other = ports[!i].ops_arg;
		fd = memif->end->doorbell_fd;
		memif_end_listen(other->end, true);
		assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
		while (send(fd, "", 1, MSG_DONTWAIT) == 1)
			;
		assert_true(try_send(&ports[i]));
		/* It has closed its end. The packet is not less sent. */
		shutdown(other->end->wake_fd, SHUT_RDWR);
		assert_true(try_send(&ports[i]));
		assert_true(memif_direct_waits(&ports[!i]));
		ends_close(&ports[0]);
		ends_close(&ports[1]);
	}
}

/* Return true if a server takes memory of this size. The test is its client. */
static bool takes_memory(uint64_t bytes)
{
	const int memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct memif_message message = {.type = MEMIF_INIT,
					.init = {.version = MEMIF_VERSION, .mode = 0}};
	struct port port;
	int ends[2], doorbell[2], fd;
	bool taken;

	assert_int_equal(ftruncate(memory, (off_t)bytes), 0);
	assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	make_sockets(ends, doorbell);
	open_end(&port, true, ends[0], doorbell[0]);
	assert_int_equal(memif_socket_send(ends[1], &message, sizeof(message)), 0);
	message = (struct memif_message){.type = MEMIF_ADD_REGION, .add_region = {.bytes = bytes}};
	assert_int_equal(memif_socket_send_with(ends[1], &message, sizeof(message), memory), 0);
	for (int i = 0; i < ROUNDS; i++)
		port_conn_run(&port);
	taken = !port_lost(&port);
	/* HELLO, and the acknowledgement of INIT. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(memif_socket_receive(ends[1], &message, sizeof(message), &fd),
				 sizeof(message));
	ends_close(&port);
	close(ends[1]);
	close(doorbell[1]);
	close(memory);
	return taken;
}

TEST(memif_prepare_direct__limits_the_others_memory)
{
	assert_true(takes_memory(ROOM));
	assert_false(takes_memory(ROOM + 4096));
}
