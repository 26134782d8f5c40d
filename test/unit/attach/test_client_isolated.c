/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_isolated.c: how an isolated process gets its memif connection from the
 * owner, which the test plays. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "attach/attach.h"
#include "client.h"
#include "memif/doorbell.h"
#include "memif/server_end.h"
#include "memif/socket.h"
#include "net/link.h"
#include "port/memif_caller.h"
#include "test.h"

#define MTU    1500
#define ROUNDS 40

static struct link link_of; /* of the process */
static int owner_fd;	    /* the owner's end of the socket */
static pthread_t owner;
static char path[] = "/tmp/uroce-isolated-XXXXXX";

/* The owner's ends of the connection that it made last. */
static int memif_fd;
static struct memif_server memif;

/* Accept the process, and welcome it. */
static void *welcome(void *arg)
{
	const int listener = *(const int *)arg;
	struct share_message message;
	int fds[SHARE_FDS];
	struct pollfd ready;

	owner_fd = accept(listener, NULL, NULL);
	ready = (struct pollfd){.fd = owner_fd, .events = POLLIN};
	assert_int_equal(poll(&ready, 1, -1), 1);
	assert_int_equal(message_receive(owner_fd, &message, fds), 0);
	assert_int_equal(message.type, SHARE_HELLO);
	memset(&message, 0, sizeof(message));
	message.type = SHARE_WELCOME;
	message.version = SHARE_VERSION;
	message.link_up = true;
	message.welcome = (struct share_welcome){.qpn_count = 1, .mtu_bytes = MTU, .ports = 1};
	assert_int_equal(message_send(owner_fd, &message, NULL, 0), 0);
	return NULL;
}

static bool has_no_memory; /* for a port */

int __real_memif_prepare_caller(struct port *port, const struct memif_caller *caller, void *arg,
				const uint8_t mac[6], uint32_t mtu_bytes);
int __wrap_memif_prepare_caller(struct port *port, const struct memif_caller *caller, void *arg,
				const uint8_t mac[6], uint32_t mtu_bytes);

int __wrap_memif_prepare_caller(struct port *port, const struct memif_caller *caller, void *arg,
				const uint8_t mac[6], uint32_t mtu_bytes)
{
	return has_no_memory ? -ENOMEM
			     : __real_memif_prepare_caller(port, caller, arg, mac, mtu_bytes);
}

/* Attach a process to an owner, which the test plays. */
static int isolate(struct link *link)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct share_facts facts;
	int rc;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	assert_non_null(mkdtemp(path));
	assert_int_equal(share_socket_path(path, 1, &address), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(pthread_create(&owner, NULL, welcome, (void *)(uintptr_t)&listener), 0);
	memset(link, 0, sizeof(*link));
	rc = share_isolate(link, address.sun_path, -1, &facts);
	assert_int_equal(pthread_join(owner, NULL), 0);
	close(listener);
	unlink(address.sun_path);
	assert_int_equal(rmdir(path), 0);
	return rc;
}

static int setup(TEST_STATE)
{
	memif_fd = -1;
	memif_server_init(&memif, &memif_limits_isolated);
	assert_int_equal(isolate(&link_of), 0);
	return port_open(&link_of.port);
}

static void close_memif(void)
{
	if (memif_fd >= 0)
		close(memif_fd);
	memif_fd = -1;
	memif_server_fini(&memif);
	memif_server_init(&memif, &memif_limits_isolated);
}

static int teardown(TEST_STATE)
{
	struct rte_mempool *pool = link_of.port.pool;

	port_close(&link_of.port);
	port_destroy(&link_of.port);
	/* A process keeps it until its end. */
	free(link_of.remote_arg);
	free(pool->pool_data);
	free(pool);
	close_memif();
	close(owner_fd);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Return how many times the process has asked for a connection since the last call. */
static int asked(void)
{
	struct share_message message;
	int fds[SHARE_FDS];
	int count = 0;

	for (; message_receive(owner_fd, &message, fds) == 0; count++) {
		assert_int_equal(message.type, SHARE_MEMIF);
		assert_int_equal(fds[0], -1);
	}
	return count;
}

static void answer(int result, const int *fds)
{
	const struct share_message message = {
		.type = SHARE_MEMIF, .version = SHARE_VERSION, .result = result};

	assert_int_equal(message_send(owner_fd, &message, fds, fds ? SHARE_MEMIF_FDS : 0), 0);
}

/* Make a connection, and give the process its ends. */
static void give(void)
{
	struct memif_message hello;
	int ends[2], doorbell[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(memif_doorbell_make(doorbell), 0);
	close_memif();
	memif_fd = ends[0];
	own_mark(doorbell[0]);
	memif_end_take_doorbell(&memif.end, doorbell[0]);
	memif_server_hello(&memif, &hello, "test");
	assert_int_equal(memif_socket_send(memif_fd, &hello, sizeof(hello)), 0);
	answer(0,
	       (const int[]){
		       [SHARE_MEMIF_FD_SOCKET] = ends[1], [SHARE_MEMIF_FD_DOORBELL] = doorbell[1]});
	close(ends[1]);
	close(doorbell[1]);
}

/* Let both ends of the connection do what they can. */
static void run(void)
{
	struct memif_message message, reply;
	int fd;

	for (int i = 0; i < ROUNDS; i++) {
		port_conn_run(&link_of.port);
		while (memif_fd >= 0 &&
		       memif_socket_receive(memif_fd, &message, sizeof(message), &fd) > 0) {
			assert_int_equal(memif_server_take(&memif, &message, fd, &reply), 0);
			assert_int_equal(memif_socket_send(memif_fd, &reply, sizeof(reply)), 0);
		}
	}
}

TEST(share_isolate__asks_for_a_connection_before_the_port_is_opened)
{
	assert_int_equal(asked(), 1);
	give();
	run();
	assert_int_equal(asked(), 0);
	assert_true(port_connected(&link_of.port));
	assert_int_equal(memif.end.state, MEMIF_STATE_CONNECTED);
}

/* The owner may give its slot to another process. */
TEST(share_isolate__without_memory_for_a_port_closes_its_socket)
{
	const int before = owner_fd;
	struct link link;
	char byte;

	has_no_memory = true;
	assert_int_equal(isolate(&link), -ENOMEM);
	has_no_memory = false;
	assert_int_equal(recv(owner_fd, &byte, 1, MSG_DONTWAIT), 0);
	close(owner_fd);
	owner_fd = before;
}

/* The owner's doorbell comes with the answer. */
TEST(share_isolate__is_woken_by_the_doorbell_of_the_answer)
{
	struct pollfd wake = {.fd = port_wake_fd(&link_of.port), .events = POLLIN};
	struct memif_doorbell_cost cost = {0};

	give();
	run();
	assert_false(port_arm(&link_of.port));
	assert_int_equal(poll(&wake, 1, 0), 0);
	memif_doorbell_ring(memif.end.doorbell_fd, &cost);
	assert_int_equal(poll(&wake, 1, 0), 1);
}

TEST(isolated_call__asks_once_until_there_is_an_answer)
{
	run();
	assert_int_equal(asked(), 1);
	run();
	assert_int_equal(asked(), 0);
	assert_true(port_conn_ms(&link_of.port) >= 0);
	give();
	run();
	assert_true(port_connected(&link_of.port));
	assert_int_equal(port_conn_ms(&link_of.port), -1);
}

TEST(isolated_call__asks_again_when_the_owner_cannot)
{
	assert_int_equal(asked(), 1);
	answer(-EBUSY, NULL);
	run();
	assert_int_equal(asked(), 1);
	assert_false(port_lost(&link_of.port));
	give();
	run();
	assert_true(port_connected(&link_of.port));
}

TEST(isolated_call__asks_again_when_a_connection_ends)
{
	give();
	run();
	assert_int_equal(asked(), 1);
	close_memif();
	run();
	assert_false(port_connected(&link_of.port));
	assert_int_equal(asked(), 1);
	give();
	run();
	assert_true(port_connected(&link_of.port));
}

/* The process has too many descriptors open for a while: it keeps its port. */
TEST(isolated_call__asks_again_when_there_is_no_room_for_descriptors)
{
	struct rlimit before, low;
	int next;

	assert_int_equal(asked(), 1);
	give();
	next = dup(owner_fd);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	run();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(port_lost(&link_of.port));
	assert_int_equal(asked(), 1);
	give();
	run();
	assert_true(port_connected(&link_of.port));
}

TEST(isolated_call__ends_with_the_owner)
{
	shutdown(owner_fd, SHUT_RDWR);
	run();
	assert_true(port_lost(&link_of.port));
	assert_false(port_connected(&link_of.port));
}
