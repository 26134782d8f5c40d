/* SPDX-License-Identifier: BSD-3-Clause */
#include "memif/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"

static void pass(int socket, const void *data, size_t len, const int *fds, size_t count)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	memset(&control, 0, sizeof(control));
	if (count > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(socket, &msg, 0), len);
}

static int setup(void **state)
{
	int *pair = test_malloc(2 * sizeof(int));

	*state = pair;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int teardown(void **state)
{
	int *pair = *state;

	close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
	test_free(pair);
	return 0;
}

static void memif_socket_receive__takes_one_descriptor(void **state)
{
	const int *pair = *state;
	const int event = eventfd(0, EFD_CLOEXEC);
	const int many[] = {event, event, event, event, event};
	char room[8];
	int fd, next;

	next = dup(event);
	close(next);
	pass(pair[1], "ab", 2, many, 5);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), 2);
	assert_int_equal(fd, next);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	/* No other was left open. */
	assert_int_equal(dup(event), next + 1);
	close(next + 1);
	close(fd);
	close(event);
}

static void memif_socket_receive__tells_lengths_and_ends(void **state)
{
	int *pair = *state;
	char room[4];
	int fd;

	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), -EAGAIN);
	pass(pair[1], "abcdef", 6, NULL, 0);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), 6);
	assert_int_equal(fd, -1);
	assert_int_equal(memif_socket_send(pair[0], "x", 1), 0);
	assert_int_equal(recv(pair[1], room, sizeof(room), 0), 1);
	close(pair[1]);
	pair[1] = -1;
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), 0);
	assert_int_equal(memif_socket_send(pair[0], "x", 1), -EPIPE);
}

static void memif_socket_send__does_not_wait(void **state)
{
	const int *pair = *state;
	static const char message[4096];
	int rc = 0;

	for (int i = 0; i < 10000 && rc == 0; i++)
		rc = memif_socket_send(pair[0], message, sizeof(message));
	assert_int_equal(rc, -EAGAIN);
}

static void memif_socket_is_eventfd__knows_them(void **state)
{
	const int *pair = *state;
	const int event = eventfd(0, EFD_CLOEXEC);
	const int file = memfd_create("anon_inode:[eventfd]", MFD_CLOEXEC);

	assert_true(memif_socket_is_eventfd(event));
	assert_false(memif_socket_is_eventfd(file));
	assert_false(memif_socket_is_eventfd(pair[0]));
	assert_false(memif_socket_is_eventfd(-1));
	close(file);
	close(event);
}

static void memif_socket_is_sealed__knows_it(void **state)
{
	const int *pair = *state;
	const int sealed = client_file(4096, F_SEAL_SHRINK), open = client_file(4096, 0);

	assert_true(memif_socket_is_sealed(sealed));
	assert_false(memif_socket_is_sealed(open));
	assert_false(memif_socket_is_sealed(pair[0]));
	close(sealed);
	close(open);
}

static void memif_socket_discard__closes_in_the_end(void **state)
{
	const int *pair = *state;
	const int event = eventfd(0, EFD_CLOEXEC), copy = dup(event);
	int pipes[2];
	char byte;

	memif_socket_discard(-1);
	memif_socket_discard(copy);
	assert_int_equal(fcntl(copy, F_GETFD), -1);
	close(event);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	memif_socket_discard(pipes[1]);
	/* Returns when the other end has been closed. */
	assert_int_equal(read(pipes[0], &byte, 1), 0);
	assert_false(memif_socket_is_stuck());
	close(pipes[0]);
	(void)pair;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(memif_socket_receive__takes_one_descriptor),
		TEST(memif_socket_receive__tells_lengths_and_ends),
		TEST(memif_socket_send__does_not_wait),
		TEST(memif_socket_is_eventfd__knows_them),
		TEST(memif_socket_is_sealed__knows_it),
		TEST(memif_socket_discard__closes_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
