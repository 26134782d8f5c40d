/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/include/base/own.h. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "test.h"

#define KINDS 5

static void open_kinds(int fds[KINDS])
{
	fds[0] = eventfd(0, EFD_CLOEXEC);
	fds[1] = epoll_create1(EPOLL_CLOEXEC);
	fds[2] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	fds[3] = memfd_create("own", MFD_CLOEXEC);
	fds[4] = socket(AF_INET, SOCK_DGRAM, 0);
}

TEST(own_is__every_kind_of_ours)
{
	int fds[KINDS];

	open_kinds(fds);
	for (int i = 0; i < KINDS; i++) {
		assert_false(own_is(fds[i]));
		own_mark(fds[i]);
		assert_true(own_is(fds[i]));
		assert_int_equal(fcntl(fds[i], F_GETFL) & O_ASYNC, 0);
		close(fds[i]);
		errno = EPERM;
		assert_false(own_is(fds[i]));
		assert_int_equal(errno, EPERM);
	}
	assert_false(own_is(-1));
}

/* The number is the same, and the kind too. */
TEST(own_is__not_what_has_taken_its_place)
{
	int ours[KINDS], theirs[KINDS];

	open_kinds(ours);
	open_kinds(theirs);
	for (int i = 0; i < KINDS; i++) {
		own_mark(ours[i]);
		assert_int_equal(dup2(theirs[i], ours[i]), ours[i]);
		assert_false(own_is(ours[i]));
		close(ours[i]);
		close(theirs[i]);
	}
}
