/* SPDX-License-Identifier: BSD-3-Clause */
#include "memif/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_client.h"
#include "lingering.h"
#include "open_fds.h"
#include "test.h"

#define FDS_MAX	  253 /* of a message: SCM_MAX_FD */
#define STUCK_MAX 600 /* more than are closed at one time, and wait for it */
#define USER_MAX  80  /* the same of one user */

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif

static void pass(int socket, const void *data, size_t len, const int *fds, size_t count)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
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

TEST_FIXTURE(setup, teardown);

TEST(memif_socket_receive__takes_one_descriptor)
{
	const int *pair = *state;
	const int event = eventfd(0, EFD_CLOEXEC);
	char room[8];
	int fd;

	pass(pair[1], "ab", 2, &event, 1);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), 2);
	assert_true(memif_socket_is_eventfd(fd));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	close(event);
}

/* A message with the same descriptor some times is refused, and none is left open. */
static void refuse(const int pair[2], size_t len, size_t count)
{
	int fds[FDS_MAX], pipes[2], fd;
	char room[8];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	for (size_t i = 0; i < count; i++)
		fds[i] = pipes[1];
	pass(pair[1], "ab", len, fds, count);
	close(pipes[1]);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), -EPROTO);
	assert_int_equal(fd, -1);
	/* Returns when the other end has been closed. */
	assert_int_equal(read(pipes[0], room, 1), 0);
	close(pipes[0]);
}

TEST(memif_socket_receive__refuses_more_than_one_descriptor)
{
	const int *pair = *state;

	refuse(pair, 2, 2);
	refuse(pair, 2, FDS_MAX);
}

TEST(memif_socket_receive__refuses_a_descriptor_without_data)
{
	const int *pair = *state;

	refuse(pair, 0, 1);
}

TEST(memif_socket_receive__keeps_no_pidfd)
{
	const unsigned int before = fds_count();
	const int *pair = *state, on = 1;
	char room[8];
	int fd;

	/* A kernel before 6.5 has none. */
	if (setsockopt(pair[0], SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on)) != 0)
		skip();
	pass(pair[1], "a", 1, &pair[0], 1);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), -EPROTO);
	assert_int_equal(fd, -1);
	fds_wait(before);
}

TEST(memif_socket_receive__has_room_for_credentials)
{
	const int *pair = *state, on = 1, event = eventfd(0, EFD_CLOEXEC);
	char room[8];
	int fd;

	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	pass(pair[1], "a", 1, &event, 1);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), 1);
	assert_true(memif_socket_is_eventfd(fd));
	close(fd);
	refuse(pair, 2, FDS_MAX);
	close(event);
}

/* These tests do not end where the caller waits. */
TEST(memif_socket_receive__does_not_linger)
{
	const unsigned int before = fds_count();
	struct sockaddr_in address;
	const int listener = lingering_listen(&address);
	const int fds[] = {eventfd(0, EFD_CLOEXEC), lingering_socket(&address)}, *pair = *state;
	char room[8];
	int fd;

	pass(pair[1], "ab", 2, fds, 2);
	close(fds[0]);
	/* fds[0] stays open here: one copy of it is in the message. */
	close(fds[1]);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), -EPROTO);
	close(listener);
	fds_wait(before);
}

TEST(memif_socket_end__does_not_linger)
{
	const unsigned int before = fds_count();
	const int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	struct sockaddr_in address;
	const int listener = lingering_listen(&address);
	const int fd = lingering_queue(&address);

	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	memif_socket_end(epoll, -1);
	memif_socket_end(epoll, fd);
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	close(epoll);
	close(listener);
	fds_wait(before);
}

TEST(memif_socket_receive__takes_no_more_descriptors_when_stuck)
{
	const int *pair = *state, event = eventfd(0, EFD_CLOEXEC);
	struct sockaddr_in address;
	const int listener = lingering_listen(&address);
	char room[8];
	int fd;

	assert_false(memif_socket_is_stuck());
	for (int i = 0; i < STUCK_MAX; i++)
		memif_socket_discard(lingering_queue(&address));
	assert_true(memif_socket_is_stuck());
	pass(pair[1], "ab", 2, NULL, 0);
	pass(pair[1], "ab", 2, &event, 1);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), 2);
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), -EBUSY);
	assert_int_equal(fd, -1);
	close(listener);
	for (int i = 0; memif_socket_is_stuck(); i++) {
		assert_true(i < 60000);
		usleep(1000);
	}
	assert_int_equal(memif_socket_receive(pair[0], room, sizeof(room), &fd), 2);
	close(fd);
	close(event);
}

/* A user's slow closes delay no other user's. */
TEST(memif_socket_charge__keeps_users_apart)
{
	const int *pair = *state;
	struct sockaddr_in address;
	const int listener = lingering_listen(&address);
	int pipes[2];
	char byte;

	(void)pair;
	memif_socket_charge(7);
	for (int i = 0; i < USER_MAX; i++)
		memif_socket_discard(lingering_queue(&address));
	assert_true(memif_socket_is_stuck());
	memif_socket_charge(8);
	assert_false(memif_socket_is_stuck());
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	memif_socket_discard(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 0);
	close(pipes[0]);
	memif_socket_charge(0);
	assert_false(memif_socket_is_stuck());
	assert_false(memif_socket_is_late());
	for (int i = 0; i < USER_MAX; i++)
		memif_socket_discard(lingering_queue(&address));
	/* No more descriptors are closed at a time until the first ones count as stuck. */
	memif_socket_charge(9);
	for (int i = 0; i < USER_MAX; i++)
		memif_socket_discard(lingering_queue(&address));
	memif_socket_charge(0);
	assert_true(memif_socket_is_late());
	assert_false(memif_socket_is_stuck());
	close(listener);
	for (int i = 0; memif_socket_is_late(); i++) {
		assert_true(i < 60000);
		usleep(1000);
	}
}

TEST(memif_socket_receive__tells_lengths_and_ends)
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

TEST(memif_socket_send__does_not_wait)
{
	const int *pair = *state;
	static const char message[4096];
	int rc = 0;

	for (int i = 0; i < 10000 && rc == 0; i++)
		rc = memif_socket_send(pair[0], message, sizeof(message));
	assert_int_equal(rc, -EAGAIN);
}

TEST(memif_socket_is_eventfd__knows_them)
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

TEST(memif_socket_is_sealed__knows_it)
{
	const int *pair = *state;
	const int sealed = client_file(4096, F_SEAL_SHRINK), open = client_file(4096, 0);

	assert_true(memif_socket_is_sealed(sealed));
	assert_false(memif_socket_is_sealed(open));
	assert_false(memif_socket_is_sealed(pair[0]));
	close(sealed);
	close(open);
}

TEST(memif_socket_discard__closes_in_the_end)
{
	const int *pair = *state;
	int pipes[2];
	char byte;

	memif_socket_discard(-1);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	memif_socket_discard(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 0);
	assert_false(memif_socket_is_stuck());
	close(pipes[0]);
	(void)pair;
}
